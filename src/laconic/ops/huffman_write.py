"""The reference for `native/huffman_write.cpp` and its neighbours: streams in numpy, the same bytes.

Codes are counted by chunk, books are made or given, a plan says what they would cost, and the cheaper one is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from laconic.ops.huffman_book import SYMBOLS, Array, first_symbol, make_lengths, make_words, store_lengths
from laconic.ops.huffman_stream import (
    CONSTANT,
    MOST_BOOKS,
    MOST_LOG,
    RAW,
    SHARED,
    SIZE_BITS,
    WORDS,
    places_of,
    starts_of,
)
from laconic.ops.huffman_symbols import EXTRA_BITS, Symbols, put_bits, to_symbols

BYTES_OF_LENGTH = 8
"""In the buffer for the wire, books have a length beside them."""


def chunk_log_for(count: int) -> int:
    """Fewer codes make smaller chunks: several are decoded at once even on one thread."""
    return next((log for log in range(MOST_LOG, 10, -1) if count >> log >= 8), 10)


def books_for(count: int) -> int:
    """A book costs time and room of its own."""
    return 1 if count < 1 << 16 else 2 if count < 1 << 19 else MOST_BOOKS


def in_words(codes: Array) -> bool:
    """Whether it takes words to write such codes."""
    return len(codes) > 1 and bool((codes != codes[0]).any())


class Counted:
    """Codes as symbols, and how often each occurs in each chunk."""

    def __init__(self, codes: Array) -> None:
        self.itemsize = codes.itemsize
        self.symbols: Symbols = to_symbols(codes)
        self.log = chunk_log_for(len(codes))
        self.chunks = -(-len(codes) // (1 << self.log))
        self.chunk_of = np.arange(len(codes)) >> self.log
        places = self.chunk_of * SYMBOLS + self.symbols.symbols
        self.counts = np.bincount(places, minlength=self.chunks * SYMBOLS).reshape(self.chunks, SYMBOLS)


def make_books(counts: Array) -> Array:
    """One for each group of chunks, from cheap ones to dear ones: by what a code in them costs, with about as many
    bits for a symbol as its frequency in all is worth."""
    sums, sizes = counts.sum(axis=0), counts.sum(axis=1)
    books = books_for(int(sums.sum()))
    cost = np.frexp(sums.sum() // np.maximum(sums, 1))[1] * (sums > 0)
    order = np.argsort((counts @ cost << MOST_LOG) // sizes, kind="stable")
    edges = [len(counts) * k // books for k in range(books + 1)]
    return np.stack([make_lengths(counts[order[a:b]].sum(axis=0)) for a, b in pairwise(edges)])


@dataclass(frozen=True)
class Plan:
    """A stream with certain books, its own or shared ones, before a byte of it is written."""

    counted: Counted
    lengths: Array
    own: bool

    @property
    def possible(self) -> bool:
        """Whether every chunk has a book with words for all of its symbols."""
        return bool((self._bits.min(axis=1) < np.iinfo(np.int64).max).all())

    @property
    def nbytes(self) -> int:
        return len(self._header) + int(self._sizes.sum())

    def write(self) -> Array:
        counted, (symbols, extra) = self.counted, self.counted.symbols
        body = np.zeros(int(self._sizes.sum()), np.uint8)
        starts = starts_of(self._sizes)
        chunk_of = counted.chunk_of[~self._uniform[counted.chunk_of]]
        worded = symbols[~self._uniform[counted.chunk_of]]
        words = np.stack([make_words(book) for book in self.lengths])[self._book_of[chunk_of], worded]
        put_bits(body, places_of(self.lengths[self._book_of[chunk_of], worded], chunk_of, starts[:, 0]), words)
        if counted.itemsize > 1:
            put_bits(body, places_of(EXTRA_BITS[symbols], counted.chunk_of, starts[:, 1]), extra)
        return np.concatenate([np.frombuffer(self._header, np.uint8), body])

    @cached_property
    def _bits(self) -> Array:
        """What each chunk's words take in each book."""
        counts = self.counted.counts
        impossible = (counts > 0) @ (self.lengths == 0).T.astype(np.int64) > 0
        return np.where(impossible, np.iinfo(np.int64).max, counts @ self.lengths.T)

    @cached_property
    def _book_of(self) -> Array:
        """For each chunk the book that writes it in the fewest bits, and of several the first."""
        best: Array = self._bits.argmin(axis=1)
        return best

    @cached_property
    def _uniform(self) -> Array:
        """Whether all of a chunk is its book's first symbol."""
        firsts = np.array([first_symbol(book) for book in self.lengths])[self._book_of]
        counts = self.counted.counts
        all_first: Array = counts[np.arange(len(counts)), firsts] == counts.sum(axis=1)
        return all_first

    @cached_property
    def _sizes(self) -> Array:
        """Bytes of each chunk's sections."""
        words = np.where(self._uniform, 0, self._bits.min(axis=1))
        sections = [words] if self.counted.itemsize == 1 else [words, self.counted.counts @ EXTRA_BITS]
        return -(-np.stack(sections, axis=1) // 8)

    @cached_property
    def _header(self) -> bytes:
        table = self._sizes.astype("<u2")
        table[:, 0] |= (self._book_of << SIZE_BITS).astype("<u2")
        layout = bytes([WORDS if self.own else SHARED, self.counted.log | (len(self.lengths) - 1) << 4])
        return layout + (store_books(self.lengths) if self.own else b"") + table.tobytes()


def store_books(lengths: Array) -> bytes:
    return b"".join(store_lengths(book) for book in lengths)


def write_stream(codes: Array, shared: Array | None) -> Array:
    """A row of int8, uint8, int16 or int32 as bytes, at most one more than they have; `shared`: books for a batch."""
    data = codes.view(np.uint8)
    if len(codes) > 1 and not in_words(codes):
        return np.concatenate([np.array([CONSTANT], np.uint8), data[: codes.itemsize]])
    words = plan(Counted(codes), shared) if len(codes) > 1 else None
    if words is None or words.nbytes > len(data):
        return np.concatenate([np.array([RAW], np.uint8), data])
    return words.write()


def plan(counted: Counted, shared: Array | None) -> Plan:
    """With the stream's own books, or the shared ones where these make it smaller."""
    own = Plan(counted, make_books(counted.counts), own=True)
    other = own if shared is None else Plan(counted, shared, own=False)
    return other if other.possible and other.nbytes < own.nbytes else own


def share_books(batch: Sequence[Array]) -> bytes:
    """The stored books for all tensors of a batch; nothing where these take as much as they save."""
    counted = [Counted(codes) for codes in batch if in_words(codes)]
    if len(counted) < 2:
        return b""
    lengths = make_books(np.concatenate([one.counts for one in counted]))
    stored = store_books(lengths)
    saved = 0
    for one in counted:
        alone = min(plan(one, None).nbytes, 1 + len(one.chunk_of) * one.itemsize)
        saved += max(alone - Plan(one, lengths, own=False).nbytes, 0)
    return stored if saved > BYTES_OF_LENGTH + len(stored) else b""
