"""The reference for `native/huffman_write.cpp` and `huffman_read.cpp`: streams in numpy, the same bytes.

mode, layout, books, sizes of the chunks' sections, | words, extra bits | words, extra bits | ..
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from laconic.errors import CorruptData
from laconic.ops.huffman_book import (
    MAX_BITS,
    SYMBOLS,
    Array,
    first_symbol,
    load_lengths,
    make_lengths,
    make_windows,
    make_words,
    store_lengths,
)
from laconic.ops.huffman_symbols import EXTRA_BITS, SYMBOLS_FOR, from_symbols, get_bits, put_bits, to_symbols

RAW, CONSTANT, WORDS = 0, 1, 2

LEAST_LOG, MOST_LOG = 8, 13
MOST_BOOKS = 4
SIZE_BITS = 14
"""Of a chunk's two bytes in the table of sizes; what is above is its book."""


def chunk_log_for(count: int) -> int:
    """Fewer codes make smaller chunks: several are decoded at once even on one thread."""
    return next((log for log in range(MOST_LOG, 10, -1) if count >> log >= 8), 10)


def books_for(count: int) -> int:
    """A book costs time and room of its own."""
    return 1 if count < 1 << 16 else 2 if count < 1 << 19 else MOST_BOOKS


def write_stream(codes: Array) -> Array:
    """A row of int8, uint8, int16 or int32 as bytes, at most one more than they have."""
    data = codes.view(np.uint8)
    if len(codes) < 2:
        return np.concatenate([np.array([RAW], np.uint8), data])
    if (codes == codes[0]).all():
        return np.concatenate([np.array([CONSTANT], np.uint8), data[: codes.itemsize]])
    stream = _write_words(codes)
    return stream if len(stream) <= len(data) else np.concatenate([np.array([RAW], np.uint8), data])


