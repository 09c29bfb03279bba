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
NOT_WORTH_IT = 1e6
"""Seconds: more than anything takes."""


@dataclass(frozen=True)
class Auto(Stage):
    """Chooses the encoder: the fewest bytes (`prefer=ratio`), the least time to encode and decode (`prefer=speed`),
    or to encode, send and decode (`prefer=link:10`, in GB/s). What is stored names the one it chose."""

    prefer: str = "ratio"

    name: ClassVar[str] = "auto"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "bound:rel=1e-2|auto:prefer=link:10"

    def __post_init__(self) -> None:
        if self.prefer not in ("ratio", "speed") and not 0 < (bandwidth(self.prefer) or 0) < math.inf:
            raise SpecError(
                f"auto: expected prefer=ratio, prefer=speed or prefer=link:<GB/s>, got '{self.prefer}'. "
                f"Try '{self.example}'"
            )

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        refuse_wide(self, x)
        mains = [main_spec(candidate, x) for candidate in installed()]
        return PartsSpec(PartSpec.up_to(max(main.tensor.nbytes for main in mains if main), torch.uint8))

    def resolved(self, batch: Sequence[Tensor]) -> Stage:
        return min(self.forecasts(batch), key=lambda forecast: forecast.cost).candidate.stage

    def choices(self) -> Sequence[Stage]:
        return [candidate.stage for candidate in CANDIDATES if candidate.known]

    def forecasts(self, batch: Sequence[Tensor], *, every: bool = False) -> Iterator[Forecast]:
        """What is foretold for each of tensors of one spec, by encoder: those that may be the best, or `every` one."""
        plan = _plan(TensorSpec.of(batch[0]), self.prefer, torch.get_num_threads(), costs.current())
        best = plan.raw.cost
        yield plan.raw
        if plan.first_least + plan.sample >= best and not every:
            return  # whatever it said, a sample would not be worth its time
        sample = sample_of(batch, thorough=self.prefer == "ratio")
        for candidate, curve, least in plan.others:
            hope = None if every or least >= best or sample.thorough else candidate.hope(sample)
            if hope is not None:
                least = plan.terms.forecast(candidate, curve, hope).cost + plan.sample
            if least < best or every:
                forecast = plan.terms.forecast(candidate, curve, candidate.outcome(sample))
                best = min(best, forecast.cost)
                yield forecast

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        raise SpecError(f"'{self}' is resolved before it encodes. Use laconic.codec('{self}')")

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        raise CorruptData(f"'{self}' has written nothing: what it chose is stored in its place")


def bandwidth(prefer: str) -> float | None:
    """In GB/s; None where there is no link, or no number that says how fast it is."""
    word, _, number = prefer.partition(":")
    try:
        return float(number) if word == "link" else None
    except ValueError:
        return None


class Forecast(NamedTuple):
    """What an encoder would cost: in seconds, or where only the ratio counts in bytes."""

    candidate: Candidate
    outcome: Outcome
    cost: float


class Terms(NamedTuple):
    """By what encoders are compared: the preference, GB/s of the link if there is one, and the bytes of codes."""

    prefer: str
    bandwidth: float | None
    nbytes: int

    def forecast(self, candidate: Candidate, curve: costs.Curve | None, outcome: Outcome) -> Forecast:
        seconds = curve.at(outcome.ratio, outcome.others) if curve else 0.0
        return Forecast(candidate, outcome, self.cost(curve, outcome.nbytes, seconds))

    def least(self, curve: costs.Curve | None) -> float:
        """What an encoder costs at least: if the codes became nothing, in no time where there is no better guess."""
        return self.cost(curve, 0, curve.least if curve else 0.0)

    def cost(self, curve: costs.Curve | None, nbytes: float, seconds: float) -> float:
        if self.prefer == "ratio":
            return nbytes
        if curve is None:  # nobody knows how long it takes
            return math.inf
        if self.bandwidth is None:
            return seconds if nbytes <= WORTH_ITS_TIME * self.nbytes else seconds + NOT_WORTH_IT
        return seconds + nbytes / (self.bandwidth * 1e9)


class Plan(NamedTuple):
    """What is known before the codes are: the cost of `raw`, and of other encoders the least they may cost."""

    terms: Terms
    raw: Forecast
    others: tuple[tuple[Candidate, costs.Curve | None, float], ...]
    """First those whose outcome is soonest known."""
    sample: float
    """What it costs to know more; nothing where time does not count."""

    @property
    def first_least(self) -> float:
        return min((least for _, _, least in self.others), default=math.inf)


@lru_cache(maxsize=1024)
def _plan(x: TensorSpec, prefer: str, threads: int, model: costs.CostModel) -> Plan:
    terms = Terms(prefer, bandwidth(prefer), x.nbytes)
    takers = [candidate for candidate in installed() if main_spec(candidate, x) is not None]
    curves = {taker: model.curve(taker.name, x.dtype.itemsize, x.nbytes, threads) for taker in takers}
    raw = terms.forecast(RAW, curves.pop(RAW), Outcome(x.nbytes, 1.0))
    others = [(taker, curve, terms.least(curve)) for taker, curve in curves.items() if x.numel]
    others.sort(key=lambda other: (other[0].by_trial, other[2]))
    return Plan(terms, raw, tuple(others), 0.0 if prefer == "ratio" else model.sample)


def sample_of(batch: Sequence[Tensor], thorough: bool) -> Sample:
    """Of one tensor's codes, or of some of many tensors' that are alike."""
    most = min(len(batch), MOST_OF_A_BATCH)
    some = [_row_of(batch[i * len(batch) // most]) for i in range(most)]
    return Sample(some[0] if most == 1 else torch.cat(some), TensorSpec.of(batch[0]), thorough)


def _row_of(x: Tensor) -> Tensor:
    plain = not x.dtype.is_floating_point and x.is_contiguous() and not x.requires_grad
    codes = x if plain else as_codes(x, INTEGERS[x.element_size()] if x.dtype.is_floating_point else x.dtype)
    return codes.view(-1)
