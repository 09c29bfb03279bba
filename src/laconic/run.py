"""How tensors go through a chain, and back: one alone, or many, a step for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from torch import Tensor

from laconic.batch import side_by_side, worth_threads
from laconic.checks import check_parts
from laconic.encoded import Encoded, Link, boundary_specs
from laconic.fusion import Step, steps
from laconic.stage import Context, Parts, Stage, TensorSpec

Links = tuple[Link, ...]


class Run:
    """A tensor on its way through a chain: how far it came, and what it left beside."""

    def __init__(self, x: Tensor, rows: Tensor | None = None) -> None:
        self.context, self.main = Context(x, rows=rows), x
        self.specs = [TensorSpec.of(x)]
        self.side: dict[str, Tensor] = {}
        self.own: Links | None = None
        """Its links, where the last stage leaves its work to another."""

    def over(self, links: Links, out: Encoded | None = None) -> Run:
        """Goes on to the end of `links`; the last one's parts in the memory of `out` when given."""
        for step in self.ahead(links):
            at_end = step.first + len(step.links) == len(links)
            if at_end and step.defers:
                self.own = ending(links, step.links[-1].stage.resolved([self.main]))
                step = step._replace(links=self.own[-1:])
            room = Parts(out.parts["main"], _side(out, len(links) - 1)) if out is not None and at_end else None
            self.take(step, step.encode(self.main, self.context, room))
        return self

    def ahead(self, links: Links) -> tuple[Step, ...]:
        """The steps that are left."""
        done = len(self.specs) - 1
        links = self.own or links
        rest = links[done:] if done else links
        found = steps(rest, boundary_specs(rest, self.specs[-1]))
        return tuple(step._replace(first=done + step.first) for step in found) if done else found

    def take(self, step: Step, given: Sequence[Parts]) -> None:
        """Goes on by a step, which gave this."""
        for i, parts in enumerate(given, step.first):
            self.specs.append(TensorSpec.of(parts.main))
            for name, part in parts.side.items():
                self.side[f"{i}.{name}"] = part
        self.main = given[-1].main

    def encoded(self, links: Links) -> Encoded:
        return Encoded(self.own or links, tuple(self.specs), {"main": self.main, **self.side})


_WORTH_A_CHOICE = 1 << 16
"""Bytes of codes: for smaller tensors of one spec, one choice serves all of them."""


def resolve(runs: Sequence[Run], links: Links) -> None:
    """Finds what does the work of the last stage, for tensors that came as far as that."""
    alike: dict[object, list[Run]] = {}
    for run in runs:
        small = run.main.nbytes < _WORTH_A_CHOICE
        alike.setdefault(run.specs[-1] if small else run, []).append(run)
    for some in alike.values():
        own = ending(links, links[-1].stage.resolved([run.main for run in some]))
        for run in some:
            run.own = own


@lru_cache(maxsize=1024)
def ending(links: Links, stage: Stage) -> Links:
    """With this stage as the last. Always the same tuple: what is known of it is found sooner."""
    return (*links[:-1], Link(stage, stage.version))


class _Way(NamedTuple):
    """Those of many that take the same steps."""

    steps: tuple[Step, ...]
    places: list[int]


def all_over(runs: Sequence[Run], links: Links, nbytes: int) -> None:
    """`over` for each of many tensors that came equally far, and had so many bytes in all."""
    if worth_threads(len(runs), nbytes):
        side_by_side(lambda run: run.over(links), runs)
        return
    ahead: dict[tuple[TensorSpec, Links | None], tuple[Step, ...]] = {}
    for run in runs:
        if (run.specs[-1], run.own) not in ahead:
            ahead[run.specs[-1], run.own] = run.ahead(links)
    for way in _ways([ahead[run.specs[-1], run.own] for run in runs]):
        mine = [runs[place] for place in way.places]
        for step in way.steps:
            given = step.encode_many([run.main for run in mine], [run.context for run in mine])
            for run, parts in zip(mine, given, strict=True):
                run.take(step, parts)


def decoded(enc: Encoded, out: Tensor | None = None) -> Tensor:
    """The tensor that went in, of parts that are as promised."""
    x = enc.parts["main"]
    for step in reversed(steps(enc.chain, enc.specs)):
        x = step.decode(x, _sides(enc, step), _specs(enc, step), out if step.first == 0 else None)
    return x


def decode_all(items: Sequence[Encoded]) -> list[Tensor]:
    """Every tensor that went in."""
    for enc in items:
        check_parts(enc)
    if worth_threads(len(items), sum(enc.spec.nbytes for enc in items)):
        return side_by_side(decoded, items)
    found = [enc.parts["main"] for enc in items]
    for way in _ways([steps(enc.chain, enc.specs) for enc in items]):
        mine = [items[place] for place in way.places]
        tensors = [found[place] for place in way.places]
        for step in reversed(way.steps):
            sides, specs = [_sides(enc, step) for enc in mine], [_specs(enc, step) for enc in mine]
            tensors = step.decode_many(tensors, sides, specs)
        for place, x in zip(way.places, tensors, strict=True):
            found[place] = x
    return found


def _ways(plans: Sequence[tuple[Step, ...]]) -> list[_Way]:
    ways: dict[tuple[Step, ...], _Way] = {}
    for place, plan in enumerate(plans):
        if plan not in ways:
            ways[plan] = _Way(plan, [])
        ways[plan].places.append(place)
    return list(ways.values())


def _sides(enc: Encoded, step: Step) -> list[dict[str, Tensor]]:
    return [_side(enc, i) for i in range(step.first, step.first + len(step.links))]


def _specs(enc: Encoded, step: Step) -> tuple[TensorSpec, ...]:
    return enc.specs[step.first : step.first + len(step.links) + 1]


def _side(enc: Encoded, i: int) -> dict[str, Tensor]:
    prefix = f"{i}."
    return {name.removeprefix(prefix): part for name, part in enc.parts.items() if name.startswith(prefix)}
