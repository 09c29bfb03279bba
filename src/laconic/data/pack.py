"""Packs a source into a store: a shard at a time, so that what was done stays done.

claim      OUT.zarr.partial, which no other packer may hold
plan       kept beside the shards: --resume goes on with that very plan, or refuses
shards     by any number of processes, each replaced whole
finish     what travels beside, the attributes; then it gets its name
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from laconic.chain import Codec
from laconic.chain import codec as to_codec
from laconic.data.pack_claim import claimed
from laconic.data.pack_finish import finish, report_of
from laconic.data.pack_plan import COPIES, MEMORY, SHARD, parse_size, plan
from laconic.data.pack_shard import Job
from laconic.data.pack_workers import write_shards
from laconic.data.sources import Source, open_source
from laconic.data.store import PackedArray
from laconic.errors import FileError, SpecError
from laconic.files import replacing

Progress = Callable[[int, int], None]
"""Told how many bytes of the source are done, of how many, whenever a shard is."""
_WORTH_A_PROCESS = 256 << 20
"""Bytes of a source, for which starting one more process pays."""


def pack(
    source: str | os.PathLike[str] | Source,
    target: str | os.PathLike[str],
    codec: str | Codec,
    *,
    arrays: Sequence[str] = (),
    without: Sequence[str] = (),
    memory: int | str = MEMORY,
    shard: int | str = SHARD,
    workers: int | None = None,
    scheduler: Any = None,
    resume: bool = False,
    progress: Progress = lambda done, of: None,
) -> dict[str, Any]:
    """Writes the store `target`, and gives what its attributes say of it.

    `source` is what `open_source` takes. `arrays` are packed (by default the largest that the codec takes), all others
    of that length travel beside, losslessly, but for those named in `without`. `memory` bounds what is held at a time,
    beyond the imports; `shard` is a number of samples, or the size of what goes into a file. `workers` are processes
    on this machine (all cores when not given); `scheduler` is the address of a Dask cluster instead. The bytes of the
    store depend on neither. `resume` goes on where another packer was interrupted.
    """
    target = Path(target).absolute()
    if target.exists():
        return _there_already(target, codec, resume)
    opened = source if isinstance(source, Source) else open_source(os.fspath(source))
    count = _workers(workers, opened, memory)
    todo = plan(opened, codec, arrays=arrays, without=without, memory=memory, shard=shard, workers=count)
    with claimed(target) as partial:
        job = Job(todo, partial)
        begin(job, resume)
        finish(job, target, _write(job, count, scheduler, progress))
    return report_of(target)


def _there_already(target: Path, codec: str | Codec, resume: bool) -> dict[str, Any]:
    if not resume:
        raise FileError(f"'{target}' is there already. Name another, or remove it")
    found = report_of(target)
    if found["codec"] != str(to_codec(codec)):
        raise SpecError(f"'{target}' is complete already, packed with '{found['codec']}'")
    return found


def _workers(asked: int | None, source: Source, memory: int | str) -> int:
    """When nobody says: as many as have work, and room."""
    if source.sequential:
        return 1  # each would have to inflate all of it
    if asked is not None:
        return max(1, asked)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    sizes = [(info.sample_bytes, info.sample_bytes * info.shape[0]) for info in source.arrays.values() if info.shape]
    sample, every = (sum(size[i] for size in sizes) for i in (0, 1))
    return max(1, min(cores, every // _WORTH_A_PROCESS, parse_size(memory, "--memory") // max(1, COPIES * sample)))


_CHANGED = {
    "files": "its files changed since then",
    "version": "by a laconic whose stages wrote other bits, and all samples have to be alike",
}


def begin(job: Job, resume: bool = False) -> None:
    """The plan, then the arrays' metadata; or a check that they are those of this very job."""
    identity, kept = job.plan.identity(), job.notes / "plan.json"
    if kept.exists():
        _check_same(job.partial, json.loads(kept.read_text()), identity, resume)
    else:  # whoever began came no further than this
        for left in job.partial.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        job.notes.mkdir()
        with replacing(kept) as partial:
            partial.write_text(json.dumps(identity))
    for name in job.plan.packed:
        _create(job, name)


def _check_same(partial: Path, found: dict[str, Any], wanted: dict[str, Any], resume: bool) -> None:
    if not resume:
        raise FileError(f"'{partial}' was begun before, and is kept. Go on with --resume, or remove it")
    for name, value in wanted.items():
        if found.get(name) != value:
            what = _CHANGED.get(name, f"{name}: {found.get(name)}, and now {value}")
            raise SpecError(
                f"'{partial}' was begun with another {name}: cannot resume ({what}). Remove it to begin anew"
            )


def _create(job: Job, name: str) -> None:
    """Elsewhere first: metadata are there whole, or not at all."""
    metadata = job.partial / name / "zarr.json"
    if metadata.exists():
        return
    scratch = job.notes / "new"
    shutil.rmtree(scratch, ignore_errors=True)
    info = job.plan.source.arrays[name]
    PackedArray.create(scratch, job.plan.spec(name), job.plan.codec, job.plan.per_shard, info.dimensions_of(name))
    metadata.parent.mkdir(parents=True, exist_ok=True)
    (scratch / "zarr.json").replace(metadata)
    shutil.rmtree(scratch)


def _write(job: Job, workers: int, scheduler: Any, progress: Progress) -> dict[str, Any] | None:
    """All shards that are not there yet, and how fast; None where there were none."""
    plan = job.plan
    todo = [shard for shard in range(plan.shards) if job.done(shard) is None]
    every, done = plan.total_bytes, plan.total_bytes - sum(map(plan.bytes_of, todo))
    progress(done, every)
    begun, written = time.perf_counter(), 0

    def note(shard: int) -> None:
        nonlocal done, written
        size = plan.bytes_of(shard)
        done, written = done + size, written + size
        progress(done, every)

    try:
        write_shards(job, todo, workers, scheduler, note)
    except (OSError, MemoryError) as error:
        raise FileError(f"{error or 'Out of memory'}. {where_it_stands(job)}") from error
    if not todo:
        return None
    seconds = time.perf_counter() - begun
    by = "cluster" if scheduler is not None else workers
    return {"seconds": seconds, "bytes": written, "bytes_per_second": written / seconds, "workers": by}


def where_it_stands(job: Job) -> str:
    done = sum(job.done(shard) is not None for shard in range(job.plan.shards))
    return f"{done} of {job.plan.shards} shards are written: --resume goes on with the rest"
