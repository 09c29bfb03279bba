"""The main job in about a minute: compress pictures, train on compressed pictures, and put both into numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from torch import Tensor

from laconic.bench import machine
from laconic.bench.measure import Effort
from laconic.experiments import denoise, rates, samples
from laconic.experiments.denoise import Denoising, Outcome
from laconic.experiments.rates import Point, Rate
from laconic.experiments.train import Recipe

CODECS = (
    "dct:chop=7",
    "dct:chop=6",
    "dct:chop=4",
    "dct:chop=2",
    "dct:chop=7,keep=triangle",
    "zfp:chop=2",
    "hadamard:chop=4",
    "dct:chop=4|cast:dtype=float16",
    "dct:chop=4|affine:bits=8",
)
EFFORT = Effort(seconds=3.0, rounds=5)


@dataclass(frozen=True)
class Settings:
    """How much of the minute goes into what."""

    steps: int = 100
    seeds: int = 3
    codecs: tuple[str, ...] = CODECS
    effort: Effort = EFFORT

    @property
    def tasks(self) -> int:
        """How often `run` will call `begin`."""
        return len(self.codecs) + 2 + self.seeds * (len(self.codecs) + 1)


@dataclass(frozen=True)
class Result:
    """All that was measured: what the table, the page and the JSON file show."""

    machine: machine.Machine
    settings: Settings
    seconds: float
    rates: list[Rate]
    sweep: list[Point]
    denoising: list[Outcome]

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def change(self, outcome: Outcome, *, raw: bool = False) -> list[float]:
        """By how many percent the test loss differs from training uncompressed: one number for each seed."""
        base = self.denoising[0]
        pairs = zip(outcome.test_raw, base.test_raw, strict=True) if raw else zip(outcome.test, base.test, strict=True)
        return [100 * (mine / theirs - 1) for mine, theirs in pairs]


@dataclass(frozen=True)
class Demo:
    """The numbers, and the pictures that belong to them."""

    result: Result
    pictures: Tensor
    denoising: Denoising


def run(settings: Settings, begin: Callable[[str], None]) -> Demo:
    """`begin` is told what begins now."""
    start = perf_counter()
    pictures = samples.pictures()
    measured = rates.measure(settings.codecs, pictures, settings.effort, begin)
    begin("rate and distortion")
    points = rates.sweep(pictures)
    trained = denoise.run(settings.codecs, range(settings.seeds), Recipe(settings.steps), begin)
    seconds = perf_counter() - start
    result = Result(machine.describe(), settings, seconds, measured, points, trained.outcomes)
    return Demo(result, pictures, trained)
