"""Arrays in .npy and .npz files, read where they lie: nothing is mapped, so memory holds what is asked for alone."""

from __future__ import annotations

import math
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from laconic.data.sources import ArrayInfo, Block, Source
from laconic.errors import CorruptData, SpecError

_STREAM = threading.Lock()


class Place(NamedTuple):
    """Where an array lies in a file."""

    path: Path
    offset: int
    info: ArrayInfo
    fortran: bool

    def read(self, start: int, stop: int, room: NDArray[Any] | None = None) -> NDArray[Any]:
        """In the memory of `room`, where that is given and nothing stands against it."""
        shape, dtype = (stop - start, *self.info.sample), self.info.dtype
        if self.fortran:  # a sample is everywhere: the system's cache is what makes this bearable
            mapped = np.memmap(self.path, dtype, "r", self.offset, self.info.shape, order="F")
            return np.ascontiguousarray(mapped[start:stop])
        found = np.empty(shape, dtype) if room is None else room
        if found.nbytes:
            with self.path.open("rb", buffering=0) as file:
                file.seek(self.offset + start * self.info.sample_bytes)
                _fill(self.path, file, found.reshape(-1).view(np.uint8).data)
        return found


class NpySource(Source):
    """One array, called `data`."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            info, fortran = read_header(path, file)
            self._place = Place(path, file.tell(), info, fortran)
        check_length(path, path.stat().st_size - self._place.offset, info)
        super().__init__(path, {"data": info})

    def read(self, start: int, stop: int, names: Sequence[str]) -> Block:
        return self.read_into(start, stop, names, {})

    def read_into(self, start: int, stop: int, names: Sequence[str], room: Block) -> Block:
        return {name: self._place.read(start, stop, room.get(name)) for name in names}


class NpzSource(Source):
    """The arrays of an archive. Those that it compressed are inflated from their beginning on, once."""

    def __init__(self, path: Path) -> None:
        self._places: dict[str, Place] = {}
        self._packed: dict[str, tuple[str, ArrayInfo]] = {}
        self._open: dict[str, tuple[int, IO[bytes]]] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    if member.filename.endswith(".npy"):
                        self._add(path, archive, member)
        except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError) as error:
            raise CorruptData(f"'{path}' is not a sound .npz file: {error}") from error
        self.sequential = bool(self._packed)
        arrays = {name: place.info for name, place in self._places.items()}
        super().__init__(path, arrays | {name: info for name, (_, info) in self._packed.items()})

    def _add(self, path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
        name = member.filename.removesuffix(".npy")
        with archive.open(member) as file:
            info, fortran = read_header(path, file)
            head = file.tell()
        check_length(path, member.file_size - head, info)
        if member.compress_type == zipfile.ZIP_STORED:
            self._places[name] = Place(path, _data_offset(path, member) + head, info, fortran)
        elif fortran:
            raise SpecError(f"'{path}': '{name}' is in Fortran's order and compressed: no sample can be read alone")
        else:
            self._packed[name] = (member.filename, info)

    def read(self, start: int, stop: int, names: Sequence[str]) -> Block:
        return self.read_into(start, stop, names, {})

    def read_into(self, start: int, stop: int, names: Sequence[str], room: Block) -> Block:
        places = self._places
        return {
            name: places[name].read(start, stop, room.get(name)) if name in places else self._inflate(name, start, stop)
            for name in names
        }

    def _inflate(self, name: str, start: int, stop: int) -> NDArray[Any]:
        member, info = self._packed[name]
        with _STREAM:
            at, file = self.__dict__.setdefault("_open", {}).pop(name, (stop, None))
            if at > start or file is None:
                file = zipfile.ZipFile(self.path).open(member)  # noqa: SIM115  # for the next samples, too
                read_header(Path(self.path), file)
                at = 0
            _skip(file, (start - at) * info.sample_bytes)
            data = bytearray((stop - start) * info.sample_bytes)
            _fill(Path(self.path), file, memoryview(data))
            self._open[name] = (stop, file)
        return np.frombuffer(data, info.dtype).reshape(stop - start, *info.sample)


def read_header(path: Path, file: Any) -> tuple[ArrayInfo, bool]:
    """What a .npy says of itself, and whether it is in Fortran's order; the file is at its data then."""
    try:
        version = npy_format.read_magic(file)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except (ValueError, EOFError) as error:
        raise CorruptData(f"'{path}' is not a sound .npy file: {error}") from error
    if any(not 0 <= size < 2**60 for size in shape):
        raise CorruptData(f"'{path}' is not a sound .npy file: no array has a shape of {str(shape)[:80]}")
    return ArrayInfo(shape, dtype), bool(fortran) and len(shape) > 1


def check_length(path: Path, present: int, info: ArrayInfo) -> None:
    expected = math.prod(info.shape) * info.dtype.itemsize
    if present < expected and not info.dtype.hasobject:
        raise CorruptData(f"'{path}' is truncated: expected {expected} bytes of data, found {present}")


def _data_offset(path: Path, member: zipfile.ZipInfo) -> int:
    """Where a member's bytes begin: its own header has lengths that differ from those of the archive's list."""
    with path.open("rb") as file:
        file.seek(member.header_offset + 26)
        lengths = file.read(4)
    return member.header_offset + 30 + sum(int.from_bytes(lengths[i : i + 2], "little") for i in (0, 2))


def _skip(file: IO[bytes], count: int) -> None:
    while count and (found := len(file.read(min(count, 1 << 20)))):
        count -= found


def _fill(path: Path, file: Any, room: memoryview) -> None:
    try:
        while len(room):
            found = file.readinto(room)
            if not found:
                raise CorruptData(f"'{path}' is truncated")
            room = room[found:]
    except (zipfile.BadZipFile, zipfile.zlib.error, EOFError) as error:  # type: ignore[attr-defined]  # not in its stubs
        raise CorruptData(f"'{path}' is damaged: {error}") from error
