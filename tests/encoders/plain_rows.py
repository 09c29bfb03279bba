"""Decoders of `rows` and `vlz` written from docs/format.md alone, for reading and not for speed."""

from __future__ import annotations

from . import plain_huffman


class Bits:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, count: int) -> int:
        bits = [self.data[i // 8] >> i % 8 & 1 for i in range(self.at, self.at + count)]
        self.at += count
        return sum(bit << i for i, bit in enumerate(bits))

    def rice(self, k: int) -> int:
        for q in range(16):
            if self.number(1) == 1:
                return q * 2**k + self.number(k)
        return self.number(32)

    def end(self) -> int:
        """How many bytes were begun."""
        left = -self.at % 8
        assert self.number(left) == 0
        return self.at // 8


def places(index: bytes, kept: int, count: int) -> list[int]:
    """For each row which row of main it is."""
    if not index:
        assert kept == count
        return list(range(count))
    found: list[int] = []
    seen = 0
    if index == b"\x20" and kept == 1:
        return [0] * count
    if index[0] == 32:
        for place in plain_huffman.read(index[1:], count, 4):
            assert 0 <= place <= seen
            found.append(place)
            seen += place == seen
        assert seen == kept
        return found
    bits = Bits(index[1:])
    for _ in range(count - kept):
        run = bits.rice(index[0])
        found += range(seen, seen + run)
        seen += run
        assert 0 < seen <= kept
        found.append(bits.number((seen - 1).bit_length()))
        assert found[-1] < seen
    assert bits.end() == len(index) - 1
    return found + list(range(seen, kept))


def codes_of(stream: bytes, count: int, size: int) -> bytes:
    return b"".join(
        (code % 2 ** (8 * size)).to_bytes(size, "little") for code in plain_huffman.read(stream, count, size)
    )


def read_vlz(stream: bytes, count: int, row: int, size: int) -> bytes:
    """So many rows of `row` bytes, of codes of `size`."""
    if stream[0] == 0:
        return codes_of(stream[1:], count * row // size, size)
    assert stream[0] == 1
    packed = stream[1] + 256 * stream[2]
    literals, at, shift = 0, 3, 0
    while True:
        literals += (stream[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if stream[at - 1] < 128:
            break
    assert 0 < literals < count
    assert packed < 2**15
    bits, order, seen, left = Bits(stream[at:]), list[int](), 0, count - literals
    while left > 0:
        run, length, back = bits.rice(packed & 31), 1 + bits.rice(packed >> 5 & 31), 1 + bits.rice(packed >> 10)
        order += range(seen, seen + run)
        seen += run
        left -= length
        assert seen <= literals
        assert left >= 0
        assert back <= len(order)
        for _ in range(length):
            order.append(order[-back])
    order += range(seen, literals)
    codes = codes_of(stream[at + bits.end() :], literals * row // size, size)
    return b"".join(codes[i * row : (i + 1) * row] for i in order)
