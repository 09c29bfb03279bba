"""How fast packing is, beside reading the source alone, in one process, all in the page cache. Reading is two things:

    loading    `np.load`: all of it into an array, as one who does not pack would read it
    reading    what the packer does of it: its own source object, block after block into the same few MiB, which
               stay in a cache; nobody who keeps what he reads is as fast

They take turns with packing, so that what else the machine does is met by all. Packing is everything up to the last
shard in its place; helpers are there when it begins, as in all but the first seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from laconic.data.pack import begin
from laconic.data.pack_claim import claimed
from laconic.data.pack_plan import plan
from laconic.data.pack_shard import Job, ShardWriter
from laconic.data.pack_workers import Helpers, one_thread, write_beside
from laconic.data.sources import open_source

SHAPE = (3, 256, 256)
SAMPLES = 1365
"""1 GiB: so many files that it hardly matters which worker has the last one."""
FLOOR = 0.5
WORKERS = 2


class PackSpeed(NamedTuple):
    """Bytes of the source a second; medians."""

    loading: float
    reading: float
    alone: float
    packing: float
    """By all workers."""

    @property
    def over_loading(self) -> float:
        return self.packing / self.loading

    @property
    def over_reading(self) -> float:
        return self.packing / self.reading


def pack_speed(
    codec: str = "dct:chop=4",
    samples: int = SAMPLES,
    workers: int = WORKERS,
    rounds: int = 5,
    folder: Path | None = None,
) -> PackSpeed:
    """Of float32 images in a .npy."""
    with TemporaryDirectory(prefix="laconic-packing-", dir=folder) as name:
        source, target = Path(name) / "source.npy", Path(name) / "out.zarr"
        _write(source, samples)
        todo = plan(open_source(str(source)), codec, workers=workers)
        with claimed(target) as partial, one_thread(), Helpers(Job(todo, partial), workers - 1) as helpers:
            job = Job(todo, partial)
            begin(job)
            helpers.wait_until_ready()
            found = _race(source, job, helpers, Helpers(job, 0), rounds)
    return PackSpeed(*(todo.total_bytes / median(seconds) for seconds in found))


def _race(source: Path, job: Job, helpers: Helpers, nobody: Helpers, rounds: int) -> list[list[float]]:
    """Seconds of each round, as `PackSpeed` names them. The first of each is not counted."""
    writer, shards = ShardWriter(job), range(job.plan.shards)
    entries: list[Callable[[], object]] = [
        lambda: np.load(source),
        lambda: _read(writer, shards),
        lambda: write_beside(writer, nobody, shards, lambda shard: None),
        lambda: write_beside(writer, helpers, shards, lambda shard: None),
    ]
    seconds: list[list[float]] = [[] for _ in entries]
    for _ in range(rounds + 1):
        for entry, taken in zip(entries, seconds, strict=True):
            _clear(job)
            begun = time.perf_counter()
            entry()
            taken.append(time.perf_counter() - begun)
    return [taken[1:] for taken in seconds]


def _read(writer: ShardWriter, shards: Sequence[int]) -> None:
    for shard in shards:
        writer.read(shard)


def _clear(job: Job) -> None:
    """As before any shard was written: to replace a file takes longer than to write it."""
    for shard in range(job.plan.shards):
        for path in (job.notes_of(shard), *(job.array(name).shard_path(shard) for name in job.plan.packed)):
            path.unlink(missing_ok=True)


def _write(path: Path, samples: int) -> None:
    y, x = np.mgrid[: SHAPE[1], : SHAPE[2]].astype("f4") / 256
    wave = np.stack([np.sin(x * (i + 3) + y * (7 - i)) for i in range(SHAPE[0])]).astype("f4")
    header = {"descr": "<f4", "fortran_order": False, "shape": (samples, *SHAPE)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_2_0(file, header)
        for i in range(samples):
            file.write((wave + np.float32(i)).data)
        file.flush()
        os.fsync(file.fileno())  # else the disk would be busy with it for a while
