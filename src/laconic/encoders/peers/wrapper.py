"""What every wrapper of a peer offers, and the list of them.

This and the wrappers know numpy alone, so that what they cost is what the peer costs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from laconic.errors import MissingExtra

Array = np.ndarray[Any, np.dtype[Any]]

WRAPPERS = {
    "blosc2": "laconic.encoders.peers.general:Blosc2",
    "jpeg": "laconic.encoders.peers.general:Jpeg",
    "lerc": "laconic.encoders.peers.fields:Lerc",
    "lz4": "laconic.encoders.peers.general:Lz4",
    "pco": "laconic.encoders.peers.general:Pco",
    "sperr": "laconic.encoders.peers.fields:Sperr",
    "sz3": "laconic.encoders.peers.fields:Sz3",
    "zfp": "laconic.encoders.peers.fields:Zfp",
    "zstd": "laconic.encoders.peers.general:Zstd",
}


class Settings(NamedTuple):
    """What a peer may be told. `bound` is absolute; what it does not take is None."""

    bound: float | None = None
    level: int | None = None
    bits: int | None = None
    threads: int = 1


class Wrapper(ABC):
    """A peer. Its arrays are C-contiguous and not empty."""

    library: ClassVar[str]
    """The module to import."""
    package: ClassVar[str]
    """What pip calls it."""
    dtypes: ClassVar[frozenset[str]]
    bounded: ClassVar[bool] = False
    """Whether it keeps to a bound when told one; without one it is lossless, if it can be."""
    lossless: ClassVar[bool] = True
    """Whether it works without a bound, and gives back every bit."""
    levels: ClassVar[range | None] = None
    takes_bits: ClassVar[bool] = False
    threaded: ClassVar[bool] = False
    fragile: ClassVar[bool] = True
    """Whether bad bytes or bad input may kill the process, hang it, or ask it for any amount of memory."""

    def load(self) -> ModuleType:
        """The library; MissingExtra where it is not installed."""
        try:
            return import_module(self.library)
        except ImportError as error:
            raise MissingExtra(self.package, "peers", f"The peer '{type(self).__name__.lower()}'") from error

    def refusal(self, shape: tuple[int, ...]) -> str | None:
        """Why it cannot take such a shape; None where it can."""
        return None

    @abstractmethod
    def compress(self, x: Array, settings: Settings) -> Any:
        """Bytes, as whatever the library gives that has a buffer."""

    @abstractmethod
    def decompress(self, data: Any, room: Array, settings: Settings) -> Array:
        """The values; in `room`, which has the shape and dtype that went in, where the library can write there."""


@cache
def find(name: str) -> Wrapper:
    module, _, attribute = WRAPPERS[name].partition(":")
    return getattr(import_module(module), attribute)()  # type: ignore[no-any-return]


def folded(shape: tuple[int, ...], least: int, most: int) -> tuple[int, ...]:
    """The same elements in `least` to `most` dimensions. A leading dimension of fewer than four, such as colours,
    joins the next: every peer here compresses images better so.

    >>> folded((3, 256, 256), 1, 3), folded((91, 91, 91), 1, 3), folded((7,), 2, 3)
    ((768, 256), (91, 91, 91), (1, 7))
    """
    dims = list(shape) if len(shape) >= least else [1] * (least - len(shape)) + list(shape)
    while len(dims) > most or (len(dims) > max(least, 2) and dims[0] < 4):
        dims[:2] = [dims[0] * dims[1]]
    return tuple(dims)


def mantissa_bits(x: Array, bound: float) -> int:
    """How many bits of the mantissa must stay for cutting the rest off to move no finite value by more than `bound`.

    >>> mantissa_bits(np.array([1.5], "f4"), 0.01), mantissa_bits(np.array([3.0], "f4"), 1e-9)
    (7, 23)
    """
    finite = np.abs(x[np.isfinite(x)])
    largest = float(finite.max()) if finite.size else 0.0
    whole = np.finfo(x.dtype).nmant
    if largest == 0:
        return 1
    exponent = math.frexp(largest)[1] - 1
    return min(max(math.ceil(exponent - math.log2(bound)), 1), whole)
