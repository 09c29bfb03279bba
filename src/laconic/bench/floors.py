"""How fast laconic has to be on a CPU, and whether it is.

Each floor is a ratio within one race, so that it means the same on a slow machine and on a fast one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from laconic import chain
from laconic.bench.measure import Contender, Race
from laconic.bench.peers import codec_pair, copying, dct, dense_pair, round_trip_check
from laconic.bench.plan import Plan
from laconic.bench.study import Row, Verdict, by_race
from laconic.bench.sweeps import title
from laconic.stage import TensorSpec

SECTION = "floors"
SHAPE = (300, 256, 256)
SMALL = (32, 32)
SMALL_CHOP = 4


class Floors(NamedTuple):
    """The least speed of a chop, as a multiple of the peer's."""

    dense: float
    copy: float
    copy_aim: float


FLOORS = {2: Floors(6, 0.5, 0.9), 4: Floors(12, 0.5, 0.9), 7: Floors(12, 0.3, 0.6)}
TRIANGLE_TIME = 1.3
TWO_THREADS_SPEED = 1.7
UINT8_TIME = 1.0
SMALL_CALL_US = 30


def races(plan: Plan) -> Iterator[Race]:
    for chop in FLOORS:
        yield Race(SECTION, title(SHAPE, chop), partial(_large, plan, chop))
    yield Race(SECTION, title(SMALL, SMALL_CHOP), partial(_small, plan))


def verdicts(rows: Sequence[Row]) -> tuple[Verdict, ...]:
    """What the rows of the races above say about every floor."""
    races = by_race(row for row in rows if row.section == SECTION)
    found = []
    for chop, floors in FLOORS.items():
        for what in ("encode", "decode"):
            found += _of_large(f"chop={chop} {what}", races[title(SHAPE, chop)], what, floors)
    for (name, what), row in races[title(SMALL, SMALL_CHOP)].items():
        found.append(
            Verdict(f"4 KB {what}: time of a call, {name}", row.seconds * 1e6, SMALL_CALL_US, None, False, " us")
        )
    return tuple(found)


def _of_large(name: str, race: dict[tuple[str, str], Row], what: str, floors: Floors) -> list[Verdict]:
    def over(ours: str, peer: str) -> float:
        return race[peer, what].seconds / race[ours, what].seconds

    copy_speed = race["copy_", "copy"].seconds / race["square", what].seconds
    found = [
        Verdict(f"{name}: speed over dense", over("square", "dense"), floors.dense, None, True, "x"),
        Verdict(f"{name}: speed over copy_", copy_speed, floors.copy, floors.copy_aim, True, "x"),
        Verdict(f"{name}: time of triangle over square", over("square", "triangle"), TRIANGLE_TIME, None, False, "x"),
        Verdict(f"{name}: time of uint8 over float32", over("square", "uint8"), UINT8_TIME, None, False, "x"),
    ]
    if ("2 threads", what) in race:
        speed = over("2 threads", "1 thread")
        found.append(Verdict(f"{name}: speed of 2 threads over 1", speed, TWO_THREADS_SPEED, None, True, "x"))
    return found


def _large(plan: Plan, chop: int) -> list[Contender]:
    x, pixels = plan.images(*SHAPE), plan.images(*SHAPE, dtype=torch.uint8)
    square = codec_pair(chop, x, name="square")
    scaling = {"1 thread": 1, "2 threads": 2} if plan.threads > 1 else {}
    return [
        copying(x),
        *dense_pair(chop, x),
        *square,
        *codec_pair(chop, x, keep="triangle", name="triangle"),
        *codec_pair(chop, pixels, name="uint8"),
        *(replace(contender, name=name, threads=n) for name, n in scaling.items() for contender in square),
        *(replace(copying(x), name=f"copy_, {name}", threads=n) for name, n in scaling.items()),
    ]


def _small(plan: Plan) -> list[Contender]:
    """One image of 4 KB: the call itself, not the work."""
    x, codec = plan.images(*SMALL), chain.codec(dct(SMALL_CHOP))
    enc, spec = codec.encode(x), TensorSpec.of(x)
    check = round_trip_check("laconic", x, lambda: chain.decode(enc), SMALL_CHOP)
    allocating = [("encode", lambda: codec.encode(x)), ("decode", lambda: chain.decode(enc))]
    return [
        *(replace(contender, name="out=") for contender in codec_pair(SMALL_CHOP, x)),
        *(
            Contender("allocating", what, run, spec, "the call, its result allocated", check)
            for what, run in allocating
        ),
    ]
