"""What a sample of codes tells of all of them, in one call: `survey`.

    codes (1, 2 or 4 bytes)  -->  int64: how often each symbol stands | how many blocks of 32 have each width
                                         | bits of a Huffman code | pairs of rows | equal pairs | rows by likeness

Blocks, and windows of eight rows, are spread over the codes: one somewhere in each of as many stretches, always the
same. All of what is sampled is counted, so that every body gives the same numbers.
"""

from __future__ import annotations

import heapq

import numpy as np
import torch
from torch import Tensor

from laconic.errors import SpecError
from laconic.ops import LIBRARY, load_bodies
from laconic.ops.huffman_book import SYMBOLS, Array
from laconic.ops.huffman_symbols import to_symbols

LIBRARY.define("survey(Tensor codes, int row, int most_blocks, int most_rows) -> Tensor")

BLOCK, WINDOW = 32, 8
WIDTHS = SYMBOLS
"""From here on: how many blocks are 0, 1, .. 32 bits wide, as `bitpack` has them."""
HUFFMAN = WIDTHS + 33
"""The bits of all words of a Huffman code for the sample."""
PAIRS, EQUAL = HUFFMAN + 1, HUFFMAN + 2
"""Neighbouring rows that were compared, and those that were equal."""
CLASSES = EQUAL + 1
MOST_ALIKE = 32
"""From CLASSES on: of how many kinds there was one row, or two, .. up to 32 or more; equal neighbours count once."""
SIZE = CLASSES + MOST_ALIKE

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def check_codes(codes: Tensor) -> None:
    """Raises unless these are codes as they lie in memory. Every body asks first."""
    if codes.element_size() not in (1, 2, 4) or not codes.is_contiguous():
        raise SpecError(f"expected contiguous codes of 1, 2 or 4 bytes, got {codes.dtype} of strides {codes.stride()}")


def spread(most: int, total: int) -> Array:
    """`most` places of `total`: one anywhere in each stretch, so that no period is met."""
    i = np.arange(min(most, total))
    if total <= most:
        return i
    begin, end = i * total // most, (i + 1) * total // most
    noise = (i.astype(np.uint32) * np.uint32(2654435761)) >> np.uint32(8)
    return begin + noise.astype(np.int64) % (end - begin)


def reference_survey(codes: Tensor, row: int, most_blocks: int, most_rows: int) -> Tensor:
    check_codes(codes)
    numbers = np.dtype(f"i{codes.element_size()}" if codes.dtype.is_signed else f"u{codes.element_size()}")
    flat = codes.cpu().reshape(-1).view(torch.uint8).numpy().view(numbers)
    found = np.zeros(SIZE, np.int64)
    _count_blocks(flat, most_blocks, found)
    found[HUFFMAN] = huffman_bits(found[:SYMBOLS])
    if row:
        _count_rows(flat[: len(flat) // row * row].reshape(-1, row), most_rows, found)
    return torch.from_numpy(found)


def _count_blocks(flat: Array, most: int, found: Array) -> None:
    blocks = spread(most, -(-len(flat) // BLOCK))
    places = (blocks[:, None] * BLOCK + np.arange(BLOCK)).reshape(-1)
    codes = flat[places[places < len(flat)]]
    signed = codes.view(f"i{codes.itemsize}")
    found[:SYMBOLS] = np.bincount(to_symbols(signed).symbols, minlength=SYMBOLS)
    wide = signed.astype(np.int64)
    plain = wide << 1 ^ wide >> 63 if codes.dtype.kind == "i" else codes.astype(np.int64)
    padded = np.concatenate([plain, np.zeros(len(places) - len(plain), np.int64)]).reshape(-1, BLOCK)
    widths = np.frexp(np.bitwise_or.reduce(padded, axis=1))[1]
    found[WIDTHS : WIDTHS + 33] = np.bincount(widths, minlength=33)


def huffman_bits(symbols: Array) -> int:
    counts = [int(count) for count in symbols if count]
    heapq.heapify(counts)
    total = 0
    while len(counts) > 1:
        both = heapq.heappop(counts) + heapq.heappop(counts)
        total += both
        heapq.heappush(counts, both)
    return total


def _count_rows(rows: Array, most: int, found: Array) -> None:
    windows = -(-len(rows) // WINDOW)
    hashes, times = hash_rows(rows), []
    for window in spread(min(windows, most // WINDOW), windows):
        some = hashes[window * WINDOW : (window + 1) * WINDOW]
        equal = some[1:] == some[:-1]
        found[PAIRS] += len(equal)
        found[EQUAL] += equal.sum()
        times += [some[:1], some[1:][~equal]]
    kinds = np.unique(np.concatenate(times), return_counts=True)[1] if times else np.zeros(0, np.int64)
    found[CLASSES:] = np.bincount(np.minimum(kinds, MOST_ALIKE), minlength=MOST_ALIKE + 1)[1:]


def hash_rows(rows: Array) -> Array:
    """Of long rows, eight words."""
    nbytes = rows.shape[1] * rows.itemsize
    data = np.zeros((len(rows), max(nbytes, 8)), np.uint8)
    data[:, :nbytes] = rows.view(np.uint8)
    count = min(8, -(-nbytes // 8))
    hashes = np.zeros(len(rows), np.uint64)
    for i in range(count):
        at = (nbytes - 8) * i // (count - 1) if count > 1 else 0
        words = (data[:, at : at + 8].copy().view("<u8")[:, 0] + np.uint64(i)) * _GOLDEN
        hashes += (words ^ words >> np.uint64(32)) * np.uint64(2 * i + 1)
    return hashes


LIBRARY.impl("survey", reference_survey, "CompositeExplicitAutograd")


def _fake_survey(codes: Tensor, row: int, most_blocks: int, most_rows: int) -> Tensor:
    return torch.empty(SIZE, dtype=torch.int64)


torch.library.register_fake("laconic::survey", _fake_survey, lib=LIBRARY)

load_bodies("survey")
