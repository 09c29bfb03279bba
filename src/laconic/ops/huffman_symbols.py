"""Codes as symbols of one byte and the bits that these leave over, and bits as bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.ops.huffman_book import SYMBOLS, Array

FIRST_WITH_EXTRA, LEAST_EXTRA = 128, 5
SYMBOLS_FOR = {1: SYMBOLS, 2: 164, 4: 228}
"""How many symbols there are for codes of so many bytes."""

_SYMBOL = np.arange(SYMBOLS)
EXTRA_BITS = np.where(_SYMBOL < FIRST_WITH_EXTRA, 0, LEAST_EXTRA + (_SYMBOL - FIRST_WITH_EXTRA) // 4)
_BASES = np.where(_SYMBOL < FIRST_WITH_EXTRA, _SYMBOL, (4 + _SYMBOL % 4) << EXTRA_BITS)


class Symbols(NamedTuple):
    """Of each code its symbol, and the bits that follow from it no more."""

    symbols: Array
    extra: Array


def to_symbols(codes: Array) -> Symbols:
    """Bytes are symbols; wider codes are folded, 0, -1, 1, -2, .. to 0, 1, 2, 3, .., and cut short."""
    if codes.itemsize == 1:
        return Symbols(codes.view(np.uint8), np.zeros(0, np.uint64))
    wide = codes.astype(np.int64)
    folded = wide << 1 ^ wide >> 63
    exponent = np.frexp(folded)[1] - 1  # exact: doubles hold these integers
    shift = np.maximum(exponent - 2, 0)
    large = FIRST_WITH_EXTRA + 4 * (exponent - 7) + ((folded >> shift) & 3)
    symbols = np.where(folded < FIRST_WITH_EXTRA, folded, large).astype(np.uint8)
    return Symbols(symbols, (folded - _BASES[symbols]).astype(np.uint64))


def from_symbols(symbols: Array, extra: Array, itemsize: int) -> Array:
    """The way back, to the bytes of the codes."""
    if itemsize == 1:
        return symbols
    folded = _BASES[symbols] + extra.astype(np.int64)
    return (folded >> 1 ^ -(folded & 1)).astype(np.int16 if itemsize == 2 else np.int32)


def put_bits(to: Array, at: Array, values: Array) -> None:
    """Adds values to bytes of zeros, each from its own bit on; a value has 33 bits at most."""
    shifted = values.astype(np.uint64) << (at & 7).astype(np.uint64)
    for byte in range(5):
        part = (shifted >> np.uint64(8 * byte)) & np.uint64(255)
        some = part != 0
        sums = np.bincount((at[some] >> 3) + byte, weights=part[some], minlength=len(to))
        to += sums.astype(np.uint8)


def get_bits(data: Array, at: Array, lengths: Array) -> Array:
    """The values of `lengths` bits, 32 at most, from these bits on; zeros for those beyond the end."""
    padded = np.concatenate([data, np.zeros(8, np.uint8)]).astype(np.uint64)
    byte = np.minimum(at >> 3, len(data))
    joined = np.zeros(len(at), np.uint64)
    for k in range(5):
        joined |= padded[byte + k] << np.uint64(8 * k)
    return (joined >> (at & 7).astype(np.uint64)) & ((np.uint64(1) << lengths.astype(np.uint64)) - np.uint64(1))
