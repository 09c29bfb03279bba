"""Runs the rate study: for each data set and bound, everybody in one race."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from laconic.bench import machine
from laconic.bench.measure import Contender, race
from laconic.bench.rate import floors, peers
from laconic.bench.rate.data import IMAGES, SEED, DataSet
from laconic.bench.rate.plan import Plan, at_bound
from laconic.bench.rate.study import RateStudy, Refusal, Row
from laconic.bench.rate.trials import Trial, ours
from laconic.bench.study import Verdict
from laconic.encoders.peers.child import PeerError

CPU = torch.device("cpu")
Begin = Callable[[str], None]


def steps(plan: Plan) -> int:
    """How often `begin` will be called."""
    return len(plan.data) * len(plan.bounds) + len(floors.RACES) * _has_images(plan)


def _has_images(plan: Plan) -> bool:
    return any(data.name == IMAGES for data in plan.data)


def measure(plan: Plan, begin: Begin) -> RateStudy:
    """Measures everything; `begin` is told what starts."""
    if _has_images(plan):
        floors.check()
    usual = torch.get_num_threads()
    torch.set_num_threads(plan.threads)
    try:
        entries, versions = peers.installed()
        rows: list[Row] = []
        refused: list[Refusal] = []
        for data in plan.data:
            for bound in plan.bounds:
                begin(f"{data} at {bound:g}")
                cell = _Cell(plan, data, bound)
                rows += cell.measured(entries)
                refused += cell.refused
        verdicts = [*floors.verdicts(rows), *_special(plan, begin)]
        return RateStudy(plan.command, SEED, machine.describe(), versions, tuple(verdicts), tuple(rows), tuple(refused))
    finally:
        torch.set_num_threads(usual)


def _special(plan: Plan, begin: Begin) -> Iterator[Verdict]:
    """Floors that need data of their own, made from the built-in images."""
    for data in plan.data:
        if data.name == IMAGES:
            for title, special in floors.RACES.items():
                begin(title)
                yield from special(data, plan)


class _Cell:
    """One data set at one bound."""

    def __init__(self, plan: Plan, data: DataSet, bound: float) -> None:
        self.plan, self.data, self.bound = plan, data, bound
        self.threads = sorted({1, plan.threads})
        self.refused: list[Refusal] = []

    def measured(self, entries: list[peers.Entry]) -> list[Row]:
        trials = [
            ours(text, at_bound(text, self.bound), self.data, self.bound, self.threads)
            for text in self.plan.chains(self.data)
        ]
        trials += [found for entry in entries if (found := self._peer(entry)) is not None]
        timings = iter(race(_in_order(trials), self.plan.effort, CPU))
        taken = {key: next(timings) for key in _keys(trials)}
        peers.forget()
        return [
            row
            for i, trial in enumerate(trials)
            for row in trial.rows(self.data, self.bound, [taken[i, j] for j in range(len(trial.contenders))])
        ]

    def _peer(self, entry: peers.Entry) -> Trial | None:
        if not peers.suits(entry, self.data):
            return None
        try:
            return peers.trial(entry, self.data, self.bound, self.threads)
        except PeerError as error:
            self.refused.append(Refusal(self.data.name, self.bound, entry.label, " ".join(str(error).split())))
            return None


def _keys(trials: list[Trial]) -> list[tuple[int, int]]:
    """Trials and their contenders by threads: changing their number costs a run."""
    keys = [(i, j) for i, trial in enumerate(trials) for j in range(len(trial.contenders))]
    return sorted(keys, key=lambda key: trials[key[0]].contenders[key[1]].threads or 1)


def _in_order(trials: list[Trial]) -> list[Contender]:
    return [trials[i].contenders[j] for i, j in _keys(trials)]
