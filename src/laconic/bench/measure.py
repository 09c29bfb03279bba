"""Timing that can be trusted: warm, checked, in turns, and with its spread.

    warm up each --> check each --> round 1: A B C, round 2: A B C, ...  --> median and quartiles of each

All that is compared runs in one race, round by round, so that a machine that slows down slows all of it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import NamedTuple

import torch

from laconic.errors import LaconicError
from laconic.stage import TensorSpec

SLICE_SECONDS = 1e-2
"""What takes less is repeated until it takes this long: the clock and the loop must not be what is measured."""

SETTLE_SECONDS = 2e-2
"""Waited before each turn: PyTorch's threads spin for milliseconds after the turn before, on the next one's cores.
Among turns of one thread there is nothing to wait for."""


class WrongResult(LaconicError):  # noqa: N818  # reads as what it is
    """What was to be timed does not do its job: it has no speed."""


@dataclass(frozen=True)
class Effort:
    """How long a race lasts: so many seconds, and so many rounds at least."""

    seconds: float
    rounds: int


class Timing(NamedTuple):
    """Seconds for one run."""

    median: float
    q1: float
    q3: float
    rounds: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """
        >>> Timing.of([3.0, 1.0, 2.0])
        Timing(median=2.0, q1=1.5, q3=2.5, rounds=3)
        """
        q1, median, q3 = statistics.quantiles(seconds, n=4, method="inclusive")
        return cls(median, q1, q3, len(seconds))


@dataclass(frozen=True)
class Contender:
    """One way to do a job, and what a table must say about it."""

    name: str
    what: str
    run: Callable[[], object]
    x: TensorSpec
    """The uncompressed tensor: every speed counts its bytes and its samples."""
    included: str
    check: Callable[[], None] = lambda: None
    """Called once, after a run; raises WrongResult."""
    codec: str | None = None
    threads: int | None = None
    """Other than those of the whole measurement."""
    parameters: Mapping[str, int] = field(default_factory=dict)
    clock: Callable[[int], float] | None = None
    """Seconds for so many runs, of what runs in another process and is timed there."""


@dataclass(frozen=True)
class Race:
    """What is to be compared. `prepare` allocates it, when its turn has come."""

    section: str
    title: str
    prepare: Callable[[], Sequence[Contender]]


def race(contenders: Sequence[Contender], effort: Effort, device: torch.device) -> list[Timing]:
    """Times contenders in turns. WrongResult if one of them does not do its job."""
    threads = torch.get_num_threads()
    try:
        loops = [_warm_up(contender, device, threads) for contender in contenders]
        for contender in contenders:
            contender.check()
        seconds: list[list[float]] = [[] for _ in contenders]
        end = perf_counter() + effort.seconds
        while len(seconds[0]) < effort.rounds or perf_counter() < end:
            for contender, count, taken in zip(contenders, loops, seconds, strict=True):
                taken.append(_time(contender, count, device, threads))
        return [Timing.of(taken) for taken in seconds]
    finally:
        torch.set_num_threads(threads)


def synchronise(device: torch.device) -> None:
    """Waits until the device has done all that was asked of it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _warm_up(contender: Contender, device: torch.device, threads: int) -> int:
    """Runs it twice; gives how often a timed slice must repeat it."""
    _time(contender, 1, device, threads)
    return math.ceil(SLICE_SECONDS / max(_time(contender, 1, device, threads), 1e-7))


def _time(contender: Contender, loops: int, device: torch.device, threads: int) -> float:
    """Seconds for one run: the one clock of every number."""
    before, now = torch.get_num_threads(), contender.threads or threads
    _use_threads(contender, now)
    synchronise(device)
    if max(before, now) > 1:
        sleep(SETTLE_SECONDS)
        if loops > 1:
            _clock(contender, 1, device)  # cores that slept are slow at first
    return _clock(contender, loops, device) / loops


def _clock(contender: Contender, loops: int, device: torch.device) -> float:
    if contender.clock is not None:
        return contender.clock(loops)
    start = perf_counter()
    for _ in range(loops):
        contender.run()
    synchronise(device)
    return perf_counter() - start


def _use_threads(contender: Contender, threads: int) -> None:
    """The run after a change starts or stops threads, so it is not timed."""
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
        contender.run()
