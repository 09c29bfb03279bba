"""What a sample of codes tells of all of them, in one call: `survey`.

    codes (1, 2 or 4 bytes)  -->  whole numbers: of symbols, of blocks, of rows; see `Survey`

Windows of eight blocks of 32 codes, and of eight rows, are spread over the codes: one somewhere in each of as many
stretches, always the same. Numbers are whole, so that every body gives the same ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from laconic.errors import SpecError
from laconic.ops import load_bodies
from laconic.ops.huffman_book import SYMBOLS, Array
from laconic.ops.huffman_symbols import EXTRA_BITS, to_symbols

BLOCK, WINDOW = 32, 8
MOST_ALIKE = 32


class Survey(NamedTuple):
    """What is known of the sample, in the order of the operator's numbers."""

    codes: int
    kinds: int
    """Of symbols, as `huffman` has them."""
    squares: int
    """The sum of the squares of how often each stands."""
    entropy: int
    """The sum of n * log2(n) over these numbers, times 1024."""
    huffman: int
    """The bits of all words of a Huffman code for these symbols."""
    extra: int
    """The bits that symbols leave over."""
    blocks: int
    planes: int
    """The bytes of those that are not all zero, as `bitpack` has them."""
    words: int
    """Pairs of blocks whose first eight bytes are the same."""
    seen_words: int
    """Blocks whose first eight bytes are those of another before."""
    rows: int
    row_pairs: int
    """Neighbouring rows that were compared."""
    equal_rows: int
    """Those of them that were equal."""
    alike_rows: int
    """Pairs of rows that are alike, wherever they are; equal neighbours count once, here and below."""
    row_kinds: list[int]
    """Of how many kinds there was one row, or two, .., or 32 and more."""


BODIES: dict[str, Callable[[Tensor, int, int, int], list[int]]] = {}
"""By the kind of device. No operator of PyTorch: it decides something in Python, a few microseconds before that."""


def survey(codes: Tensor, row: int, most_blocks: int, most_rows: int) -> Survey:
    """Of contiguous codes: so many blocks, and so many rows of `row` codes each, where there are rows."""
    check_codes(codes)
    found: list[Any] = BODIES.get(codes.device.type, reference_survey)(codes, row, most_blocks, most_rows)
    return Survey._make([*found[:-MOST_ALIKE], found[-MOST_ALIKE:]])


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def check_codes(codes: Tensor) -> None:
    """Raises unless these are codes as they lie in memory."""
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


def reference_survey(codes: Tensor, row: int, most_blocks: int, most_rows: int) -> list[int]:
    numbers = np.dtype(f"i{codes.element_size()}" if codes.dtype.is_signed else f"u{codes.element_size()}")
    flat = codes.cpu().reshape(-1).view(torch.uint8).numpy().view(numbers)
    found = _of_blocks(flat, most_blocks)
    rows = flat[: len(flat) // row * row].reshape(-1, row) if row else None
    found += _of_rows(rows, most_rows) if rows is not None else [0] * (4 + MOST_ALIKE)
    return found


def _windows(most: int, total: int) -> Iterator[Array]:
    """The places of `most` of `total`, in windows of those that are next to each other."""
    yield np.zeros(0, np.int64)
    windows = -(-total // WINDOW)
    for window in spread(min(windows, most // WINDOW), windows):
        yield np.arange(window * WINDOW, min(total, (window + 1) * WINDOW))


def _of_blocks(flat: Array, most: int) -> list[int]:
    blocks = np.concatenate(list(_windows(most, -(-len(flat) // BLOCK))))
    places = blocks[:, None] * BLOCK + np.arange(BLOCK)
    there = places < len(flat)
    codes = np.concatenate([flat, np.zeros(BLOCK, flat.dtype)])[places]
    symbols = np.bincount(to_symbols(codes[there].view(f"i{codes.itemsize}")).symbols, minlength=SYMBOLS)
    widths = np.frexp(np.bitwise_or.reduce(_plain(codes), axis=1))[1]
    planes = (1 + 4 * widths)[widths > 0].sum()
    words = codes.view(np.uint8).reshape(len(blocks), BLOCK * codes.itemsize)[:, :8].copy().view(np.uint64)
    return [
        *_of_symbols(symbols, codes.itemsize),
        len(blocks),
        int(planes),
        _pairs(words),
        len(words) - len(np.unique(words)),
    ]


def _of_symbols(symbols: Array, itemsize: int) -> list[int]:
    counts = symbols[symbols > 0]
    entropy = float((counts * np.log2(counts)).sum())
    extra = int(symbols @ EXTRA_BITS) if itemsize > 1 else 0
    return [*map(int, (counts.sum(), len(counts), counts @ counts, np.rint(entropy * 1024))), _huffman(counts), extra]


def _plain(codes: Array) -> Array:
    """As planes have them: signed ones folded."""
    wide = codes.astype(np.int64)
    plain: Array = wide << 1 ^ wide >> 63 if codes.dtype.kind == "i" else wide
    return plain


def _pairs(keys: Array) -> int:
    times = np.unique(keys, return_counts=True)[1]
    return int((times * (times - 1) // 2).sum())


def _huffman(symbols: Array) -> int:
    counts = symbols.tolist()
    heapq.heapify(counts)
    total = 0
    while len(counts) > 1:
        both = heapq.heappop(counts) + heapq.heappop(counts)
        total += both
        heapq.heappush(counts, both)
    return total


def _of_rows(rows: Array, most: int) -> list[int]:
    hashes, kept = _hashes(rows), [np.zeros(0, np.uint64)]
    sampled = pairs = equal = 0
    for window in _windows(most, len(rows)):
        some = hashes[window]
        same = some[1:] == some[:-1]
        kept += [some[:1], some[1:][~same]]
        sampled, pairs, equal = sampled + len(some), pairs + len(same), equal + int(same.sum())
    alike = np.concatenate(kept)
    times = np.minimum(np.unique(alike, return_counts=True)[1], MOST_ALIKE)
    kinds = np.bincount(times, minlength=MOST_ALIKE + 1)[1:]
    return [sampled, pairs, equal, _pairs(alike), *kinds.tolist()]


def _hashes(rows: Array) -> Array:
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


load_bodies("survey")
