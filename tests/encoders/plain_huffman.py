"""A decoder of `huffman` streams written from docs/format.md alone, for reading and not for speed."""

from __future__ import annotations

from collections.abc import Iterator


def bits_of(data: bytes) -> Iterator[int]:
    return (byte >> k & 1 for byte in data for k in range(8))


def read_book(halves: Iterator[int]) -> dict[str, int]:
    """Words to symbols."""
    lengths: list[int] = []
    last = 0
    while len(lengths) < 256:
        half = next(halves)
        if half <= 11:
            lengths.append(half)
            last = half or last
        elif half == 12:
            lengths += [0] * (2 + next(halves))
        elif half == 13:
            lengths += [0] * (18 + next(halves) + 16 * next(halves))
        else:
            lengths += [last] * (3 + next(halves))
    assert sum(2.0**-length for length in lengths if length) == 1
    book, word, before = {}, -1, 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(lengths) if length):
        word = (word + 1) << (length - before)
        book[f"{word:0{length}b}"] = symbol
        before = length
    return book


def read_chunk(words: bytes, extra: bytes, book: dict[str, int], count: int, itemsize: int) -> Iterator[int]:
    word_bits, extra_bits = bits_of(words), bits_of(extra)
    first = min(book.items(), key=lambda item: (len(item[0]), item[1]))[1]
    for _ in range(count):
        word = ""
        while words and word not in book:
            word += str(next(word_bits))
        symbol = book[word] if words else first
        if itemsize == 1:
            yield symbol
            continue
        folded = symbol
        if symbol >= 128:
            e, m = 7 + (symbol - 128) // 4, symbol % 4
            folded = 2**e + m * 2 ** (e - 2) + sum(next(extra_bits) << k for k in range(e - 2))
        yield folded // 2 if folded % 2 == 0 else -(folded + 1) // 2
    assert not any(word_bits)
    assert not any(extra_bits)


def read(stream: bytes, count: int, itemsize: int, shared: bytes = b"") -> list[int]:
    """The codes: unsigned of one byte, and signed of more."""
    mode, data = stream[0], stream[1:]
    if mode in (0, 1):
        codes = data if mode == 0 else data * count
        return [
            int.from_bytes(codes[i : i + itemsize], "little", signed=itemsize > 1)
            for i in range(0, len(codes), itemsize)
        ]
    chunk, books, at = 2 ** (data[0] & 15), [], 0
    stored = shared if mode == 3 else data[1:]
    for _ in range(1 + (data[0] >> 4)):
        read_halves = []
        halves = iter([half for byte in stored[at:] for half in (byte & 15, byte >> 4)])
        books.append(read_book(read_halves.append(half) or half for half in halves))  # type: ignore[func-returns-value]
        at += (len(read_halves) + 1) // 2
    assert mode == 2 or at == len(shared)
    at = 1 if mode == 3 else 1 + at
    chunks, parts = -(-count // chunk), 1 if itemsize == 1 else 2
    sizes = [int.from_bytes(data[i : i + 2], "little") for i in range(at, at + 2 * chunks * parts, 2)]
    at += 2 * chunks * parts
    codes_read: list[int] = []
    for i in range(chunks):
        size, book = sizes[i * parts] & 0x3FFF, books[sizes[i * parts] >> 14]
        extra_size = sizes[i * parts + 1] if parts == 2 else 0
        words, extra = data[at : at + size], data[at + size : at + size + extra_size]
        codes_read += read_chunk(words, extra, book, min(chunk, count - i * chunk), itemsize)
        at += size + extra_size
    assert at == len(data)
    return codes_read
