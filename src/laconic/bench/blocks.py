"""The timing study of "A Portable, Fast, DCT-based Compressor for AI Accelerators" (HPDC 2024), and its floors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from laconic.bench import floors, machine, portable, sweeps, training, transfer
from laconic.bench.measure import Race, race
from laconic.bench.plan import SEED, Plan
from laconic.bench.study import Row, Study


def races(plan: Plan) -> Iterator[Race]:
    """All that will be measured. The floors are a CPU's."""
    if not plan.on_gpu:
        yield from floors.races(plan)
    yield from sweeps.resolution(plan)
    yield from sweeps.batch(plan)
    yield from portable.serial(plan)
    yield from sweeps.triangle(plan)
    yield from portable.spans(plan)
    yield from training.races(plan)
    yield from transfer.races(plan)


def measure(plan: Plan, begin: Callable[[str], None]) -> Study:
    """Runs every race; `begin` is told which one starts."""
    usual = torch.get_num_threads()
    torch.set_num_threads(plan.threads)
    try:
        rows = tuple(row for entry in races(plan) for row in _run(entry, plan, begin))
        verdicts = () if plan.on_gpu else floors.verdicts(rows)
        return Study(plan.command, str(plan.device), SEED, machine.describe(), verdicts, rows)
    finally:
        torch.set_num_threads(usual)


def _run(entry: Race, plan: Plan, begin: Callable[[str], None]) -> list[Row]:
    begin(f"{entry.section}: {entry.title}")
    contenders = entry.prepare()
    timings = race(contenders, plan.effort(entry.section), plan.device)
    return [Row.of(entry, c, timing, plan.threads) for c, timing in zip(contenders, timings, strict=True)]
