"""What a rate study is asked to do."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from laconic import chain, grammar
from laconic.bench.measure import Effort
from laconic.bench.rate.data import DataSet
from laconic.errors import SpecError

CHAINS = (
    "bound|lorenzo|bitpack",
    "bound|lorenzo|huffman",
    "bound|bitpack",
    "bound|zstd:level=1",
    "bound|lorenzo|zstd:level=1",
)
"""What is measured when nobody asks for more. Each gets its bound, and volumes `lorenzo:dims=3` too."""


@dataclass(frozen=True)
class Plan:
    """`sources` are the names as typed. `quick` takes fewer rounds: to see that all is well, not to be quoted."""

    data: tuple[DataSet, ...]
    sources: tuple[str, ...]
    bounds: tuple[float, ...]
    codecs: tuple[str, ...]
    threads: int
    quick: bool

    def __post_init__(self) -> None:
        """Refuses what cannot be measured now, not after minutes of measuring."""
        for codec in self.codecs:
            chain.codec(at_bound(codec, self.bounds[0]))

    @property
    def effort(self) -> Effort:
        return Effort(seconds=0.05, rounds=3) if self.quick else Effort(seconds=2, rounds=7)

    def chains(self, data: DataSet) -> list[str]:
        chains = [*CHAINS, *self.codecs]
        if data.is_volume:
            chains += [three for one in chains if (three := in_three_dimensions(one)) not in chains]
        return list(dict.fromkeys(chains))

    @property
    def command(self) -> str:
        bounds = ",".join(f"{bound:g}" for bound in self.bounds)
        codecs = [f"--codecs {shlex.quote(codec)}" for codec in self.codecs]
        options = [f"--bounds {bounds}", *codecs, f"--threads {self.threads}", *["--quick"] * self.quick]
        sources = [shlex.quote(Path(source).name) for source in self.sources]  # no paths of this machine
        return " ".join(["laconic bench rate", *sources, *options])


def at_bound(codec: str, bound: float) -> str:
    """A chain whose `bound` has none yet, with a relative one.

    >>> at_bound("bound|lorenzo|zstd:level=1", 1e-3), at_bound("bound:width=8|bitpack", 0.5), at_bound("dct:chop=4", 1)
    ('bound:rel=0.001|lorenzo|zstd:level=1', 'bound:rel=0.5,width=8|bitpack', 'dct:chop=4')
    """
    return grammar.with_bound(codec, "rel", bound)


def in_three_dimensions(codec: str) -> str:
    """
    >>> in_three_dimensions("bound|lorenzo|bitpack")
    'bound|lorenzo:dims=3|bitpack'
    """
    return "|".join("lorenzo:dims=3" if stage == "lorenzo" else stage for stage in codec.split("|"))


def parse_bounds(text: str) -> tuple[float, ...]:
    """Relative bounds from large to small: decades between two ends, or a list.

    >>> parse_bounds("1e-1..1e-3"), parse_bounds("0.05,1e-2")
    ((0.1, 0.01, 0.001), (0.05, 0.01))
    """
    try:
        bounds = _decades(*text.split("..")) if ".." in text else [float(bound) for bound in text.split(",")]
    except (ValueError, TypeError) as error:
        raise SpecError(f"--bounds {text}: expected decades such as 1e-1..1e-5, or a list such as 1e-2,1e-3") from error
    if not all(0 < bound < 1 for bound in bounds):
        raise SpecError(f"--bounds {text}: expected shares of max - min, above 0 and below 1")
    return tuple(sorted(set(bounds), reverse=True))


def _decades(first: str, last: str) -> Sequence[float]:
    ends = sorted(round(math.log10(float(end))) for end in (first, last))
    if not all(math.isclose(math.log10(float(end)), round(math.log10(float(end)))) for end in (first, last)):
        raise ValueError
    return [float(f"1e{power}") for power in range(ends[0], ends[1] + 1)]
