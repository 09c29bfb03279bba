"""The reference for `native/huffman_read.cpp`: streams in numpy.

mode, layout, books, sizes of the chunks' sections, | words, extra bits | words, extra bits | ..
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.errors import CorruptData
from laconic.ops.huffman_book import (
    MAX_BITS,
    SYMBOLS,
    Array,
    first_symbol,
    load_lengths,
    make_windows,
)
from laconic.ops.huffman_symbols import EXTRA_BITS, SYMBOLS_FOR, from_symbols, get_bits

RAW, CONSTANT, WORDS, SHARED = 0, 1, 2, 3

LEAST_LOG, MOST_LOG = 8, 13
MOST_BOOKS = 4
SIZE_BITS = 14
"""Of a chunk's two bytes in the table of sizes; what is above is its book."""


def starts_of(sizes: Array) -> Array:
    """Where each section begins, in bits."""
    ends = np.cumsum(sizes.astype(np.int64).reshape(-1))
    return 8 * np.concatenate([[0], ends[:-1]]).reshape(sizes.shape)


def places_of(lengths: Array, chunk_of: Array, starts: Array) -> Array:
    """Where each value begins, those of a chunk one after another."""
    before = np.cumsum(lengths) - lengths
    first = np.searchsorted(chunk_of, chunk_of)
    places: Array = starts[chunk_of] + before - before[first]
    return places


class Layout(NamedTuple):
    """What a header says: words' lengths by book, each chunk's book, and the sections' sizes and starts in `body`."""

    log: int
    lengths: Array
    book_of: Array
    sizes: Array
    starts: Array
    body: Array


def read_stream(stream: Array, book: Array, count: int, itemsize: int) -> Array:
    """Exactly `count` codes, as integers or bytes of their size; CorruptData where that is not what is there."""
    mode, data = int(stream[0]) if len(stream) else -1, stream[1:]
    if mode != SHARED and len(book) > 0:
        raise CorruptData(f"huffman: {len(book)} bytes of shared books, for a stream that has no use for them")
    if mode == RAW and len(data) == count * itemsize:
        return data
    if mode == CONSTANT and len(data) == itemsize and count > 1:
        return np.tile(data, count)
    if mode not in (WORDS, SHARED) or count < 2 or len(data) == 0:
        raise CorruptData(f"huffman: expected a stream of {count} codes of {itemsize} bytes, found another")
    layout = _read_layout(data, book if mode == SHARED else None, count, itemsize)
    per_chunk = np.minimum(count - (np.arange(len(layout.sizes)) << layout.log), 1 << layout.log)
    symbols = _read_words(layout, per_chunk)
    extra = np.zeros(0) if itemsize == 1 else _read_extra(layout, symbols, per_chunk)
    return from_symbols(symbols, extra, itemsize)


