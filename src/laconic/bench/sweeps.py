"""The sweeps of the paper: resolution, batch, and the triangle against the square."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from laconic.bench.measure import Contender, Race
from laconic.bench.peers import codec_pair, copying, dense_pair
from laconic.bench.plan import Plan


def resolution(plan: Plan) -> Iterator[Race]:
    """Throughput against the size of an image."""
    batch, sizes = (8, [32, 64, 128, 256]) if plan.quick else (100, [32, 64, 128, 256, 512])
    for size in sizes:
        yield from _every_chop("resolution", plan, (batch, 3, size, size))


def batch(plan: Plan) -> Iterator[Race]:
    """Throughput against the number of images in one call."""
    for count in [10, 100, 500] if plan.quick else [10, 100, 500, 1000, 2000, 5000]:
        yield from _every_chop("batch", plan, (count, 3, 64, 64))


def triangle(plan: Plan) -> Iterator[Race]:
    """What it costs to keep i + j < chop only, with its scatter and gather."""
    shape = (100, 3, 32, 32)
    for chop in plan.chops:
        yield Race("triangle", title(shape, chop), partial(_both_keeps, plan, shape, chop))


def title(shape: Sequence[int], chop: int) -> str:
    """
    >>> title((100, 3, 32, 32), 4)
    '100 x 3 x 32 x 32, chop=4'
    """
    return f"{' x '.join(map(str, shape))}, chop={chop}"


def _every_chop(section: str, plan: Plan, shape: tuple[int, ...]) -> Iterator[Race]:
    for chop in plan.chops:
        yield Race(section, title(shape, chop), partial(_beside_peers, plan, shape, chop))


def _beside_peers(plan: Plan, shape: tuple[int, ...], chop: int) -> list[Contender]:
    x = plan.images(*shape)
    return [copying(x), *dense_pair(chop, x), *codec_pair(chop, x)]


def _both_keeps(plan: Plan, shape: tuple[int, ...], chop: int) -> list[Contender]:
    x = plan.images(*shape)
    return [*codec_pair(chop, x, name="square"), *codec_pair(chop, x, keep="triangle", name="triangle")]
