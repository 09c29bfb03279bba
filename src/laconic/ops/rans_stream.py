"""The reference for `native/rans_read.cpp`: streams to codes.

mode and lanes, book, sizes of the chunks, | states, words, extra bits | states, words, extra bits | ..
"""

from __future__ import annotations

import numpy as np

from laconic.errors import CorruptData
from laconic.ops.rans_book import Array, Book, load_book
from laconic.ops.rans_symbols import extra_lengths, from_symbols, get_numbers, unfold

RAW, CONSTANT, WORDS, SHARED = 0, 1, 2, 3
MOST_LANES_LOG = 5
MOST_CHUNK_LOG = 17
LEAST_STATE = 1 << 16
STATE_BYTES, WORD_BYTES = 4, 2
MOST_SIZE_BYTES = 4


def chunk_length(count: int) -> int:
    """All chunks have so many codes, and the last one what is left."""
    chunks = max(1, -(-count // (1 << MOST_CHUNK_LOG)))
    each = -(-count // chunks)
    return -(-each // 32) * 32


def start_state(lanes: int, bits: int) -> int:
    """What a lane's state is before it writes: a single one may begin low, as nobody else's words confuse it. Not so
    low that decoding could stay there: states that lack words fall further."""
    return (1 << bits) - 1 if lanes == 1 else LEAST_STATE


def read_stream(stream: Array, book: Array, count: int, itemsize: int) -> Array:
    """Exactly `count` codes, as integers or bytes of their size; CorruptData where that is not what is there."""
    head, data = int(stream[0]) if len(stream) else -1, stream[1:]
    mode = head & 3 if head >= 0 else -1
    if mode != SHARED and len(book) > 0:
        raise CorruptData(f"rans: {len(book)} bytes of a shared book, for a stream that has no use for them")
    if head == RAW and len(data) == count * itemsize:
        return data
    if head == CONSTANT and len(data) == itemsize and count > 1:
        return np.tile(data, count)
    if mode not in (WORDS, SHARED) or head >> 2 > MOST_LANES_LOG or count < 2:
        raise CorruptData(f"rans: expected a stream of {count} codes of {itemsize} bytes, found another")
    if mode == WORDS:
        table = load_book(data.tobytes(), itemsize)
        data = data[len(table.stored) :]
    else:
        table = shared_book(book, itemsize)
    return unfold(_read_chunks(data, table, 1 << (head >> 2), count), itemsize)


def shared_book(book: Array, itemsize: int) -> Book:
    """The one that fills these bytes."""
    table = load_book(book.tobytes(), itemsize)
    if len(table.stored) != len(book):
        raise CorruptData(f"rans: {len(book) - len(table.stored)} bytes behind a shared book")
    return table


def _read_chunks(data: Array, book: Book, lanes: int, count: int) -> Array:
    length = chunk_length(count)
    chunks = -(-count // length)
    if chunks - 1 > len(data):
        raise CorruptData(f"rans: {len(data)} bytes for {chunks} chunks")
    sizes, data = _read_sizes(data, chunks, book.has_extra)
    folded = []
    for chunk, (words, extra) in enumerate(sizes):
        symbols = read_words(data[:words], book, lanes, min(length, count - chunk * length))
        folded.append(_with_extra(symbols, data[words : words + extra], book.direct))
        data = data[words + extra :]
    return np.concatenate(folded)


def _read_sizes(data: Array, chunks: int, has_extra: bool) -> tuple[list[tuple[int, int]], Array]:
    """The bytes of each chunk's words and extra bits; and what is behind them, all of which they fill."""
    at = 0

    def number() -> int:
        nonlocal at
        value = 0
        for k in range(MOST_SIZE_BYTES):
            if at == len(data):
                raise CorruptData("rans: the chunks' sizes are cut short")
            byte = int(data[at])
            at += 1
            value |= (byte & 127) << 7 * k
            if byte < 128:
                return value
        raise CorruptData("rans: a chunk's size takes too many bytes")

    sizes = [(number() if chunk < chunks - 1 else 0, number() if has_extra else 0) for chunk in range(chunks)]
    left = len(data) - at - sum(words + extra for words, extra in sizes)
    if left < 0:
        raise CorruptData(f"rans: {-left} bytes less than the chunks' sizes say")
    return [*sizes[:-1], (left, sizes[-1][1])], data[at:]


def read_words(section: Array, book: Book, lanes: int, count: int) -> Array:
    """The symbols of a chunk. A state that falls below 2^16 takes the next word, if there is one."""
    states, words = _read_states(section, lanes)
    symbol_of = np.repeat(np.arange(len(book.frequencies)), book.frequencies).tolist()
    frequency_of = book.frequencies.tolist()
    start_of = (np.cumsum(book.frequencies) - book.frequencies).tolist()
    bits, mask, at, symbols = book.bits, (1 << book.bits) - 1, 0, []
    for i in range(count):
        x = states[i % lanes]
        symbol = symbol_of[x & mask]
        symbols.append(symbol)
        x = frequency_of[symbol] * (x >> bits) + (x & mask) - start_of[symbol]
        if x < LEAST_STATE and at < len(words):
            x = x << 16 | words[at]
            at += 1
        states[i % lanes] = x
    if at != len(words) or any(x != start_state(lanes, bits) for x in states):
        raise CorruptData("rans: a chunk ends before its codes do, or after")
    return np.array(symbols)


def _read_states(section: Array, lanes: int) -> tuple[list[int], list[int]]:
    data = section.tobytes()
    size = STATE_BYTES * lanes
    if lanes == 1:
        size = len(data) if len(data) < STATE_BYTES else STATE_BYTES - len(data) % 2
    if len(data) < size or (len(data) - size) % WORD_BYTES:
        raise CorruptData(f"rans: {len(data)} bytes for the states and words of {lanes} lanes")
    each = size // lanes
    states = [int.from_bytes(data[each * k : each * (k + 1)], "little") for k in range(lanes)]
    return states, np.frombuffer(data, "<u2", offset=size).tolist()


def _with_extra(symbols: Array, section: Array, direct: int) -> Array:
    """Folded codes; `section` is filled by the symbols' extra bits, but for zeros."""
    lengths = extra_lengths(symbols, direct)
    bits = int(lengths.sum())
    if -(-bits // 8) != len(section) or (bits % 8 and int(section[-1]) >> bits % 8):
        raise CorruptData("rans: a chunk has more extra bits than its symbols, or less")
    return from_symbols(symbols, get_numbers(section, lengths), direct)
