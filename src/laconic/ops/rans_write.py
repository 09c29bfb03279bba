"""The reference for `native/rans_write.cpp` and its neighbours: codes to streams, the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from laconic.ops.rans_book import Array, Book, make_book
from laconic.ops.rans_stream import (
    CONSTANT,
    RAW,
    SHARED,
    STATE_BYTES,
    WORDS,
    chunk_length,
    start_state,
)
from laconic.ops.rans_symbols import DIRECTS_TRIED, alphabet, extra_lengths, fold, put_numbers, to_symbols

WORTH_LANES = (480, 1200, 3200, 7680, 15360)
"""A lane takes three bytes more than it writes: so many bytes of words are worth 2, 4, 8, 16, 32 lanes."""
BYTES_OF_LENGTH = 8
"""In the buffer for the wire, books have a length beside them."""


def in_words(codes: Array) -> bool:
    """Whether it takes words to write such codes."""
    return len(codes) > 1 and bool((codes != codes[0]).any())


def lanes_log_for(words: int, chunks: int) -> int:
    """More lanes are faster, for chunks with so many bytes of words in all."""
    each = words // chunks
    return sum(each >= least for least in WORTH_LANES)


class Counted:
    """Folded codes, and how often each symbol of the largest alphabet occurs."""

    def __init__(self, codes: Array) -> None:
        self.itemsize, self.count = codes.itemsize, len(codes)
        self.folded = fold(codes)
        self.length = chunk_length(self.count)
        self.chunks = -(-self.count // self.length)
        self.top = int(self.folded.max())

    def with_direct(self, direct: int) -> Array:
        symbols = to_symbols(self.folded, direct).symbols
        return np.bincount(symbols, minlength=alphabet(self.itemsize, direct))


def directs_for(itemsize: int, top: int) -> list[int]:
    """Those that differ for codes which, folded, are at most `top`. The largest comes first: it is the fastest."""
    if itemsize == 1:
        return [0]
    return [direct for direct, less in zip(DIRECTS_TRIED, (*DIRECTS_TRIED[1:], 0), strict=True) if top >> less]


@dataclass(frozen=True)
class Plan:
    """A stream with a certain book before a byte of it is written: the bytes of words and the bits left over."""

    counted: Counted
    book: Book
    own: bool
    words: int
    extra: int

    @property
    def lanes_log(self) -> int:
        return lanes_log_for(self.words, self.counted.chunks)

    @property
    def estimate(self) -> int:
        """About how many bytes it takes."""
        table = len(self.book.stored) if self.own else 0
        states = self.counted.chunks * (STATE_BYTES - 1 << self.lanes_log)
        return 1 + table + self.words + states + -(-self.extra // 8)

    def write(self) -> bytes:
        lanes = 1 << self.lanes_log
        head = bytes([(WORDS if self.own else SHARED) | self.lanes_log << 2])
        head += self.book.stored if self.own else b""
        body = b""
        length, last = self.counted.length, self.counted.chunks - 1
        for chunk in range(last + 1):
            folded = self.counted.folded[chunk * length : (chunk + 1) * length]
            symbols, values, lengths = to_symbols(folded, self.book.direct)
            words, extra = write_words(symbols, self.book, lanes), put_numbers(values, lengths)
            head += _size(len(words)) if chunk < last else b""
            head += _size(len(extra)) if self.book.has_extra else b""
            body += words + extra
        return head + body


def _size(value: int) -> bytes:
    """Seven bits to a byte, the lowest first; the highest bit says that more follow."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _size(value >> 7)


def write_words(symbols: Array, book: Book, lanes: int) -> bytes:
    """From the last symbol to the first. A state that would grow beyond 32 bits leaves its lower half as a word."""
    frequency_of = book.frequencies.tolist()
    start_of = (np.cumsum(book.frequencies) - book.frequencies).tolist()
    bits, words = book.bits, []
    states = [start_state(lanes, bits)] * lanes
    for i in range(len(symbols) - 1, -1, -1):
        symbol, x = int(symbols[i]), states[i % lanes]
        frequency = frequency_of[symbol]
        if x >= frequency << (32 - bits):
            words.append(x & 0xFFFF)
            x >>= 16
        states[i % lanes] = (x // frequency << bits) + x % frequency + start_of[symbol]
    written = np.array(words[::-1], "<u2").tobytes()
    if lanes > 1:
        return np.array(states, "<u4").tobytes() + written
    (x,) = states
    return x.to_bytes(-(-x.bit_length() // 8), "little") + written


def plans(counted: Counted, shared: Book | None) -> list[Plan]:
    """With the stream's own book, and with the shared one where that is possible."""
    best = None
    for direct in directs_for(counted.itemsize, counted.top):
        own = _plan(counted, make_book(counted.with_direct(direct), direct), own=True)
        if best is None or (own and own.estimate < best.estimate - (best.estimate >> 8)):
            best = own
    other = None if shared is None else _plan(counted, shared, own=False)
    return [plan for plan in (best, other) if plan]


def _plan(counted: Counted, book: Book, own: bool) -> Plan | None:
    counts = counted.with_direct(book.direct)
    cost = book.cost(counts)
    extra = int((counts * extra_lengths(np.arange(len(counts)), book.direct)).sum())
    return None if cost is None else Plan(counted, book, own, cost >> 3, extra)


def write_stream(codes: Array, shared: Book | None = None) -> Array:
    """A row of int8, uint8, int16 or int32 as bytes, at most one more than they have; `shared`: a book for a batch."""
    data = codes.view(np.uint8)
    if len(codes) > 1 and not in_words(codes):
        return np.concatenate([np.array([CONSTANT], np.uint8), data[: codes.itemsize]])
    if len(codes) > 1:
        plan = min(plans(Counted(codes), shared), key=lambda plan: plan.estimate)
        if plan.estimate <= len(data) and len(stream := plan.write()) <= len(data):
            return np.frombuffer(stream, np.uint8)
    return np.concatenate([np.array([RAW], np.uint8), data])


def share_book(batch: Sequence[Array]) -> bytes:
    """The stored book for all tensors of a batch; nothing where it takes as much as it saves."""
    counted = [Counted(codes) for codes in batch if in_words(codes)]
    if len(counted) < 2:
        return b""
    best, stored = 0, b""
    for direct in directs_for(counted[0].itemsize, max(one.top for one in counted)):
        book = make_book(sum(one.with_direct(direct) for one in counted), direct)  # type: ignore[arg-type]
        saved = sum(_saved(one, book) for one in counted) - BYTES_OF_LENGTH - len(book.stored)
        if saved > best:
            best, stored = saved, book.stored
    return stored


def _saved(counted: Counted, book: Book) -> int:
    """By how many bytes a stream is smaller with this book, about."""
    alone, *others = (plan.estimate for plan in plans(counted, book))
    alone = min(alone, 1 + counted.count * counted.itemsize)
    return max(0, *(alone - other for other in others)) if others else 0
