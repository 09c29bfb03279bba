"""How likely each symbol is: the frequencies of a table of 2^M slots, and how they are stored.

The reference for `native/rans_book.cpp`; docs/format.md specifies all of it. Counts become levels, which are stored;
levels become weights, and these frequencies, in integers only: writer and reader agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.errors import CorruptData
from laconic.ops.rans_symbols import LEAST_DIRECT, MOST_DIRECT, alphabet

LEAST_BITS, MOST_BITS = 8, 15
"""Tables have from 2^8 to 2^15 slots."""
BITS_TRIED = {10: 9, 12: 8, 13: 8, 15: 0}
"""Of each, by what part of the last one's cost it may cost more, as a power of two."""
MOST_WEIGHT_BITS = 20
MOST_LEVEL = 144
RUN_ORDER = 1
MOST_ZEROS = 12
LOG_BITS = 16

Array = np.ndarray[Any, np.dtype[Any]]


def _make_logs() -> Array:
    """floor(2^16 * log2(1 + i / 2^11)), by squaring."""
    x = (np.arange(2048, dtype=np.uint64) + np.uint64(2048)) << np.uint64(20)
    logs = np.zeros(2048, np.int64)
    for _ in range(LOG_BITS):
        x = x * x >> np.uint64(31)
        large = x >> np.uint64(32)
        x >>= large
        logs = logs * 2 + large.astype(np.int64)
    return logs


_LOGS = _make_logs()


@dataclass(frozen=True)
class Book:
    """Frequencies of all symbols, which fill 2^`bits` slots; 0 for those that do not occur."""

    bits: int
    direct: int
    """Of codes of 2 and 4 bytes: folded ones below 2^direct are symbols of their own. 0 for codes of 1 byte."""
    frequencies: Array
    stored: bytes

    @property
    def has_extra(self) -> bool:
        """Whether a symbol leaves bits over."""
        return self.direct > 0 and bool(self.frequencies[1 << self.direct :].any())

    def cost(self, counts: Array) -> int | None:
        """About how many bits so many symbols take; None where one does not occur here."""
        present = counts > 0
        if (self.frequencies[present] == 0).any():
            return None
        logs = (self.bits << LOG_BITS) - log2(self.frequencies[present])
        return int((counts[present] * logs).sum()) >> LOG_BITS


def log2(values: Array) -> Array:
    """2^16 times the logarithm of integers from 1 on, of which the highest 12 bits count."""
    exponents = np.frexp(values)[1] - 1
    found: Array = (exponents << LOG_BITS) + _LOGS[(values << 11 >> exponents) & 2047]
    return found


def to_levels(counts: Array) -> Array:
    """Counts with four bits of precision, scaled to at most 2^20 in all."""
    shift = max(0, int(counts.sum()).bit_length() - MOST_WEIGHT_BITS)
    weights = np.where(counts > 0, np.maximum((counts + (1 << shift >> 1)) >> shift, 1), 0)
    exponents = np.maximum(np.frexp(weights)[1] - 1, 4)
    rounded = (weights + (1 << (exponents - 4))) >> (exponents - 3)
    levels: Array = np.where(weights < 16, weights, 8 * (exponents - 3) + rounded)
    return levels