def _write_words(codes: Array) -> Array:
    symbols, extra = to_symbols(codes)
    log, books = chunk_log_for(len(codes)), books_for(len(codes))
    chunks = -(-len(codes) // (1 << log))
    chunk_of = np.arange(len(codes)) >> log
    counts = np.bincount(chunk_of * SYMBOLS + symbols, minlength=chunks * SYMBOLS).reshape(chunks, SYMBOLS)
    lengths = _make_books(counts, books)
    book_of = _choose_books(counts, lengths)
    firsts = np.array([first_symbol(book) for book in lengths])[book_of]
    uniform = counts[np.arange(chunks), firsts] == counts.sum(axis=1)
    word_bits = np.where(uniform, 0, (counts * lengths[book_of]).sum(axis=1))
    sections = [word_bits] if codes.itemsize == 1 else [word_bits, counts @ EXTRA_BITS]
    sizes = -(-np.stack(sections, axis=1) // 8)
    table = sizes.astype("<u2")
    table[:, 0] |= (book_of << SIZE_BITS).astype("<u2")
    stored = b"".join(store_lengths(book) for book in lengths)
    header = bytes([WORDS, log | (books - 1) << 4]) + stored + table.tobytes()
    starts = _starts(sizes)
    body = np.zeros(int(sizes.sum()), np.uint8)
    worded = ~uniform[chunk_of]
    book_of_code = book_of[chunk_of[worded]]
    lengths_of = lengths[book_of_code, symbols[worded]]
    words = np.stack([make_words(book) for book in lengths])[book_of_code, symbols[worded]]
    put_bits(body, _places(lengths_of, chunk_of[worded], starts[:, 0]), words)
    if codes.itemsize > 1:
        put_bits(body, _places(EXTRA_BITS[symbols], chunk_of, starts[:, 1]), extra)
    return np.concatenate([np.frombuffer(header, np.uint8), body])


def _make_books(counts: Array, books: int) -> Array:
    """One for each of as many groups of chunks, from cheap ones to dear ones: by about as many bits for a symbol as
    its frequency in all is worth."""
    sums = counts.sum(axis=0)
    cost = np.frexp(sums.sum() // np.maximum(sums, 1))[1] * (sums > 0)
    order = np.argsort(counts @ cost, kind="stable")
    edges = [len(counts) * k // books for k in range(books + 1)]
    return np.stack([make_lengths(counts[order[a:b]].sum(axis=0)) for a, b in pairwise(edges)])


def _choose_books(counts: Array, lengths: Array) -> Array:
    """For each chunk the book that writes it in the fewest bits, and of several the first."""
    impossible = (counts > 0) @ (lengths == 0).T.astype(np.int64) > 0
    bits: Array = np.where(impossible, np.iinfo(np.int64).max, counts @ lengths.T)
    best: Array = bits.argmin(axis=1)
    return best


def _starts(sizes: Array) -> Array:
    """Where each section begins, in bits."""
    ends = np.cumsum(sizes.astype(np.int64).reshape(-1))
    return 8 * np.concatenate([[0], ends[:-1]]).reshape(sizes.shape)


def _places(lengths: Array, chunk_of: Array, starts: Array) -> Array:
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


def read_stream(stream: Array, count: int, itemsize: int) -> Array:
    """Exactly `count` codes, as integers or bytes of their size; CorruptData where that is not what is there."""
    mode, data = int(stream[0]) if len(stream) else -1, stream[1:]
    if mode == RAW and len(data) == count * itemsize:
        return data
    if mode == CONSTANT and len(data) == itemsize and count > 1:
        return np.tile(data, count)
    if mode != WORDS or count < 2 or len(data) == 0:
        raise CorruptData(f"huffman: expected a stream of {count} codes of {itemsize} bytes, found another")
    layout = _read_layout(data, count, itemsize)
    per_chunk = np.minimum(count - (np.arange(len(layout.sizes)) << layout.log), 1 << layout.log)
    symbols = _read_words(layout, per_chunk)
    extra = np.zeros(0) if itemsize == 1 else _read_extra(layout, symbols, per_chunk)
    return from_symbols(symbols, extra, itemsize)


def _read_layout(data: Array, count: int, itemsize: int) -> Layout:
    log, books = int(data[0]) & 15, 1 + (int(data[0]) >> 4)
    sections, at = 1 if itemsize == 1 else 2, 1
    chunks = -(-count // (1 << log))
    if not LEAST_LOG <= log <= MOST_LOG or books > MOST_BOOKS or chunks > len(data):
        raise CorruptData(f"huffman: expected chunks of 2**8 to 2**13 codes and 1 to 4 books, found {log}, {books}")
    lengths = []
    for _ in range(books):
        book, size = load_lengths(data[at : at + SYMBOLS // 2].tobytes())
        if book[SYMBOLS_FOR[itemsize] :].any():
            raise CorruptData(f"huffman: a symbol that codes of {itemsize} bytes do not have")
        lengths.append(book)
        at += size
    table = data[at : at + 2 * chunks * sections]
    body = data[at + 2 * chunks * sections :]
    if len(table) != 2 * chunks * sections:
        raise CorruptData("huffman: the table of sizes is cut short")
    sizes = table.view("<u2").reshape(chunks, sections).astype(np.int64)
    book_of = sizes[:, 0] >> SIZE_BITS
    sizes[:, 0] &= (1 << SIZE_BITS) - 1
    if book_of.max() >= books or sizes.sum() != len(body):
        raise CorruptData(f"huffman: expected {sizes.sum()} bytes in {chunks} chunks, found {len(body)}")
    return Layout(log, np.stack(lengths), book_of, sizes, _starts(sizes), body)


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
    return get_bits(layout.body, _places(lengths, chunk_of, layout.starts[:, 1]), lengths)


def _check_filled(layout: Layout, bits: Array, chunks: Array, section: int) -> None:
    """So many bits fill the chunks' sections, with zeros after the last."""
    starts, sizes = layout.starts[chunks, section], layout.sizes[chunks, section]
    rest = get_bits(layout.body, starts + bits, -bits % 8)
    if (-(-bits // 8) != sizes).any() or rest.any():
        raise CorruptData("huffman: a chunk ends before its codes do, or after")