def _read_layout(data: Array, book: Array | None, count: int, itemsize: int) -> Layout:
    log, books = int(data[0]) & 15, 1 + (int(data[0]) >> 4)
    sections, data = 1 if itemsize == 1 else 2, data[1:]
    chunks = -(-count // (1 << log))
    if not LEAST_LOG <= log <= MOST_LOG or books > MOST_BOOKS or chunks > len(data):
        raise CorruptData(f"huffman: expected chunks of 2**8 to 2**13 codes and 1 to 4 books, found {log}, {books}")
    lengths, left = read_books(data if book is None else book, books, itemsize)
    if book is None:
        data = left
    elif len(left) > 0:
        raise CorruptData(f"huffman: {len(left)} bytes more than {books} shared books")
    table, body = data[: 2 * chunks * sections], data[2 * chunks * sections :]
    if len(table) != 2 * chunks * sections:
        raise CorruptData("huffman: the table of sizes is cut short")
    sizes = np.frombuffer(table.tobytes(), "<u2").reshape(chunks, sections).astype(np.int64)
    book_of = sizes[:, 0] >> SIZE_BITS
    sizes[:, 0] &= (1 << SIZE_BITS) - 1
    if book_of.max() >= books or sizes.sum() != len(body):
        raise CorruptData(f"huffman: expected {sizes.sum()} bytes in {chunks} chunks, found {len(body)}")
    return Layout(log, lengths, book_of, sizes, starts_of(sizes), body)


def read_books(data: Array, books: int, itemsize: int) -> tuple[Array, Array]:
    """The lengths of so many books, and the bytes behind them."""
    lengths = []
    for _ in range(books):
        book, size = load_lengths(data[: SYMBOLS // 2].tobytes())
        if book[SYMBOLS_FOR[itemsize] :].any():
            raise CorruptData(f"huffman: a symbol that codes of {itemsize} bytes do not have")
        lengths.append(book)
        data = data[size:]
    return np.stack(lengths), data


def load_books(data: Array, itemsize: int) -> Array:
    """The lengths of all books that are stored in these bytes."""
    found: list[Array] = []
    while len(data) > 0 and len(found) < MOST_BOOKS:
        lengths, data = read_books(data, 1, itemsize)
        found.append(lengths)
    if not found or len(data) > 0:
        raise CorruptData(f"huffman: expected 1 to {MOST_BOOKS} books, found {len(found)} and {len(data)} bytes more")
    return np.concatenate(found)


def _read_words(layout: Layout, per_chunk: Array) -> Array:
    """All chunks at once. Which bits begin a word is known for 1, 2, 4, .. words of each after as many steps: from
    where the next so many words lead, given every bit that a word might begin at."""
    firsts = np.array([first_symbol(book) for book in layout.lengths])
    symbols = np.repeat(firsts[layout.book_of], per_chunk).astype(np.uint8)
    worded = layout.sizes[:, 0] > 0
    if not worded.any():
        return symbols
    end = 8 * len(layout.body)
    place = np.arange(end)
    windows = get_bits(layout.body, place, np.full(end, MAX_BITS)).astype(np.int64)
    section_bytes = layout.sizes.reshape(-1)
    book_of = np.repeat(np.repeat(layout.book_of, layout.sizes.shape[1]), 8 * section_bytes)
    symbol_at = np.append(np.stack([make_windows(book) for book in layout.lengths])[book_of, windows], 0)
    length_at = np.append(layout.lengths[book_of, symbol_at[:-1]], 1)  # beyond the end: more than fills it
    jump = np.minimum(np.arange(end + 1) + length_at, end)
    begins = layout.starts[worded, :1]
    while begins.shape[1] < per_chunk[worded].max():
        begins = np.concatenate([begins, jump[begins]], axis=1)
        jump = jump[jump]
    inside = np.arange(begins.shape[1]) < per_chunk[worded, None]
    symbols[np.repeat(worded, per_chunk)] = symbol_at[begins][inside]
    bits = np.where(inside, length_at[begins], 0).sum(axis=1)
    _check_filled(layout, bits, worded, 0)
    return symbols


def _read_extra(layout: Layout, symbols: Array, per_chunk: Array) -> Array:
    chunk_of = np.repeat(np.arange(len(per_chunk)), per_chunk)
    lengths = EXTRA_BITS[symbols]
    bits = np.bincount(chunk_of, weights=lengths, minlength=len(per_chunk)).astype(np.int64)
    _check_filled(layout, bits, np.ones(len(per_chunk), bool), 1)
    return get_bits(layout.body, places_of(lengths, chunk_of, layout.starts[:, 1]), lengths)


def _check_filled(layout: Layout, bits: Array, chunks: Array, section: int) -> None:
    """So many bits fill the chunks' sections, with zeros after the last."""
    starts, sizes = layout.starts[chunks, section], layout.sizes[chunks, section]
    rest = get_bits(layout.body, starts + bits, -bits % 8)
    if (-(-bits // 8) != sizes).any() or rest.any():
        raise CorruptData("huffman: a chunk ends before its codes do, or after")
