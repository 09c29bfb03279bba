"""Adjacent stages in one pass over memory, where there is an operator for that: the same bytes, sooner.

A chain runs step by step. A step is one stage, or several that a `Fusion` covers (see `registry.FUSIONS`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from laconic import registry
from laconic.encoded import Link
from laconic.memo import remembered
from laconic.stage import Context, Parts, Stage, TensorSpec

Side = Mapping[str, Tensor]


class Fusion(ABC):
    """Several stages as one. What lies between them is never made: it stands on the meta device."""

    def takes(self, stages: Sequence[Stage], x: TensorSpec) -> bool:
        """Whether it does for such a tensor."""
        return x.numel > 0

    @abstractmethod
    def encode(self, stages: Sequence[Stage], x: Tensor, ctx: Context, room: Tensor | None) -> list[Parts]:
        """What each stage would have given; the last one's `main` lies in `room` when given."""

    @abstractmethod
    def decode(
        self,
        stages: Sequence[Stage],
        main: Tensor,
        sides: Sequence[Side],
        specs: Sequence[TensorSpec],
        out: Tensor | None,
    ) -> Tensor:
        """The way back; `specs` are the tensors before the first stage and after each."""


class Step(NamedTuple):
    """Some links of a chain, from the `first`-th on, that run at once."""

    first: int
    links: tuple[Link, ...]
    fusion: Fusion | None

    @property
    def defers(self) -> bool:
        """Whether another stage does the work, once the data are there."""
        return self.links[-1].stage.defers

    def encode(self, x: Tensor, ctx: Context, room: Parts | None) -> list[Parts]:
        if self.fusion is None:
            return [self.links[0].stage.encode(x, ctx, room)]
        stages = [link.stage for link in self.links]
        return self.fusion.encode(stages, x, ctx, None if room is None else room.main)

    def decode(self, main: Tensor, sides: Sequence[Side], specs: Sequence[TensorSpec], out: Tensor | None) -> Tensor:
        if self.fusion is None:
            ((stage, version),) = self.links
            return stage.decode(Parts(main, sides[0]), specs[0], version, out)
        return self.fusion.decode([link.stage for link in self.links], main, sides, specs, out)

    def encode_many(self, batch: Sequence[Tensor], contexts: Sequence[Context]) -> list[list[Parts]]:
        if self.fusion is None:
            return [[parts] for parts in self.links[0].stage.encode_many(batch, contexts)]
        return [self.encode(x, ctx, None) for x, ctx in zip(batch, contexts, strict=True)]

    def decode_many(
        self, batch: Sequence[Tensor], sides: Sequence[Sequence[Side]], specs: Sequence[Sequence[TensorSpec]]
    ) -> list[Tensor]:
        if self.fusion is None:
            ((stage, version),) = self.links
            parts = [Parts(main, side[0]) for main, side in zip(batch, sides, strict=True)]
            return stage.decode_many(parts, [spec[0] for spec in specs], version)
        return [self.decode(*one, None) for one in zip(batch, sides, specs, strict=True)]


@remembered
def steps(chain: tuple[Link, ...], specs: tuple[TensorSpec, ...]) -> tuple[Step, ...]:
    """The fewest: at each place the longest run of stages that a fusion covers."""
    found: list[Step] = []
    at = 0
    while at < len(chain):
        links, fusion = _longest(chain[at:], specs[at])
        found.append(Step(at, links, fusion))
        at += len(links)
    return tuple(found)


def _longest(chain: tuple[Link, ...], x: TensorSpec) -> tuple[tuple[Link, ...], Fusion | None]:
    for length in range(len(chain), 1, -1):
        links = chain[:length]
        fusion = registry.find_fusion(tuple(link.stage.name for link in links))
        current = all(link.version == link.stage.version for link in links)
        if fusion is not None and current and fusion.takes([link.stage for link in links], x):
            return links, fusion
    return chain[:1], None
