"""The reference for `native/rice.h`: small numbers as bits, by Rice's code with a limit.

v >> k in unary, closed by a one, and the lowest k bits of v;   16 zeros and the 32 bits of v where that is longer
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laconic.ops.huffman_book import Array
from laconic.ops.huffman_symbols import put_bits

MOST_QUOTIENT, PLAIN_BITS = 16, 32
MOST_PARAMETER = 31


def parameter_for(total: int, count: int) -> int:
    """About the best one for numbers of this sum."""
    mean = total // count if count else 0
    return min(max(mean.bit_length() - 1, 0), MOST_PARAMETER)


def fields(numbers: Array, parameter: int) -> tuple[Array, Array]:
    """Of each number its bits, the first one lowest, and how many there are."""
    v = numbers.astype(np.uint64)
    quotient = v >> np.uint64(parameter)
    plain = quotient >= MOST_QUOTIENT
    shift = np.where(plain, 0, quotient).astype(np.uint64)
    rest = v & np.uint64((1 << parameter) - 1)
    short = (rest << np.uint64(1) | np.uint64(1)) << shift
    lengths = np.where(plain, MOST_QUOTIENT + PLAIN_BITS, shift + np.uint64(1 + parameter))
    return np.where(plain, v << np.uint64(MOST_QUOTIENT), short), lengths.astype(np.int64)


def joined(columns: Sequence[tuple[Array, Array]]) -> Array:
    """The bits of fields as bytes: of each column the first, then of each the second, and so on."""
    values = np.stack([column[0] for column in columns], axis=1).reshape(-1)
    lengths = np.stack([column[1] for column in columns], axis=1).reshape(-1)
    ends = np.cumsum(lengths)
    data = np.zeros(-(-int(ends[-1]) // 8), np.uint8)
    put_bits(data, ends - lengths, values & np.uint64(0xFFFFFFFF))
    put_bits(data, ends - lengths + 32, values >> np.uint64(32))
    return data


class BitSource:
    """Reads what `joined` gave. Beyond the end there are zeros, which `sound` finds out about."""

    def __init__(self, data: bytes) -> None:
        self.data, self.bit = data, 0

    def get(self, length: int) -> int:
        found = self._peek() & ((1 << length) - 1)
        self.bit += length
        return found

    def get_rice(self, parameter: int) -> int:
        bits = self._peek()
        zeros = (bits & -bits).bit_length() - 1
        if not 0 <= zeros < MOST_QUOTIENT:
            self.bit += MOST_QUOTIENT
            return self.get(PLAIN_BITS)
        self.bit += zeros + 1
        return zeros << parameter | self.get(parameter)

    @property
    def nbytes(self) -> int:
        """How many bytes were begun."""
        return -(-self.bit // 8)

    @property
    def beyond_end(self) -> bool:
        return self.nbytes > len(self.data)

    @property
    def sound(self) -> bool:
        """Whether the bits that were read are there, with zeros after the last one in its byte."""
        return not self.beyond_end and (self.bit % 8 == 0 or self.data[self.bit // 8] >> self.bit % 8 == 0)

    def _peek(self) -> int:
        at = self.bit >> 3
        return int.from_bytes(self.data[at : at + 8], "little") >> (self.bit & 7)
