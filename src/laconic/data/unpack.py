"""A store as an ordinary file again, a few samples at a time: .npy, .npz or a plain Zarr group."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from laconic.data.pack_finish import report_of
from laconic.data.reading import decoded_blocks
from laconic.data.store import PackedArray, packed_arrays
from laconic.errors import FileError, SpecError
from laconic.files import file_errors, replacing

_BLOCK = 16 << 20
Blocks = Iterator[NDArray[Any]]


class _Array:
    """One to write: what it is, and its samples in order."""

    def __init__(self, name: str, store: Path, packed: PackedArray | None, progress: Callable[[int], None]) -> None:
        import zarr

        self.name, self._packed, self._progress = name, packed, progress
        self.zarr: Any = zarr.open_array(store / name, mode="r")
        self.shape, self.dtype = self.zarr.shape, np.dtype(self.zarr.dtype)

    def blocks(self) -> Blocks:
        for block in self._packed_blocks() if self._packed is not None else self._plain_blocks():
            yield block
            self._progress(block.nbytes)

    def _packed_blocks(self) -> Blocks:
        assert self._packed is not None
        return (block.numpy() for block in decoded_blocks(self._packed, _BLOCK))

    def _plain_blocks(self) -> Blocks:
        rows = max(1, _BLOCK // max(1, self.zarr.nbytes // max(1, self.shape[0])))
        rows = -(-rows // self.zarr.chunks[0]) * self.zarr.chunks[0]
        return (np.asarray(self.zarr[start : start + rows]) for start in range(0, self.shape[0], rows))


def unpack(
    store: str | os.PathLike[str],
    target: str | os.PathLike[str],
    arrays: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> list[str]:
    """Writes the arrays of a store, all when not named, and gives their names. A .npy holds one: the packed one."""
    path, target = Path(store), Path(target)
    packed, about = packed_arrays(path), report_of(path)
    every = [*packed, *about.get("beside", ())]
    unknown = [name for name in arrays if name not in every]
    if unknown:
        raise SpecError(f"'{path}' has no array '{unknown[0]}'. It has: {', '.join(every)}")
    names = list(arrays) or (list(packed) if target.suffix == ".npy" else every)
    write = _writer(target, names)
    done = 0

    def note(nbytes: int) -> None:
        nonlocal done
        done += nbytes
        progress(done, total)

    found = [_Array(name, path, packed.get(name), note) for name in names]
    total = sum(array.zarr.nbytes for array in found)
    write(target, found)
    return names


def _writer(target: Path, names: list[str]) -> Callable[[Path, list[_Array]], None]:
    writers = {".npy": _write_npy, ".npz": _write_npz, ".zarr": _write_zarr}
    suffix = target.suffix.lower()
    if suffix not in writers:
        raise SpecError(f"'{target}': expected a name that ends in {', '.join(writers)}")
    if suffix == ".npy" and len(names) != 1:
        raise SpecError(f"'{target}' would hold one array, and there are {', '.join(names)}. Name one by --array")
    if suffix == ".zarr" and target.exists():
        raise FileError(f"'{target}' is there already. Name another, or remove it")
    return writers[suffix]


def _write_npy(target: Path, arrays: list[_Array]) -> None:
    with replacing(target) as partial, partial.open("wb") as file:
        _write_array(file, arrays[0])


def _write_npz(target: Path, arrays: list[_Array]) -> None:
    with replacing(target) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for array in arrays:
            with archive.open(f"{array.name}.npy", "w", force_zip64=True) as file:
                _write_array(file, array)


def _write_array(file: IO[bytes], array: _Array) -> None:
    header = {"descr": npy_format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    npy_format.write_array_header_2_0(file, header)
    for block in array.blocks():
        file.write(np.ascontiguousarray(block, array.dtype).data.cast("B"))


def _write_zarr(target: Path, arrays: list[_Array]) -> None:
    import zarr

    partial = target.with_name(f"{target.name}.partial")
    with file_errors(target, "write"):
        try:
            group = zarr.open_group(partial, mode="w")
            for array in arrays:
                _write_zarr_array(group, array)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _write_zarr_array(group: Any, array: _Array) -> None:
    names = array.zarr.metadata.dimension_names
    made = group.create_array(array.name, shape=array.shape, dtype=array.dtype, dimension_names=names)
    rows, start, waiting = made.chunks[0], 0, np.empty((0, *array.shape[1:]), array.dtype)
    for block in array.blocks():  # whole chunks: each is written once
        waiting = np.concatenate([waiting, block])
        whole = len(waiting) // rows * rows
        made[start : start + whole] = waiting[:whole]
        start, waiting = start + whole, waiting[whole:]
    made[start:] = waiting
