"""Holds `auto` against every single encoder, and its forecasts against the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from laconic.bench import machine
from laconic.bench.costs import data
from laconic.bench.costs.calibrate import FULL, QUICK, Effort, Timed, thread_counts, time_each
from laconic.bench.costs.cases import Case, cases
from laconic.bench.costs.study import AutoStudy, Row
from laconic.encoders import costs
from laconic.encoders.auto import Auto
from laconic.encoders.candidates import Candidate, installed, main_spec
from laconic.stage import TensorSpec

LINKS = (0.1, 1.0, 10.0)
Begin = Callable[[str], None]


def steps(tensors: Mapping[str, Tensor], threads: int) -> int:
    """How often `begin` will be called."""
    return len(list(cases(tensors))) * len(thread_counts(threads))


def check(tensors: Mapping[str, Tensor], threads: int, quick: bool, begin: Begin) -> AutoStudy:
    """Measures with the cost model that `auto` has now; `begin` is told what starts."""
    usual, rows = torch.get_num_threads(), list[Row]()
    try:
        for count in thread_counts(threads):
            torch.set_num_threads(count)
            for case in cases(tensors):
                begin(f"{case.name}, {count} thread{'s' * (count > 1)}")
                rows += _rows(case, count, QUICK if quick else FULL)
    finally:
        torch.set_num_threads(usual)
    command = f"laconic bench auto {' '.join(tensors)} --threads {threads}{' --quick' * quick}"
    return AutoStudy(command, data.SEED, machine.describe(), costs.current().machine, tuple(rows))


def _rows(case: Case, threads: int, effort: Effort) -> Iterator[Row]:
    codes = case.codes
    takers = [taker for taker in installed() if main_spec(taker, TensorSpec.of(codes)) is not None]
    autos = {link: Auto(f"link:{link:g}") for link in LINKS}
    singles = {str(taker.stage): f"{case.before}{taker.stage}" for taker in takers}
    whole = time_each(singles | {str(auto): f"{case.before}{auto}" for auto in autos.values()}, case.x, effort)
    alone = time_each({str(taker.stage): str(taker.stage) for taker in takers}, codes, effort)
    for link, auto in autos.items():
        yield _row(case, codes, threads, link, auto, takers, whole, alone)


def _row(
    case: Case,
    codes: Tensor,
    threads: int,
    link: float,
    auto: Auto,
    takers: Sequence[Candidate],
    whole: Mapping[str, Timed],
    alone: Mapping[str, Timed],
) -> Row:
    total = partial(_seconds, link=link)
    chosen = min(auto.forecasts([codes]), key=lambda forecast: forecast.cost)
    singles = {str(taker.stage): total(whole[str(taker.stage)]) for taker in takers}
    return Row(
        data=case.name,
        before=case.before.rstrip("|"),
        shape=list(case.x.shape),
        dtype=str(case.x.dtype).removeprefix("torch."),
        codes_bytes=codes.nbytes,
        threads=threads,
        gb_per_s=link,
        chosen=str(chosen.candidate.stage),
        best=min(singles, key=lambda name: singles[name]),
        modelled=chosen.cost,
        measured=total(alone[str(chosen.candidate.stage)]),
        auto=total(whole[str(auto)]),
        singles=singles,
        encoded_bytes={name: whole[name].nbytes for name in singles},
    )


def _seconds(timed: Timed, link: float) -> float:
    return timed.encode + timed.nbytes / (link * 1e9) + timed.decode
