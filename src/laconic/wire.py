"""Encoded <-> one buffer for the wire, specified in docs/format.md.

    | header, 24 bytes | description | length of each part | part | part | ..

The header's layout is the same for ever, so that a reader can tell damage from a newer format.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from laconic import description
from laconic.checksum import crc32
from laconic.encoded import Encoded, promised_parts
from laconic.errors import CorruptData, SpecError
from laconic.stage import PartSpec, TensorSpec

MAGIC = b"\x89laconic"
HEADER = struct.Struct("<8sBBHQI")  # magic, format, number of parts, description's length, total length, CRC-32
_CRC_AT = HEADER.size - 4


def wire_size(enc: Encoded) -> int:
    parts = sum(8 + part.nbytes for part in enc.parts.values())
    return HEADER.size + len(description.describe(enc)) + parts


def to_bytes(enc: Encoded) -> bytes:
    text = description.describe(enc).encode()
    bodies = [raw_bytes(enc.parts[name]) for name in promised_parts(enc.chain, enc.specs)]
    lengths = struct.pack(f"<{len(bodies)}Q", *map(len, bodies))
    return seal(MAGIC, len(bodies), len(text), [text, lengths, *bodies])


def seal(magic: bytes, count: int, text_length: int, pieces: Sequence[Any]) -> bytes:
    """The pieces behind a header, with a checksum over all."""
    total = HEADER.size + sum(map(len, pieces))
    header = HEADER.pack(magic, description.FORMAT, count, text_length, total, 0)[:_CRC_AT]
    return b"".join([header, struct.pack("<I", _crc([header, *pieces])), *pieces])


def from_bytes(data: bytes | bytearray | memoryview) -> Encoded:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SpecError(f"expected bytes, got {type(data).__name__}")
    view = memoryview(data).cast("B")
    count, text_length = unseal(view, MAGIC)
    text_end = HEADER.size + text_length
    parts_at = text_end + 8 * count
    if parts_at > len(view):
        raise CorruptData(f"The header speaks of {parts_at} bytes before the parts; there are {len(view)} in all")
    lengths = struct.unpack(f"<{count}Q", view[text_end:parts_at])
    if parts_at + sum(lengths) != len(view):
        raise CorruptData(f"The parts' lengths add up to {sum(lengths)} bytes, not {len(view) - parts_at}")
    chain, specs = description.parse(bytes(view[HEADER.size : text_end]))
    promised = promised_parts(chain, specs)
    if len(promised) != count:
        raise CorruptData(f"expected {len(promised)} parts, found {count}")
    parts = {}
    for (name, part), length in zip(promised.items(), lengths, strict=True):
        parts[name] = part_from(name, part, copied(view[parts_at : parts_at + length]))
        parts_at += length
    return Encoded(chain, specs, parts)


def unseal(view: memoryview, magic: bytes) -> tuple[int, int]:
    """The header's number of parts and length of text, of a buffer whose every byte is as it was written."""
    if len(view) < HEADER.size or bytes(view[: len(magic)]) != magic:
        raise CorruptData(f"These {len(view)} bytes do not begin as laconic's do")
    _, version, count, text_length, total, crc = HEADER.unpack(view[: HEADER.size])
    if total != len(view):
        raise CorruptData(f"expected {total} bytes, got {len(view)}: truncated, or damaged")
    if crc != _crc([view[:_CRC_AT], view[HEADER.size :]]):
        raise CorruptData("The checksum does not match: damaged")
    description.check_format(version)
    return count, text_length


def part_from(name: str, promised: PartSpec, data: Tensor) -> Tensor:
    """A part in the memory of its bytes."""
    spec = promised.tensor
    if not promised.exact:
        spec = TensorSpec((data.nbytes // spec.dtype.itemsize,), spec.dtype)
    if data.nbytes != spec.nbytes or spec.nbytes > promised.tensor.nbytes:
        raise CorruptData(f"part '{name}': expected {promised.tensor}, found {data.nbytes} bytes")
    return data.view(spec.dtype).reshape(spec.shape)


def copied(data: memoryview) -> Tensor:
    """A row of uint8 of its own."""
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if len(data) else torch.empty(0, dtype=torch.uint8)


def raw_bytes(part: Tensor) -> memoryview:
    flat = part.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return memoryview(flat.numpy())  # type: ignore[arg-type]  # numpy 2.4 types its buffers for Python 3.12


def _crc(pieces: list[Any]) -> int:
    crc = 0
    for piece in pieces:
        crc = crc32(piece, crc)
    return crc
