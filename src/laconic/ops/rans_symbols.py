"""Codes as symbols, and the bits that wide ones leave over."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

LEAST_DIRECT, MOST_DIRECT = 3, 11
DIRECTS_TRIED = (11, 7, 4)


def alphabet(itemsize: int, direct: int) -> int:
    """How many symbols there are: all bytes; or folded codes below 2^direct, and four for each octave above."""
    return 256 if itemsize == 1 else (1 << direct) + 4 * (8 * itemsize - direct)


class Symbols(NamedTuple):
    """Of each code its symbol, the bits it leaves over, and how many these are."""

    symbols: Array
    extra: Array
    lengths: Array


def fold(codes: Array) -> Array:
    """0, -1, 1, -2, .. to 0, 1, 2, 3, ..; bytes stay what they are."""
    if codes.itemsize == 1:
        return codes.view(np.uint8).astype(np.int64)
    wide = codes.astype(np.int64)
    return wide << 1 ^ wide >> 63


def unfold(folded: Array, itemsize: int) -> Array:
    if itemsize == 1:
        return folded.astype(np.uint8)
    return (folded >> 1 ^ -(folded & 1)).astype(np.int16 if itemsize == 2 else np.int32)


def to_symbols(folded: Array, direct: int) -> Symbols:
    """Large codes as their highest three bits, and the others as what is left over."""
    none = np.zeros_like(folded)
    if direct == 0:
        return Symbols(folded, none, none)
    exponents = np.maximum(np.frexp(folded)[1] - 1, 2)
    is_direct = folded < 1 << direct
    lengths = np.where(is_direct, 0, exponents - 2)
    large = (1 << direct) + 4 * (exponents - direct) + ((folded >> (exponents - 2)) & 3)
    return Symbols(np.where(is_direct, folded, large), folded & ((1 << lengths) - 1), lengths)


def extra_lengths(symbols: Array, direct: int) -> Array:
    """The number of bits that each symbol leaves over."""
    above = symbols - (1 << direct)
    return np.where((direct == 0) | (above < 0), 0, direct - 2 + (above >> 2))


def from_symbols(symbols: Array, extra: Array, direct: int) -> Array:
    lengths = extra_lengths(symbols, direct)
    high = (4 + ((symbols - (1 << direct)) & 3)) << lengths
    return np.where((direct == 0) | (symbols < 1 << direct), symbols, high + extra)


def put_numbers(values: Array, lengths: Array) -> bytes:
    """Numbers of so many bits one after another, from the lowest bit on."""
    places = np.repeat(np.cumsum(lengths) - lengths, lengths)
    within = np.arange(len(places)) - places
    bits = np.repeat(values, lengths) >> within & 1
    return np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()


def get_numbers(data: Array, lengths: Array) -> Array:
    """The way back, of as many bits as `data` has."""
    bits = np.unpackbits(data, bitorder="little").astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    within = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
    sums = np.concatenate([[0], np.cumsum(bits[: len(within)] << within)])
    found: Array = sums[starts + lengths] - sums[starts]
    return found