def to_frequencies(levels: Array, bits: int) -> Array:
    """One slot for each symbol that occurs, and the others in proportion to what its weight is worth beyond that."""
    weights = np.where(levels < 16, levels, (8 + levels % 8) << np.maximum(levels // 8 - 1, 0))
    present = weights > 0
    left = (1 << bits) - int(present.sum())
    beyond = np.maximum((weights << bits) - int(weights.sum()), 0)
    ends = np.cumsum(beyond)
    slots = [int(end) * left // int(ends[-1]) for end in ends]
    return np.diff(slots, prepend=0) + present


def make_book(counts: Array, direct: int) -> Book:
    """The smallest of the tables tried that costs hardly more than the largest; with two symbols at least."""
    occurring = counts.copy()
    occurring[np.flatnonzero(counts == 0)[: max(0, 2 - int((counts > 0).sum()))]] = 1
    levels = to_levels(occurring)
    order = min(range(4), key=lambda k: len(_level_bits(levels, k)))
    tables = [(bits, to_frequencies(levels, bits)) for bits in BITS_TRIED if (levels > 0).sum() < 1 << bits]
    books = [Book(bits, direct, table, store_levels(levels, bits, direct, order)) for bits, table in tables]
    costs = [book.cost(counts) or 0 for book in books]
    allowed = [costs[-1] + (costs[-1] >> BITS_TRIED[book.bits]) for book in books]
    return next(book for book, cost, most in zip(books, costs, allowed, strict=True) if cost <= most)


def store_levels(levels: Array, bits: int, direct: int, order: int) -> bytes:
    """As a number whose lowest bit comes first."""
    text = _number(bits - LEAST_BITS, 3) + _number(order, 2) + (_number(direct, 4) if direct else "")
    text += _level_bits(levels, order)
    return int(text[::-1], 2).to_bytes(-(-len(text) // 8), "little")


def _number(value: int, length: int) -> str:
    return f"{value:0{length}b}"[::-1] if length else ""


def _golomb(value: int, order: int) -> str:
    shifted = value + (1 << order)
    length = shifted.bit_length() - 1
    return "0" * (length - order) + "1" + _number(shifted - (1 << length), length)


def _level_bits(levels: Array, order: int) -> str:
    """Each level by how far it is from the last that is not 0; behind a 0 how many follow."""
    text, last, symbol = [], 0, 0
    present = [*np.flatnonzero(levels).tolist(), None]
    place = 0
    while symbol < len(levels):
        level = int(levels[symbol])
        text.append(_golomb(2 * (level - last) if level >= last else 2 * (last - level) - 1, order))
        if level:
            last, symbol, place = level, symbol + 1, place + 1
            continue
        following = present[place]
        if following is None:
            text.append(_golomb(0, RUN_ORDER))
            break
        text.append(_golomb(following - symbol, RUN_ORDER))
        symbol = following
    return "".join(text)


class _Bits:
    """Reads bits, the lowest of a byte first; CorruptData beyond the last."""

    def __init__(self, data: bytes) -> None:
        self.number, self.left = int.from_bytes(data, "little"), 8 * len(data)

    def take(self, length: int) -> int:
        if length > self.left:
            raise CorruptData("rans: a book is cut short")
        value = self.number & ((1 << length) - 1)
        self.number >>= length
        self.left -= length
        return value

    def golomb(self, order: int) -> int:
        zeros = 0
        while self.take(1) == 0:
            zeros += 1
            if zeros > MOST_ZEROS:
                raise CorruptData("rans: a book has a number larger than any level")
        return (1 << (order + zeros)) + self.take(order + zeros) - (1 << order)


def load_book(data: bytes, itemsize: int) -> Book:
    """The book that `data` begins with: `stored` says how many bytes that is."""
    source = _Bits(data[: most_stored(itemsize)])
    bits, order = LEAST_BITS + source.take(3), source.take(2)
    direct = source.take(4) if itemsize > 1 else 0
    if itemsize > 1 and not LEAST_DIRECT <= direct <= MOST_DIRECT:
        raise CorruptData(f"rans: expected 2^{LEAST_DIRECT} to 2^{MOST_DIRECT} direct symbols, found 2^{direct}")
    levels = np.zeros(alphabet(itemsize, direct), np.int64)
    last = symbol = 0
    while symbol < len(levels):
        change = source.golomb(order)
        level = last + (change >> 1 ^ -(change & 1))
        if not 0 <= level <= MOST_LEVEL:
            raise CorruptData(f"rans: expected levels up to {MOST_LEVEL}, found {level}")
        if level:
            levels[symbol] = last = level
            symbol += 1
            continue
        run = source.golomb(RUN_ORDER) or len(levels) - symbol
        if run > len(levels) - symbol:
            raise CorruptData("rans: a book has more symbols than such codes")
        symbol += run
    present = int((levels > 0).sum())
    if not 2 <= present < 1 << bits or source.take(source.left % 8) != 0:
        raise CorruptData(f"rans: a book of {present} symbols for {1 << bits} slots, or bits behind it")
    size = min(len(data), most_stored(itemsize)) - source.left // 8
    return Book(bits, direct, to_frequencies(levels, bits), data[:size])


def most_stored(itemsize: int) -> int:
    """The most bytes of a book: what a level and a run may take, for each symbol."""
    return 2 + 3 * alphabet(itemsize, MOST_DIRECT)
