"""A Huffman code over the 256 values of a byte: its words' lengths, the words, and how it is stored.

The reference for `native/huffman_book.cpp`; docs/format.md specifies all of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.errors import CorruptData

SYMBOLS = 256
MAX_BITS = 11

FEW_ABSENT, MANY_ABSENT, REPEAT = 12, 13, 14
LEAST_FEW, LEAST_MANY, LEAST_REPEAT = 2, 18, 3

Array = np.ndarray[Any, np.dtype[Any]]


def make_lengths(counts: Array) -> Array:
    """The lengths, at most `MAX_BITS`, that make the sum of count * length least, by package-merge. At least two
    symbols get one; the others have 0."""
    symbols = np.flatnonzero(counts)
    if len(symbols) < 2:
        symbols = np.append(symbols, np.flatnonzero(counts == 0)[: 2 - len(symbols)])
    symbols = symbols[np.lexsort((symbols, counts[symbols]))]
    leaves = counts[symbols]
    rounds, weights = [], leaves[:0]
    for _ in range(MAX_BITS):
        pairs = weights[: len(weights) // 2 * 2].reshape(-1, 2).sum(axis=1)
        weights = np.concatenate([leaves, pairs])
        order = np.argsort(weights, kind="stable")  # of the same weight, a leaf goes first
        weights = weights[order]
        rounds.append(order < len(leaves))
    lengths = np.zeros(SYMBOLS, np.int64)
    taken = 2 * len(leaves) - 2
    for is_leaf in reversed(rounds):
        found = int(is_leaf[:taken].sum())
        lengths[symbols[:found]] += 1
        taken = 2 * (taken - found)
    return lengths


def first_symbol(lengths: Array) -> int:
    """Of those with the shortest word, the smallest."""
    return int(np.argmin(np.where(lengths > 0, lengths, MAX_BITS + 1)))


def make_words(lengths: Array) -> Array:
    """Canonical words, the first bit lowest."""
    words = np.zeros(SYMBOLS, np.uint64)
    word = 0
    for length in range(1, MAX_BITS + 1):
        word <<= 1
        for symbol in np.flatnonzero(lengths == length):
            words[symbol] = int(f"{word:0{length}b}"[::-1], 2)
            word += 1
    return words


def make_windows(lengths: Array) -> Array:
    """For each value of the next `MAX_BITS` bits the symbol that they begin with."""
    windows = np.zeros(1 << MAX_BITS, np.uint8)
    words = make_words(lengths)
    for symbol in np.flatnonzero(lengths):
        windows[int(words[symbol]) :: 1 << int(lengths[symbol])] = symbol
    return windows


def store_lengths(lengths: Array) -> bytes:
    """Half bytes, the low half first: a length each, and shorter forms for runs."""
    halves: list[int] = []
    symbol = 0
    while symbol < SYMBOLS:
        length = int(lengths[symbol])
        others = np.flatnonzero(lengths[symbol:] != length)
        run = int(others[0]) if len(others) else SYMBOLS - symbol
        if length == 0:
            halves += _absent(run)
        else:
            run = min(run, 1 + LEAST_REPEAT + 15) if run > LEAST_REPEAT else 1
            halves += [length] if run == 1 else [length, REPEAT, run - 1 - LEAST_REPEAT]
        symbol += run
    halves += [0] * (len(halves) % 2)
    return bytes(low | high << 4 for low, high in zip(halves[::2], halves[1::2], strict=True))


def _absent(run: int) -> list[int]:
    if run >= LEAST_MANY:
        return [MANY_ABSENT, (run - LEAST_MANY) & 15, (run - LEAST_MANY) >> 4]
    return [FEW_ABSENT, run - LEAST_FEW] if run >= LEAST_FEW else [0]


def load_lengths(data: bytes) -> tuple[Array, int]:
    """The lengths that `data` begins with, and the number of bytes they take; CorruptData for an incomplete code."""
    halves = (half for byte in data for half in (byte & 15, byte >> 4))
    lengths: list[int] = []
    read, last = 0, 0
    try:
        while len(lengths) < SYMBOLS:
            half = next(halves)
            read += 1
            if half <= MAX_BITS:
                last = half or last
                lengths.append(half)
                continue
            low = next(halves)
            read += 1
            if half == FEW_ABSENT:
                lengths += [0] * (LEAST_FEW + low)
            elif half == MANY_ABSENT:
                lengths += [0] * (LEAST_MANY + low + 16 * next(halves))
                read += 1
            elif half == REPEAT and last:
                lengths += [last] * (LEAST_REPEAT + low)
            else:
                raise CorruptData(f"huffman: expected a book's lengths, found {half}")
    except StopIteration:
        raise CorruptData("huffman: a book is cut short") from None
    complete = sum(1 << (MAX_BITS - length) for length in lengths if length) == 1 << MAX_BITS
    if len(lengths) != SYMBOLS or not complete or (read % 2 and next(halves) != 0):
        raise CorruptData("huffman: a book's words are no complete code")
    return np.array(lengths), (read + 1) // 2
