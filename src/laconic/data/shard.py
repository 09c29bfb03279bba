"""One file of a packed array: Zarr's `sharding_indexed`, written and read a sample at a time.

    | sample | sample | .. | for each place: offset, length | CRC-32C of the index |

A sample is what `Encoded.to_bytes` gives, checksum and all. Zarr itself reads the same files; going round it saves the
tenth of a millisecond that each of its chunks costs.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from io import BufferedWriter
from pathlib import Path

import numpy as np

from laconic.errors import CorruptData

MISSING = 2**64 - 1
_ENTRY = 16
_CRC = 4
_PIECES = 512
"""That a call to the system takes."""


def index_bytes(lengths: Sequence[int], places: int) -> bytes:
    """The end of a file with room for so many samples, of which the first have these lengths."""
    index = np.full((places, 2), MISSING, "<u8")
    sizes = np.array(lengths, "<u8")
    index[: len(sizes), 0] = np.cumsum(sizes) - sizes
    index[: len(sizes), 1] = sizes
    entries = index.tobytes()
    return entries + _crc(entries).to_bytes(_CRC, "little")


def write_pieces(file: BufferedWriter, pieces: Sequence[bytes | memoryview]) -> None:
    """All of them, in order, from where they lie."""
    if not hasattr(os, "writev"):
        file.writelines(pieces)
        return
    file.flush()
    for at in range(0, len(pieces), _PIECES):
        some = pieces[at : at + _PIECES]
        done = os.writev(file.fileno(), some)
        if done < sum(map(len, some)):  # a full disk, of which the rest will tell
            file.write(b"".join(some)[done:])
            file.flush()


def index_size(places: int) -> int:
    return places * _ENTRY + _CRC


class Shard:
    """An open file: the bytes of each of its samples, without a copy."""

    def __init__(self, path: Path, places: int) -> None:
        self.path = path
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < index_size(places):
                raise CorruptData(f"{path}: expected an index of {places} samples, found {size} bytes in all")
            self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        end = size - _CRC
        entries = self._memory[end - places * _ENTRY : end]
        if _crc(entries) != int.from_bytes(self._memory[end:], "little"):
            raise CorruptData(f"{path}: the checksum of its index does not match: damaged")
        self.index = np.frombuffer(entries, "<u8").reshape(places, 2)
        self.bytes = np.frombuffer(self._memory, np.uint8)

    def expect(self, place: int) -> None:
        """Has the system read this sample while the caller goes on."""
        offset, length = (int(number) for number in self.index[place])
        if offset + length <= len(self.bytes) and hasattr(self._memory, "madvise"):
            start = offset - offset % mmap.PAGESIZE
            self._memory.madvise(mmap.MADV_WILLNEED, start, offset + length - start)

    def sample(self, place: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """The bytes of the sample at this place."""
        offset, length = (int(number) for number in self.index[place])
        if offset == MISSING or offset + length > len(self.bytes):
            raise CorruptData(f"{self.path}: sample {place} is not there")
        return self.bytes[offset : offset + length]


def _crc(data: bytes) -> int:
    import google_crc32c

    return int(google_crc32c.value(data))
