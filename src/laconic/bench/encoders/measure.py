"""Runs the encoders study: for each load, everybody in one race."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from laconic.bench import machine
from laconic.bench.encoders import floors, peers
from laconic.bench.encoders.data import Load
from laconic.bench.encoders.plan import Plan
from laconic.bench.encoders.study import EncodersStudy, Refusal, Row
from laconic.bench.encoders.trials import Trial, ours, quantised_only
from laconic.bench.measure import race
from laconic.bench.rate.peers import forget
from laconic.encoders.peers.child import PeerError

Begin = Callable[[str], None]


def steps(plan: Plan) -> int:
    """How often `begin` will be called."""
    return len(list(plan.loads())) + len(floors.RACES)


def measure(plan: Plan, begin: Begin) -> EncodersStudy:
    """Measures everything; `begin` is told what starts."""
    usual = torch.get_num_threads()
    torch.set_num_threads(plan.threads)
    try:
        encoders, refused = plan.able()
        entries, versions = peers.installed()
        rows: list[Row] = []
        for load in plan.loads():
            begin(load.name)
            found, failed = _measured(plan, load, encoders, entries)
            rows += found
            refused += failed
        cases = tuple(load.case() for load in plan.loads())
        verdicts = [*floors.verdicts(cases, rows)]
        for title, special in floors.RACES.items():
            begin(title)
            verdicts += special(plan, encoders)
        return EncodersStudy(
            plan.command,
            floors.SEED,
            machine.describe(),
            versions,
            plan.links,
            tuple(verdicts),
            cases,
            tuple(rows),
            tuple(refused),
        )
    finally:
        torch.set_num_threads(usual)


def _measured(
    plan: Plan, load: Load, encoders: Sequence[str], entries: Sequence[peers.Entry]
) -> tuple[list[Row], list[Refusal]]:
    expected = quantised_only(load)
    trials = [ours(encoder, load, expected, plan.threads) for encoder in encoders]
    refused = []
    for entry in entries:
        try:
            trials.append(peers.trial(entry, load, expected, plan.threads))
        except PeerError as error:
            refused.append(Refusal(load.name, entry.label, " ".join(str(error).split())))
    rows = _raced(plan, load, trials)
    forget()
    return rows, refused


def _raced(plan: Plan, load: Load, trials: Sequence[Trial]) -> list[Row]:
    timings = race([one for trial in trials for one in trial.pair], plan.effort_for(load), torch.device("cpu"))
    pairs = zip(timings[::2], timings[1::2], strict=True)
    return [trial.row(load, *pair) for trial, pair in zip(trials, pairs, strict=True)]
