"""The encoders among which `auto` chooses, and how many bytes each would give. A new one is a row of CANDIDATES."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from laconic import registry
from laconic.encoders.sample import Sample
from laconic.errors import SpecError
from laconic.stage import PartSpec, Stage, TensorSpec


class Outcome(NamedTuple):
    """What an encoder would give: bytes; the share of the codes that repeat, for which it has little to do; and the
    ratio of bytes out to bytes in of those that do not."""

    nbytes: float
    repeated: float
    literal_ratio: float


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
    return _evenly(sample, 1 + 4 * -(-sample.count // 4096) + sample.count / 32 * sample.block_bytes)


def _huffman(sample: Sample, stage: Stage) -> Outcome:
    return _evenly(sample, _book_bytes(sample) + sample.count * sample.huffman_bits / 8)


def _rans(sample: Sample, stage: Stage) -> Outcome:
    return _evenly(sample, 32 + 1.5 * sample.kinds + sample.count * sample.entropy_bits / 8)


def _vlz(sample: Sample, stage: Stage) -> Outcome:
    """Rows that are somewhere before take a distance, and equal neighbours are one match."""
    literal = sample.huffman_bits / 8 / sample.itemsize
    outcome = _with_rows(sample, literal, token=1.5, window=float("inf"))
    return outcome._replace(nbytes=outcome.nbytes + _book_bytes(sample) + 16)


def _zstd(sample: Sample, stage: Stage) -> Outcome:
    return _by_trial(sample, stage, token=3.5, window=1 << 19, table=52)


def _lz4(sample: Sample, stage: Stage) -> Outcome:
    return _by_trial(sample, stage, token=5.0, window=1 << 16, table=0)


def _evenly(sample: Sample, nbytes: float) -> Outcome:
    return Outcome(nbytes, 0.0, nbytes / sample.nbytes)


def _book_bytes(sample: Sample) -> float:
    """A table of words' lengths, and of chunks' sizes."""
    sections = 1 if sample.itemsize == 1 else 2
    return 3 + 0.55 * sample.kinds + 2 * sections * max(-(-sample.count // 8192), min(16, sample.count // 256))


def _by_trial(sample: Sample, stage: Stage, token: float, window: int, table: int) -> Outcome:
    """Pieces are encoded, of which fewer rows repeat than of the whole."""
    nbytes, encoded = sample.encoded(stage)
    ratio = max(encoded - table, 1) / nbytes
    literal = ratio
    if sample.row:
        row = sample.row * sample.itemsize
        fresh = (1 - sample.same) * sample.fresh(max(1, nbytes // row), window / row)
        tokens = (1 - sample.same - fresh) * token / row
        literal = min(1.0, max(ratio - tokens, 0.0) / fresh)
    outcome = _with_rows(sample, literal, token, window)
    return outcome._replace(nbytes=outcome.nbytes + table * (1 + sample.nbytes // (1 << 17)))


def _with_rows(sample: Sample, literal: float, token: float, window: float) -> Outcome:
    """Rows that are among the `window` bytes before take a token of so many bytes; others are literal."""
    if not sample.row:
        return Outcome(sample.nbytes * literal, 0.0, literal)
    row = sample.row * sample.itemsize
    rows = sample.nbytes / row
    fresh = (1 - sample.same) * sample.fresh(rows, window / row)
    nbytes = rows * (fresh * row * literal + (1 - sample.same - fresh) * token)
    return Outcome(nbytes, 1 - fresh, literal)


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
