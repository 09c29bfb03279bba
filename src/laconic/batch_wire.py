"""EncodedBatch <-> one buffer for the wire, specified in docs/format.md.

    | header, 24 bytes | counts | descriptions | lengths of pieces | items | piece | piece | ..

An item names its description and its parts' pieces by number: what several have in common is stored once.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from laconic import description
from laconic.batch import EncodedBatch, key_of
from laconic.encoded import Encoded, promised_parts
from laconic.errors import CorruptData, SpecError
from laconic.wire import HEADER, copied, part_from, raw_bytes, seal, unseal

MAGIC = b"\x89lacmany"
_COUNTS = struct.Struct("<III")  # items, descriptions, pieces


def to_bytes(batch: EncodedBatch) -> bytes:
    before, pieces = _layout(batch)
    return seal(MAGIC, 0, 0, [*before, *(raw_bytes(piece) for piece in pieces)])


def wire_size(batch: EncodedBatch) -> int:
    before, pieces = _layout(batch)
    return HEADER.size + sum(map(len, before)) + sum(piece.nbytes for piece in pieces)


def _layout(batch: EncodedBatch) -> tuple[list[bytes], list[Tensor]]:
    """All that comes before the pieces, and the pieces: each only once, and all empty ones as one."""
    texts: dict[bytes, int] = {}
    numbers: dict[object, int] = {}
    pieces: list[Tensor] = []
    rows = []
    for item in batch:
        row = [texts.setdefault(description.describe(item).encode(), len(texts))]
        for name in promised_parts(item.chain, item.specs):
            part = item.parts[name]
            number = numbers.setdefault(key_of(part) if part.nbytes else None, len(pieces))
            if number == len(pieces):
                pieces.append(part)
            row.append(number)
        rows.append(struct.pack(f"<{len(row)}I", *row))
    before = [_COUNTS.pack(len(batch), len(texts), len(pieces))]
    before += [struct.pack("<H", len(text)) + text for text in texts]
    before += [struct.pack("<Q", piece.nbytes) for piece in pieces]
    return before + rows, pieces


def from_bytes(data: bytes | bytearray | memoryview) -> EncodedBatch:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SpecError(f"expected bytes, got {type(data).__name__}")
    view = memoryview(data).cast("B")
    unseal(view, MAGIC)
    reader = _Reader(view[HEADER.size :])
    item_count, text_count, piece_count = reader.unpack(_COUNTS.format)
    parsed = [description.parse(bytes(reader.take(*reader.unpack("<H")))) for _ in reader.each(text_count)]
    lengths = [reader.unpack("<Q")[0] for _ in reader.each(piece_count)]
    rows = [_read_row(reader, parsed) for _ in reader.each(item_count)]
    pieces = [copied(reader.take(length)) for length in lengths]
    if reader.rest:
        raise CorruptData(f"expected the end, found {len(reader.rest)} more bytes")
    return EncodedBatch(tuple(_item(*parsed[text], numbers, pieces) for text, numbers in rows))


def _read_row(reader: _Reader, parsed: Sequence[Any]) -> tuple[int, dict[str, int]]:
    (text,) = reader.unpack("<I")
    if text >= len(parsed):
        raise CorruptData(f"expected one of {len(parsed)} descriptions, found number {text}")
    names = promised_parts(*parsed[text])
    return text, dict(zip(names, reader.unpack(f"<{len(names)}I"), strict=True))


def _item(chain: Any, specs: Any, numbers: dict[str, int], pieces: Sequence[Tensor]) -> Encoded:
    """Its parts lie in the memory of the pieces: claims that many have one make no copies of it."""
    parts = {}
    for name, promised in promised_parts(chain, specs).items():
        number = numbers[name]
        if number >= len(pieces):
            raise CorruptData(f"part '{name}': expected one of {len(pieces)} pieces, found number {number}")
        parts[name] = part_from(name, promised, pieces[number])
    return Encoded(chain, specs, parts)


class _Reader:
    """Bytes from the first to the last; CorruptData where there are fewer than asked for."""

    def __init__(self, rest: memoryview) -> None:
        self.rest = rest

    def take(self, count: int) -> memoryview:
        if count > len(self.rest):
            raise CorruptData(f"expected {count} more bytes, found {len(self.rest)}")
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def unpack(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def each(self, count: int) -> range:
        """As often as is claimed; a claim of more than there are bytes is none."""
        if count > len(self.rest):
            raise CorruptData(f"expected {count} entries, found {len(self.rest)} bytes for them")
        return range(count)
