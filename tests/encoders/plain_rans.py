"""A decoder of `rans` streams written from docs/format.md alone, for reading and not for speed."""

from __future__ import annotations

from typing import NamedTuple


class Bits:
    """Bits of bytes, the lowest first."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> int:
        value = 0
        for k in range(count):
            value |= (self.data[self.at >> 3] >> (self.at & 7) & 1) << k
            self.at += 1
        return value

    def number(self, order: int) -> int:
        e = order
        while self.take(1) == 0:
            e += 1
        return 2**e + self.take(e) - 2**order

    def close(self) -> int:
        """The bytes that are filled."""
        assert self.take(-self.at % 8) == 0
        return self.at // 8


class Book(NamedTuple):
    m: int
    d: int
    frequencies: list[int]
    size: int


def unfold(folded: int) -> int:
    return folded // 2 if folded % 2 == 0 else -(folded + 1) // 2


def read_book(data: bytes, itemsize: int) -> Book:
    bits = Bits(data)
    m, order = 8 + bits.take(3), bits.take(2)
    d = bits.take(4) if itemsize > 1 else 0
    symbols = 256 if itemsize == 1 else 2**d + 4 * (8 * itemsize - d)
    levels: list[int] = []
    last = 0
    while len(levels) < symbols:
        level = last + unfold(bits.number(order))
        assert 0 <= level <= 144
        if level == 0:
            levels += [0] * (bits.number(1) or symbols - len(levels))
        else:
            levels.append(level)
            last = level
    assert len(levels) == symbols
    return Book(m, d, frequencies_of(levels, m), bits.close())


def frequencies_of(levels: list[int], m: int) -> list[int]:
    weights = [level if level < 16 else (8 + level % 8) * 2 ** (level // 8 - 1) for level in levels]
    present = sum(weight > 0 for weight in weights)
    assert 2 <= present < 2**m
    u = [max(0, 2**m * weight - sum(weights)) for weight in weights]
    found, before = [], 0
    for weight, more in zip(weights, u, strict=True):
        ends = [at * (2**m - present) // sum(u) for at in (before, before + more)]
        found.append((weight > 0) + ends[1] - ends[0])
        before += more
    assert sum(found) == 2**m
    return found


def read_size(data: bytes, at: int) -> tuple[int, int]:
    """A size, and where the next one begins."""
    more, after = read_size(data, at + 1) if data[at] > 127 else (0, at + 1)
    return data[at] % 128 + 128 * more, after


def read_words(data: bytes, book: Book, lanes: int, count: int) -> list[int]:
    """The symbols of a chunk."""
    each = 4
    if lanes == 1:
        each = len(data) if len(data) < 4 else 4 - len(data) % 2
    states = [int.from_bytes(data[each * lane : each * (lane + 1)], "little") for lane in range(lanes)]
    words = [int.from_bytes(data[at : at + 2], "little") for at in range(each * lanes, len(data), 2)]
    slots = [(s, start) for s, start in enumerate(starts_of(book)) for _ in range(book.frequencies[s])]
    symbols = []
    for i in range(count):
        x = states[i % lanes]
        symbol, start = slots[x % 2**book.m]
        x = book.frequencies[symbol] * (x // 2**book.m) + x % 2**book.m - start
        if x < 2**16 and words:
            x = 2**16 * x + words.pop(0)
        states[i % lanes] = x
        symbols.append(symbol)
    assert not words
    assert states == [2**book.m - 1 if lanes == 1 else 2**16] * lanes
    return symbols


def starts_of(book: Book) -> list[int]:
    return [sum(book.frequencies[:symbol]) for symbol in range(len(book.frequencies))]


def with_extra(symbols: list[int], data: bytes, d: int) -> list[int]:
    bits, codes = Bits(data), []
    for symbol in symbols:
        folded = symbol
        if symbol >= 2**d:
            e, m = d + (symbol - 2**d) // 4, (symbol - 2**d) % 4
            folded = 2**e + m * 2 ** (e - 2) + bits.take(e - 2)
        codes.append(unfold(folded))
    assert bits.close() == len(data)
    return codes


def read(stream: bytes, count: int, itemsize: int, shared: bytes = b"") -> list[int]:
    """The codes: unsigned of one byte, and signed of more."""
    mode, lanes, data = stream[0] % 4, 2 ** (stream[0] // 4), stream[1:]
    if mode in (0, 1):
        assert lanes == 1
        codes = data if mode == 0 else data * count
        return [
            int.from_bytes(codes[i : i + itemsize], "little", signed=itemsize > 1)
            for i in range(0, len(codes), itemsize)
        ]
    book = read_book(data if mode == 2 else shared, itemsize)
    assert mode == 2 or book.size == len(shared)
    at = book.size if mode == 2 else 0
    chunks = -(-count // 2**17)
    each = -(-count // chunks)
    length = 32 * -(-each // 32)
    chunks = -(-count // length)
    has_extra = itemsize > 1 and any(book.frequencies[2**book.d :])
    sizes = []
    for chunk in range(chunks):
        words, at = read_size(data, at) if chunk < chunks - 1 else (0, at)
        extra, at = read_size(data, at) if has_extra else (0, at)
        sizes.append((words, extra))
    sizes[-1] = (len(data) - at - sum(words + extra for words, extra in sizes), sizes[-1][1])
    codes_read: list[int] = []
    for chunk, (words, extra) in enumerate(sizes):
        symbols = read_words(data[at : at + words], book, lanes, min(length, count - chunk * length))
        at += words + extra
        codes_read += symbols if itemsize == 1 else with_extra(symbols, data[at - extra : at], book.d)
    assert at == len(data)
    return codes_read
