"""Runs the loader study: in each setting, everybody in turns."""

from __future__ import annotations

import gc
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from laconic.bench import machine, packing
from laconic.bench.loader import files, floors
from laconic.bench.loader.datasets import Entry, entries
from laconic.bench.loader.epochs import Epoch, Runner
from laconic.bench.loader.plan import CAN_DROP, COLD, SHAPE, Plan, Setting
from laconic.bench.loader.study import LoaderStudy, Row
from laconic.bench.measure import Timing, WrongResult
from laconic.bench.rate.data import SEED
from laconic.data.delivery import to_device
from laconic.metrics import psnr

COLD_BY = "posix_fadvise(DONTNEED) on every file before each epoch"
LEAST_PSNR = 20.0
_CHECKED = 16

Begin = Callable[[str], None]


def steps(plan: Plan) -> int:
    """How often `begin` will be called."""
    return 2 + len(plan.settings)


def measure(plan: Plan, begin: Begin) -> LoaderStudy:
    """Measures everything; `begin` is told what starts."""
    usual = torch.get_num_threads()
    torch.set_num_threads(plan.threads)
    try:
        with tempfile.TemporaryDirectory(prefix="laconic-loader-", dir=plan.folder) as folder:
            begin("writing files")
            rows = list(_rows(plan, Path(folder), begin))
            begin(f"packing, {packing.WORKERS} workers")
            samples = plan.samples if plan.quick else packing.SAMPLES
            speed = packing.pack_speed(samples=samples, rounds=plan.rounds, folder=Path(folder))
        cold_by = COLD_BY if CAN_DROP else "not measured: this system keeps what it read"
        return LoaderStudy(
            plan.command,
            SEED,
            machine.describe(),
            cold_by,
            (*floors.verdicts(rows), *floors.packing(speed)),
            tuple(rows),
            speed._asdict(),
        )
    finally:
        torch.set_num_threads(usual)


def _rows(plan: Plan, folder: Path, begin: Begin) -> Iterator[Row]:
    found = list(entries(plan, folder))
    first = torch.stack([found[0].open()[i] for i in range(min(_CHECKED, plan.samples))])
    quality = [_quality(entry, first) for entry in found]
    for setting in plan.settings:
        begin(str(setting))
        for entry, likeness, epochs in zip(found, quality, _race(plan, found, setting), strict=True):
            yield _row(plan, setting, entry, likeness, epochs)


def _quality(entry: Entry, expected: Tensor) -> float | None:
    """PSNR of what arrives; WrongResult where that is something else."""
    dataset: Any = entry.open()
    delivered = to_device([dataset[i] for i in range(len(expected))], "cpu")
    found = torch.stack(delivered)
    if torch.equal(found, expected):
        return None
    likeness = psnr(expected, found)
    if likeness < LEAST_PSNR:
        raise WrongResult(f"{entry.name}, {entry.deliver}: samples are off, PSNR {likeness:.1f} dB")
    return likeness


def _race(plan: Plan, found: Sequence[Entry], setting: Setting) -> list[list[Epoch]]:
    """So many epochs of each."""
    epochs: list[list[Epoch]] = [[] for _ in found]
    if setting.cache == COLD:
        for _ in range(plan.rounds):
            for entry, taken in zip(found, epochs, strict=True):
                with _runner(entry, plan, setting) as runner:
                    taken.append(runner.epoch(cold=True))
        return epochs
    runners = [Runner(entry, plan.samples, plan.batch, setting.workers) for entry in found]
    try:
        for runner in runners:
            runner.epoch(cold=False)  # not counted: files come into the cache, and memory is made
        for _ in range(plan.rounds):
            for runner, taken in zip(runners, epochs, strict=True):
                taken.append(runner.epoch(cold=False))
    finally:
        for runner in runners:
            runner.stop()
    return epochs


@contextmanager
def _runner(entry: Entry, plan: Plan, setting: Setting) -> Iterator[Runner]:
    """With nothing mapped of those before it."""
    runner = Runner(entry, plan.samples, plan.batch, setting.workers)
    try:
        yield runner
    finally:
        runner.stop()
        del runner
        gc.collect()


def _row(plan: Plan, setting: Setting, entry: Entry, likeness: float | None, epochs: Sequence[Epoch]) -> Row:
    timing = Timing.of([epoch.seconds for epoch in epochs])
    disk = [epoch.disk_bytes for epoch in epochs if epoch.disk_bytes is not None]
    return Row(
        name=entry.name,
        deliver=entry.deliver,
        codec=entry.codec,
        cache=setting.cache,
        workers=setting.workers,
        samples=plan.samples,
        batch=plan.batch,
        shape=list(SHAPE),
        dtype="float32",
        seconds=timing.median,
        q1=timing.q1,
        q3=timing.q3,
        rounds=timing.rounds,
        nbytes=plan.samples * torch.Size(SHAPE).numel() * torch.float32.itemsize,
        stored_bytes=sum(file.stat().st_size for file in files.all_files(entry.path)),
        disk_bytes=round(statistics.median(disk)) if disk else None,
        psnr=likeness,
        included=entry.included,
    )
