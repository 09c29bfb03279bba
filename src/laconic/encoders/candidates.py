"""The encoders among which `auto` chooses, and how many bytes each would give. A new one is a row of CANDIDATES."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, NamedTuple

from laconic import registry
from laconic.encoders.sample import Sample
from laconic.errors import SpecError
from laconic.stage import PartSpec, Stage, TensorSpec

SELDOM = 1e-3
HOPED_FOR = 0.75
"""Of the entropy of what is new: what a compressor may make of it at best."""


class Outcome(NamedTuple):
    """What an encoder would give, and what decides how long it takes: how large the codes become of themselves, over
    bytes in; and the shares of them that it does otherwise than that, by what they are."""

    nbytes: float
    ratio: float
    others: Mapping[str, float] = MappingProxyType({})
    """Of `rows` that are somewhere before, and of `copies`: those in matches of many."""


class Trial(NamedTuple):
    """For encoders that are somebody's library: some pieces are compressed to know how large the rest becomes."""

    token: float
    """The bytes that stand for a row that is not far before."""
    copy: float
    """The bytes that stand for a byte of the rows that follow in the same match."""
    window: int
    """How many bytes before are not far."""
    table: int
    """The bytes that come once in 128 KiB."""

    def outcome(self, sample: Sample, stage: Any) -> Outcome:
        """Fewer rows repeat among the pieces than in the whole."""
        nbytes = len(sample.pieces)
        if nbytes >= sample.nbytes:  # all of a small tensor: nothing is left to foretell
            return _evenly(sample, len(stage.compress(sample.pieces[: sample.nbytes])))
        ratio = max(len(stage.compress(sample.pieces)) - self.table, 1) / nbytes
        if sample.row:
            fresh, tokens, _ = _shares(sample, max(1, nbytes // sample.row_bytes), self.window)
            ratio = min(1.0, max(ratio - tokens * self.token / sample.row_bytes, 0.0) / max(fresh, SELDOM))
        return self._outcome(sample, ratio)

    def hope(self, sample: Sample) -> Outcome:
        """The best to be hoped for: nothing, where no more words repeat than by chance; and what does not repeat does
        not become much smaller than its entropy."""
        if sample.itemsize > 4:
            return Outcome(0.0, 0.0)
        if not sample.has_structure:
            return Outcome(math.inf, 1.0)
        ratio = HOPED_FOR * sample.entropy_bits / 8 / sample.itemsize if sample.rarely_repeats else 0.0
        return self._outcome(sample, ratio)

    def _outcome(self, sample: Sample, ratio: float) -> Outcome:
        outcome = _with_rows(sample, ratio, self.token, self.window)
        more = self.table * (1 + sample.nbytes // (1 << 17)) + self.copy * sample.nbytes * outcome.others.get(
            "copies", 0
        )
        return outcome._replace(nbytes=outcome.nbytes + more)


@dataclass(frozen=True, eq=False)
class Candidate:
    """An encoder, by name and options; `library`: what it needs to be installed."""

    name: str
    foretell: Callable[[Sample], Outcome] | Trial
    options: Mapping[str, Any] = field(default_factory=dict)
    library: str | None = None

    @cached_property
    def stage(self) -> Stage:
        return registry.find(self.name)(**self.options)

    @property
    def known(self) -> bool:
        return self.name in registry.BUILT_IN

    @property
    def installed(self) -> bool:
        return self.known and (self.library is None or find_spec(self.library) is not None)

    @property
    def by_trial(self) -> bool:
        return isinstance(self.foretell, Trial)

    def hope(self, sample: Sample) -> Outcome | None:
        """What it gives at best, where that is known sooner than what it gives."""
        return self.foretell.hope(sample) if isinstance(self.foretell, Trial) else None

    def outcome(self, sample: Sample) -> Outcome:
        return self.foretell.outcome(sample, self.stage) if isinstance(self.foretell, Trial) else self.foretell(sample)


def _raw(sample: Sample) -> Outcome:
    return _evenly(sample, sample.nbytes)


def _bitpack(sample: Sample) -> Outcome:
    return _evenly(sample, 1 + 4 * -(-sample.count // 4096) + sample.count / 32 * sample.block_bytes)


def _huffman(sample: Sample) -> Outcome:
    return _evenly(sample, _book_bytes(sample) + sample.count * sample.huffman_bits / 8)


def _rans(sample: Sample) -> Outcome:
    return _evenly(sample, 32 + 1.5 * sample.found.kinds + sample.count * sample.entropy_bits / 8)


def _vlz(sample: Sample) -> Outcome:
    """Rows that are somewhere before take a distance, and as many as follow each other there are one match."""
    outcome = _with_rows(sample, sample.huffman_bits / 8 / sample.itemsize, token=1.5, window=math.inf)
    return outcome._replace(nbytes=outcome.nbytes + _book_bytes(sample) + 16)


def _evenly(sample: Sample, nbytes: float) -> Outcome:
    return Outcome(nbytes, nbytes / sample.nbytes)


def _book_bytes(sample: Sample) -> float:
    """A table of words' lengths, and of chunks' sizes."""
    sections = 1 if sample.itemsize == 1 else 2
    return 3 + 0.55 * sample.found.kinds + 2 * sections * max(-(-sample.count // 8192), min(16, sample.count // 256))


def _with_rows(sample: Sample, ratio: float, token: float, window: float) -> Outcome:
    """Rows that are among the `window` bytes before take a token of so many bytes, or are part of a match before;
    others become as large as `ratio` says."""
    if not sample.row:
        return Outcome(sample.nbytes * ratio, ratio)
    fresh, tokens, copies = _shares(sample, sample.rows, window)
    nbytes = sample.nbytes * (fresh * ratio + tokens * token / sample.row_bytes)
    return Outcome(nbytes, ratio, {"rows": tokens, "copies": copies})


def _shares(sample: Sample, rows: float, window: float) -> tuple[float, float, float]:
    """Of rows: those that are new, those that begin a match, and those that continue one."""
    fresh = sample.fresh(rows, window / sample.row_bytes)
    tokens = (1 - fresh - sample.same) * (1 - sample.followed)
    return fresh, tokens, 1 - fresh - tokens


RAW = Candidate("raw", _raw)
CANDIDATES = (
    RAW,
    Candidate("bitpack", _bitpack),
    Candidate("huffman", _huffman),
    Candidate("rans", _rans),
    Candidate("vlz", _vlz),
    Candidate("zstd", Trial(token=3.5, copy=0.001, window=1 << 17, table=52), {"level": 1}, library="zstandard"),
    Candidate("lz4", Trial(token=5.0, copy=0.004, window=1 << 15, table=0), library="lz4"),
)


@cache
def installed() -> tuple[Candidate, ...]:
    return tuple(candidate for candidate in CANDIDATES if candidate.installed)


def main_spec(candidate: Candidate, x: TensorSpec) -> PartSpec | None:
    """The main part that it promises for such codes; None where it does not take them."""
    try:
        return candidate.stage.out_spec(x).main
    except SpecError:
        return None
