"""The encoders among which `auto` chooses, and how many bytes each would give. A new one is a row of CANDIDATES."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, NamedTuple

from laconic import registry
from laconic.encoders.sample import Sample
from laconic.errors import SpecError
from laconic.stage import PartSpec, Stage, TensorSpec


class Outcome(NamedTuple):
    """What an encoder would give, and what decides how long it takes: how large the codes become of themselves, over
    bytes in; and the shares of them that it does otherwise than that, by what they are."""

    nbytes: float
    ratio: float
    others: Mapping[str, float] = MappingProxyType({})
    """Of `runs`, of `rows` that are somewhere before, and of `copies`: rows in matches of many."""


@dataclass(frozen=True)
class Candidate:
    """An encoder, by name and options; `library`: what it needs to be installed."""

    name: str
    outcome: Callable[[Sample, Stage], Outcome]
    options: Mapping[str, Any] = field(default_factory=dict)
    library: str | None = None
    by_trial: bool = False
    """Whether a sample has to be encoded to know: more expensive, so those are asked last."""

    @property
    def stage(self) -> Stage:
        return _stage(self.name, tuple(self.options.items()))

    @property
    def known(self) -> bool:
        return self.name in registry.BUILT_IN

    @property
    def installed(self) -> bool:
        return self.known and (self.library is None or find_spec(self.library) is not None)


def _raw(sample: Sample, stage: Stage) -> Outcome:
    return _evenly(sample, sample.nbytes)


def _bitpack(sample: Sample, stage: Stage) -> Outcome:
    return _in_blocks(sample, 1 + 4 * -(-sample.count // 4096) + sample.count / 32 * sample.block_bytes)


def _huffman(sample: Sample, stage: Stage) -> Outcome:
    return _in_blocks(sample, _book_bytes(sample) + sample.count * sample.huffman_bits / 8)


def _rans(sample: Sample, stage: Stage) -> Outcome:
    return _in_blocks(sample, 32 + 1.5 * sample.found.kinds + sample.count * sample.entropy_bits / 8)


def _vlz(sample: Sample, stage: Stage) -> Outcome:
    """Rows that are somewhere before take a distance, and as many as follow each other there are one match."""
    outcome = _with_rows(sample, sample.huffman_bits / 8 / sample.itemsize, token=1.5, window=math.inf)
    return outcome._replace(nbytes=outcome.nbytes + _book_bytes(sample) + 16)


def _zstd(sample: Sample, stage: Stage) -> Outcome:
    return _by_trial(sample, stage, token=3.5, window=1 << 19, table=52)


def _lz4(sample: Sample, stage: Stage) -> Outcome:
    return _by_trial(sample, stage, token=5.0, window=1 << 16, table=0)


def _evenly(sample: Sample, nbytes: float) -> Outcome:
    return Outcome(nbytes, nbytes / sample.nbytes)


def _in_blocks(sample: Sample, nbytes: float) -> Outcome:
    """By code or block, whose sizes are foreseen less well where codes come in runs."""
    return Outcome(nbytes, nbytes / sample.nbytes, {"runs": sample.in_runs} if sample.in_runs else {})


def _book_bytes(sample: Sample) -> float:
    """A table of words' lengths, and of chunks' sizes."""
    sections = 1 if sample.itemsize == 1 else 2
    return 3 + 0.55 * sample.found.kinds + 2 * sections * max(-(-sample.count // 8192), min(16, sample.count // 256))


def _by_trial(sample: Sample, stage: Any, token: float, window: int, table: int) -> Outcome:
    """Pieces are compressed, of which fewer rows repeat than of the whole; a `table` comes once in 128 KiB."""
    if not sample.thorough and sample.itemsize <= 4 and not sample.has_structure:
        return _evenly(sample, math.inf)
    nbytes = len(sample.pieces)
    ratio = max(len(stage.compress(sample.pieces)) - table, 1) / nbytes
    if sample.row:
        fresh, tokens, _ = _shares(sample, max(1, nbytes // sample.row_bytes), window)
        ratio = min(1.0, max(ratio - tokens * token / sample.row_bytes, 0.0) / fresh)
    outcome = _with_rows(sample, ratio, token, window)
    return outcome._replace(nbytes=outcome.nbytes + table * (1 + sample.nbytes // (1 << 17)))


def _with_rows(sample: Sample, ratio: float, token: float, window: float) -> Outcome:
    """Rows that are among the `window` bytes before take a token of so many bytes, or are part of a match before;
    others become as large as `ratio` says."""
    if not sample.row:
        return Outcome(sample.nbytes * ratio, ratio)
    fresh, tokens, copies = _shares(sample, sample.nbytes / sample.row_bytes, window)
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
    Candidate("zstd", _zstd, {"level": 1}, library="zstandard", by_trial=True),
    Candidate("lz4", _lz4, library="lz4", by_trial=True),
)


@cache
def _stage(name: str, options: tuple[tuple[str, Any], ...]) -> Stage:
    return registry.find(name)(**dict(options))


@cache
def installed() -> tuple[Candidate, ...]:
    return tuple(candidate for candidate in CANDIDATES if candidate.installed)


def main_spec(candidate: Candidate, x: TensorSpec) -> PartSpec | None:
    """The main part that it promises for such codes; None where it does not take them."""
    try:
        return candidate.stage.out_spec(x).main
    except SpecError:
        return None
