"""What the samples of a fixed-size codec have in common: the header, but for its checksum, and where the parts lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from laconic.checksum import crc32
from laconic.encoded import Encoded, Link
from laconic.errors import CorruptData
from laconic.stage import Stage, TensorSpec
from laconic.wire import HEADER

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_CRC = slice(HEADER.size - 4, HEADER.size)


class Place(NamedTuple):
    """Of a part among the bytes of a sample."""

    start: int
    end: int
    spec: TensorSpec


@dataclass(frozen=True)
class Layout:
    """Learnt from one sample, true of all."""

    chain: tuple[Link, ...]
    spec: TensorSpec
    """Of one sample, before it was compressed."""
    header: bytes
    """With its description and the lengths of the parts, up to the first of them."""
    parts: dict[str, Place]

    @classmethod
    def of(cls, sample: Bytes) -> Layout:
        """Checks the sample, too."""
        enc = Encoded.from_bytes(buffer(sample))
        first = at = len(sample) - sum(part.nbytes for part in enc.parts.values())
        parts = {}
        for name, part in enc.parts.items():
            parts[name] = Place(at, at + part.nbytes, TensorSpec.of(part))
            at += part.nbytes
        return cls(enc.chain, enc.spec, sample[:first].tobytes(), parts)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(link.stage for link in self.chain)

    @property
    def length(self) -> int:
        """Of every sample."""
        return max(place.end for place in self.parts.values())

    def check(self, sample: Bytes, parts: Sequence[Bytes]) -> None:
        """CorruptData where a sample, whose parts were copied to `parts`, is not as it was written."""
        header = sample[: len(self.header)].tobytes()
        if _checksum(header, map(buffer, parts)) != header[_CRC]:
            raise CorruptData("The checksum does not match: damaged")
        if (header[: _CRC.start], header[_CRC.stop :]) != (self.header[: _CRC.start], self.header[_CRC.stop :]):
            raise CorruptData("Its header is not that of the other samples: it was written by something else")

    def sealed(self, parts: Sequence[memoryview]) -> bytes:
        """The header of a sample of these parts."""
        return self.header[: _CRC.start] + _checksum(self.header, parts) + self.header[_CRC.stop :]


def _checksum(header: bytes, parts: Iterable[memoryview]) -> bytes:
    crc = crc32(header[_CRC.stop :], crc32(header[: _CRC.start]))
    for part in parts:
        crc = crc32(part, crc)
    return crc.to_bytes(4, "little")


def buffer(data: Bytes) -> memoryview:
    return memoryview(data)  # type: ignore[arg-type]  # numpy 2.4 types its buffers for Python 3.12
