"""The encoder that chooses another one, by a sample of the codes and what encoders cost here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from laconic.encoders import costs
from laconic.encoders.candidates import CANDIDATES, RAW, Candidate, Outcome, installed, main_spec
from laconic.encoders.memory import INTEGERS, as_codes, refuse_wide
from laconic.encoders.sample import Sample
from laconic.errors import CorruptData, SpecError
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec

MOST_OF_A_BATCH = 16
"""Tensors that are sampled to decide for as many as there are."""
WORTH_ITS_TIME = 0.9
"""For prefer=speed: what takes more than this share of the bytes is not compressed."""


@dataclass(frozen=True)
class Auto(Stage):
    """Chooses the encoder: the fewest bytes (`prefer=ratio`), the least time to encode and decode (`prefer=speed`),
    or to encode, send and decode (`prefer=link:10`, in GB/s). What is stored names the one it chose."""

    prefer: str = "ratio"

    name: ClassVar[str] = "auto"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "bound:rel=1e-2|auto:prefer=link:10"

    def __post_init__(self) -> None:
        bandwidth = self._bandwidth
        if self.prefer not in ("ratio", "speed") and not (bandwidth and 0 < bandwidth < math.inf):
            raise SpecError(
                f"auto: expected prefer=ratio, prefer=speed or prefer=link:<GB/s>, got '{self.prefer}'. "
                f"Try '{self.example}'"
            )

    @property
    def _bandwidth(self) -> float | None:
        """In GB/s; None where there is no link, or it is none."""
        word, _, number = self.prefer.partition(":")
        try:
            return float(number) if word == "link" else None
        except ValueError:
            return None

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        refuse_wide(self, x)
        mains = [main_spec(candidate, x) for candidate in installed()]
        return PartsSpec(PartSpec.up_to(max(main.tensor.nbytes for main in mains if main), torch.uint8))

    def resolved(self, batch: Sequence[Tensor]) -> Stage:
        if batch[0].numel() == 0:
            return RAW.stage
        return min(self.forecasts(batch), key=lambda forecast: forecast.cost).candidate.stage

    def choices(self) -> Sequence[Stage]:
        return [candidate.stage for candidate in CANDIDATES if candidate.known]

    def forecasts(self, batch: Sequence[Tensor], *, every: bool = False) -> Iterator[Forecast]:
        """What is foretold for each of tensors of one spec, by encoder: those that may be the best, or `every` one."""
        x = batch[0]
        terms = Terms(self.prefer, self._bandwidth, x.numel() * x.element_size(), torch.get_num_threads())
        sample = sample_of(batch, thorough=self.prefer == "ratio")
        best = math.inf
        for candidate, curve in _plan(TensorSpec.of(x), terms.threads, costs.current()):
            if every or terms.least(curve) < best:
                forecast = terms.forecast(candidate, curve, candidate.outcome(sample, candidate.stage))
                best = min(best, forecast.cost)
                yield forecast

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        raise SpecError(f"'{self}' is resolved before it encodes. Use laconic.codec('{self}')")

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        raise CorruptData(f"'{self}' has written nothing: what it chose is stored in its place")


class Forecast(NamedTuple):
    """What an encoder would cost: in seconds, or where only the ratio counts in bytes."""

    candidate: Candidate
    outcome: Outcome
    seconds: costs.Seconds
    cost: float


class Terms(NamedTuple):
    """By what encoders are compared: the preference, GB/s of the link if there is one, bytes of codes, and threads."""

    prefer: str
    bandwidth: float | None
    nbytes: int
    threads: int

    def forecast(self, candidate: Candidate, curve: costs.Curve | None, outcome: Outcome) -> Forecast:
        seconds = curve.at(outcome.literal_ratio, outcome.repeated) if curve else costs.Seconds(0.0, 0.0)
        return Forecast(candidate, outcome, seconds, self._cost(curve, outcome.nbytes, seconds.both))

    def least(self, curve: costs.Curve | None) -> float:
        """What an encoder costs whatever the codes are: if they became nothing."""
        return 0.0 if self.prefer == "ratio" or curve is None else curve.least

    def _cost(self, curve: costs.Curve | None, nbytes: float, seconds: float) -> float:
        if self.prefer == "ratio":
            return nbytes
        if curve is None:  # nobody knows how long it takes
            return math.inf
        if self.bandwidth is None:
            return seconds if nbytes <= WORTH_ITS_TIME * self.nbytes else seconds + 1e6
        return seconds + nbytes / (self.bandwidth * 1e9)


def sample_of(batch: Sequence[Tensor], thorough: bool) -> Sample:
    """Of one tensor's codes, or of some of many tensors' that are alike."""
    most = min(len(batch), MOST_OF_A_BATCH)
    some = [_row_of(batch[i * len(batch) // most]) for i in range(most)]
    return Sample(some[0] if most == 1 else torch.cat(some), TensorSpec.of(batch[0]), thorough)


def _row_of(x: Tensor) -> Tensor:
    codes = as_codes(x, x.dtype if not x.dtype.is_floating_point else INTEGERS[x.element_size()])
    return codes.view(-1)


@lru_cache(maxsize=1024)
def _plan(x: TensorSpec, threads: int, model: costs.CostModel) -> tuple[tuple[Candidate, costs.Curve | None], ...]:
    """Who takes such codes, with what it costs them: first those whose outcome is known soonest."""
    takers = [candidate for candidate in installed() if main_spec(candidate, x) is not None]
    curves = [(taker, model.curve(taker.name, x.dtype.itemsize, x.nbytes, threads)) for taker in takers]
    return tuple(sorted(curves, key=lambda pair: (pair[0].by_trial, pair[1].least if pair[1] else 0.0)))
