"""The end of packing: what travels beside, what the store says of itself, and its name."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laconic.data.pack_quality import total
from laconic.data.pack_shard import NOTES, Job
from laconic.data.store import FORMAT, KEY
from laconic.errors import CorruptData
from laconic.files import file_errors, replacing
from laconic.version import __version__

_GROUP = "zarr.json"
_AT_ONCE = 32 << 20
"""Bytes of what travels beside."""
_NUMBERS = 512
"""Bytes that hold a few of them."""


def finish(job: Job, target: Path, speed: dict[str, Any] | None) -> None:
    """Whatever of this was done before is done again, until the attributes are there; then it only gets its name."""
    if not (job.partial / _GROUP).exists():
        for name in job.plan.beside:
            _write_beside(job, name)
        _sweep(job.partial)
        _write_group(job.partial, _report(job), speed)
    shutil.rmtree(job.notes, ignore_errors=True)
    with file_errors(target, "write"):
        job.partial.rename(target)


def report_of(store: Path) -> dict[str, Any]:
    """What the attributes of a store say of its packing."""
    try:
        about = json.loads((store / _GROUP).read_text())["attributes"][KEY]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorruptData(f"'{store}' is there, and is no packed store: {error}") from error
    return dict(about)


def size_of(store: Path) -> int:
    """Bytes of all files."""
    return sum((Path(folder) / file).stat().st_size for folder, _, files in os.walk(store) for file in files)


def _report(job: Job) -> dict[str, Any]:
    plan = job.plan
    notes = [job.done(shard) or {} for shard in range(plan.shards)]
    arrays = {name: total(note[name] for note in notes).report(plan.spec(name).dtype) for name in plan.packed}
    return {
        "format": FORMAT,
        "laconic": __version__,
        "codec": str(plan.codec),
        "samples": plan.samples,
        "packed": list(plan.packed),
        "beside": list(plan.beside),
        **plan.source.about,
        "arrays": arrays,
        "before": plan.total_bytes,
        "after": 0,
        "ratio": 0.0,
        "speed": None,
    }


def _write_group(partial: Path, report: dict[str, Any], speed: dict[str, Any] | None) -> None:
    """Once, and whole: the store is complete with it. Its own bytes count; blanks at its end keep room for numbers
    that are not known yet, so that how many these are depends on no clock."""
    room = -(-(len(_group(report)) + _NUMBERS) // _NUMBERS) * _NUMBERS
    after = size_of(partial) - size_of(partial / NOTES) + room
    found = {**report, "after": after, "ratio": report["before"] / after, "speed": speed}
    with replacing(partial / _GROUP) as file:
        file.write_bytes(_group(found).ljust(room))


def _group(report: dict[str, Any]) -> bytes:
    group = {"zarr_format": 3, "node_type": "group", "attributes": {KEY: report}}
    return json.dumps(group, indent=2, allow_nan=False).encode()


def _write_beside(job: Job, name: str) -> None:
    """As Zarr keeps it by default, in whole chunks, from what the shards left in their notes."""
    import zarr

    info, path = job.plan.source.arrays[name], job.partial / name
    shutil.rmtree(path, ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that text of fixed length is not in the specification yet
        array = zarr.create_array(
            path, shape=info.shape, dtype=info.dtype, chunks="auto", dimension_names=info.dimensions_of(name)
        )
    rows = array.chunks[0] * max(1, _AT_ONCE // max(1, array.chunks[0] * info.sample_bytes))
    waiting: list[NDArray[Any]] = []
    start = 0
    for shard in range(job.plan.shards):
        waiting.append(job.beside(shard, name))
        while (count := sum(map(len, waiting))) >= rows or (count and shard == job.plan.shards - 1):
            block = np.concatenate(waiting)
            array[start : start + len(block[:rows])] = block[:rows]
            start, waiting = start + len(block[:rows]), [block[rows:]]


def _sweep(partial: Path) -> None:
    """What killed packers left of files they had not finished."""
    for folder, _, files in os.walk(partial):
        for file in files:
            if file.startswith("."):
                (Path(folder) / file).unlink()
