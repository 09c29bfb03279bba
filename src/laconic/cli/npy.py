"""One tensor <-> a .npy file. The header is read, and held against the file's size, before anything is allocated."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.lib import format as npy_format
from torch import Tensor

from laconic.errors import CorruptData, SpecError

MAX_DIMS = 64


def read(path: Path) -> Tensor:
    """The array in a file, in C order and native byte order. Never unpickles."""
    with path.open("rb") as file:
        shape, fortran, dtype = _read_header(path, file)
        data_at = file.tell()
    check_dtype(path, dtype)
    if len(shape) > MAX_DIMS or not all(0 <= size < 2**60 for size in shape) or math.prod(shape) >= 2**60:
        raise CorruptData(f"'{path}' is not a sound .npy file: no array has a shape of {str(shape)[:80]}")
    count, present = math.prod(shape), path.stat().st_size - data_at
    if present < count * dtype.itemsize:
        raise CorruptData(f"'{path}' is truncated: expected {count * dtype.itemsize} bytes of data, found {present}")
    flat = np.fromfile(path, dtype, count, offset=data_at)
    array = flat.astype(dtype.newbyteorder("="), copy=False).reshape(shape, order="F" if fortran else "C")
    return torch.from_numpy(array).contiguous()


def write(path: Path, x: Tensor) -> None:
    array = to_array(x)
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def to_array(x: Tensor) -> np.ndarray[Any, Any]:
    try:
        return x.numpy()
    except TypeError as error:
        name = str(x.dtype).removeprefix("torch.")
        raise SpecError(f"NumPy has no {name}. Write it to a .safetensors file") from error


def _read_header(path: Path, file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = npy_format.read_magic(file)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        return read(file)
    except (ValueError, EOFError) as error:
        raise CorruptData(f"'{path}' is not a sound .npy file: {error}") from error


def check_dtype(path: Path, dtype: np.dtype[Any]) -> None:
    """Raises for what PyTorch has no numbers for; `path` is where it was found."""
    try:
        torch.from_numpy(np.empty(0, dtype.newbyteorder("=")))
    except TypeError as error:
        raise SpecError(
            f"'{path}' holds {dtype}: expected numbers of a type that PyTorch has too. "
            "(bfloat16 has no place in NumPy: write it to a .safetensors file)"
        ) from error
