"""EncodedBatch <-> one buffer for the wire, specified in docs/format.md.

    | header, 24 bytes | counts | outlines | lengths of pieces | items | piece | piece | ..

An item names its outline and its parts' pieces by number: what several have in common is stored once. Between them
stands what the data decided, so that small tensors of one spec cost some ten bytes each, and not a description.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from laconic import description
from laconic.batch import EncodedBatch, key_of
from laconic.encoded import Encoded, promised_parts
from laconic.errors import CorruptData, SpecError
from laconic.stage import PartSpec, TensorSpec
from laconic.wire import HEADER, copied, part_from, raw_bytes, seal, unseal

MAGIC = b"\x89lacmany"
_MOST_BITS = 63  # of a number


def to_bytes(batch: EncodedBatch) -> bytes:
    before, pieces = _layout(batch)
    return seal(MAGIC, 0, 0, [before, *(raw_bytes(piece) for piece in pieces)])


def wire_size(batch: EncodedBatch) -> int:
    before, pieces = _layout(batch)
    return HEADER.size + len(before) + sum(piece.nbytes for piece in pieces)


def _layout(batch: EncodedBatch) -> tuple[bytes, list[Tensor]]:
    """All that comes before the pieces, and the pieces: each only once, and all empty ones as one."""
    outlines: dict[bytes, int] = {}
    numbers: dict[object, int] = {}
    pieces: list[Tensor] = []
    rows = bytearray()
    for item in batch:
        _put(rows, outlines.setdefault(description.outline(item).encode(), len(outlines)))
        for promised, found in description.decided(item):
            _put(rows, promised.dtypes.index(found.dtype) if promised.dtypes else found.numel)
        for name in promised_parts(item.chain, item.specs):
            part = item.parts[name]
            number = numbers.setdefault(key_of(part) if part.nbytes else None, len(pieces))
            if number == len(pieces):
                pieces.append(part)
            _put(rows, number)
    before = bytearray()
    _put(before, len(batch), len(outlines), len(pieces))
    for text in outlines:
        _put(before, len(text))
        before += text
    _put(before, *(piece.nbytes for piece in pieces))
    return bytes(before + rows), pieces


def _put(to: bytearray, *numbers: int) -> None:
    """Seven bits to a byte, the lowest first; the highest bit says that more follow."""
    for number in numbers:
        while number > 0x7F:
            to.append(number & 0x7F | 0x80)
            number >>= 7
        to.append(number)


def from_bytes(data: bytes | bytearray | memoryview) -> EncodedBatch:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SpecError(f"expected bytes, got {type(data).__name__}")
    view = memoryview(data).cast("B")
    unseal(view, MAGIC)
    reader = _Reader(view[HEADER.size :])
    item_count, outline_count, piece_count = (reader.number() for _ in range(3))
    outlines = [description.parse_outline(bytes(reader.take(reader.number()))) for _ in reader.each(outline_count)]
    lengths = [reader.number() for _ in reader.each(piece_count)]
    rows = [_read_row(reader, outlines) for _ in reader.each(item_count)]
    pieces = [copied(reader.take(length)) for length in lengths]
    if reader.rest:
        raise CorruptData(f"expected the end, found {len(reader.rest)} more bytes")
    return EncodedBatch(tuple(_item(row, pieces) for row in rows))


class _Row(NamedTuple):
    """An item, with the numbers of its parts' pieces."""

    chain: description.Chain
    specs: tuple[TensorSpec, ...]
    numbers: dict[str, int]


def _read_row(reader: _Reader, outlines: Sequence[tuple[description.Chain, TensorSpec]]) -> _Row:
    number = reader.number()
    if number >= len(outlines):
        raise CorruptData(f"expected one of {len(outlines)} outlines, found number {number}")
    chain, x = outlines[number]
    specs = description.thread(chain, x, reader.decided)
    return _Row(chain, specs, {name: reader.number() for name in promised_parts(chain, specs)})


def _item(row: _Row, pieces: Sequence[Tensor]) -> Encoded:
    """Its parts lie in the memory of the pieces: claims that many have one make no copies of it."""
    parts = {}
    for name, promised in promised_parts(row.chain, row.specs).items():
        number = row.numbers[name]
        if number >= len(pieces):
            raise CorruptData(f"part '{name}': expected one of {len(pieces)} pieces, found number {number}")
        parts[name] = part_from(name, promised, pieces[number])
    return Encoded(row.chain, row.specs, parts)


class _Reader:
    """Bytes from the first to the last; CorruptData where there are fewer than asked for."""

    def __init__(self, rest: memoryview) -> None:
        self.rest = rest

    def take(self, count: int) -> memoryview:
        if count > len(self.rest):
            raise CorruptData(f"expected {count} more bytes, found {len(self.rest)}")
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def number(self) -> int:
        number = 0
        for shift in range(0, _MOST_BITS, 7):
            (byte,) = self.take(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise CorruptData(f"expected a number of at most {_MOST_BITS} bits, found a longer one")

    def decided(self, promised: PartSpec) -> TensorSpec:
        """What became of a tensor that the data decided."""
        number, most = self.number(), len(promised.dtypes) - 1 if promised.dtypes else promised.tensor.numel
        if number > most:
            raise CorruptData(f"expected {promised.tensor} at most, found number {number} of {most}")
        if promised.dtypes:
            return TensorSpec(promised.tensor.shape, promised.dtypes[number])
        return TensorSpec((number,), promised.tensor.dtype)

    def each(self, count: int) -> range:
        """As often as is claimed; a claim of more than there are bytes is none."""
        if count > len(self.rest):
            raise CorruptData(f"expected {count} entries, found {len(self.rest)} bytes for them")
        return range(count)
