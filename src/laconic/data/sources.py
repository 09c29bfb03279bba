"""What `laconic pack` reads: named arrays in step, a few samples at a time, wherever they are kept.

open_source("images.npy")            one array
open_source("set.npz")               .npz, HDF5, NetCDF, Zarr: every array, by name
open_source("set.h5::train/images")  one of them alone
open_source("photos/")               images; sub-folders are classes
open_source("my.module:dataset")     a torch Dataset, or what makes one
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic.errors import FileError, SpecError
from laconic.files import file_errors

Block = dict[str, NDArray[Any]]


class ArrayInfo(NamedTuple):
    """What is known of an array before it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    dimensions: tuple[str | None, ...] | None = None

    @property
    def sample(self) -> tuple[int, ...]:
        return self.shape[1:]

    @property
    def sample_bytes(self) -> int:
        return int(np.prod(self.sample, dtype=object)) * self.dtype.itemsize

    def dimensions_of(self, name: str) -> tuple[str, ...]:
        """What they are called; where nobody said, after the array, so that no two are taken for one."""
        given = self.dimensions or (None,) * len(self.shape)
        own = ("sample", *(f"{name}_{axis}" for axis in range(1, len(self.shape))))
        return tuple(theirs or ours for theirs, ours in zip(given, own, strict=True))

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Source(ABC):
    """Arrays by name. It travels to other processes: what it holds open, in fields that begin with `_open`, is
    opened there anew."""

    arrays: dict[str, ArrayInfo]
    about: dict[str, Any]
    """What a store is to tell of it, such as the names of classes."""
    step: int = 1
    """So many samples are read at once whether wanted or not."""
    sequential: bool = False
    """Whether it can only be read from its beginning on."""

    def __init__(self, path: Path | str, arrays: dict[str, ArrayInfo], about: dict[str, Any] | None = None) -> None:
        self.path, self.arrays, self.about = path, arrays, about or {}

    @abstractmethod
    def read(self, start: int, stop: int, names: Sequence[str]) -> Block:
        """These samples of these arrays, each in C order or a view that is copied before it is used."""

    def read_into(self, start: int, stop: int, names: Sequence[str], room: Block) -> Block:
        """As `read`. Where it can, in the memory of `room`: arrays of as many samples, which it may give back."""
        return self.read(start, stop, names)

    def identity(self) -> dict[str, Any]:
        """Differs from that of another source, and of this one after a change. Holds no more than JSON does."""
        found = {name: str(info) for name, info in self.arrays.items()}
        return {"source": str(self.path), "arrays": found, "files": self._files()}

    def _files(self) -> list[int]:
        """Sizes and times of what is read."""
        state = Path(self.path).stat()
        return [state.st_size, state.st_mtime_ns]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_open")}


_HOMES = {
    ".npy": "sources_numpy:NpySource",
    ".npz": "sources_numpy:NpzSource",
    **dict.fromkeys((".h5", ".hdf5", ".he5", ".hdf"), "sources_files:Hdf5Source"),
    **dict.fromkeys((".nc", ".nc4", ".cdf"), "sources_files:NetcdfSource"),
}
_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def open_source(text: str) -> Source:
    """The source of this name. Raises a LaconicError that says what was expected."""
    file, _, name = text.partition("::")
    path = Path(file)
    if not path.exists() and _IMPORT_PATH.fullmatch(text):
        return _kind("sources_torch:DatasetSource")(text)
    if not path.exists():
        raise FileError(f"Could not read '{file}': there is no such file, nor folder, nor is it a 'module:dataset'")
    with file_errors(path, "read"):
        source = _kind(_home_of(path))(path.resolve())
    return _only(source, name) if name else source


def _home_of(path: Path) -> str:
    if path.is_dir():
        is_zarr = any((path / marker).exists() for marker in ("zarr.json", ".zgroup", ".zarray"))
        return "sources_files:ZarrSource" if is_zarr else "sources_images:ImageSource"
    if path.suffix.lower() not in _HOMES:
        raise SpecError(
            f"'{path}': expected a name that ends in {', '.join(_HOMES)}, a Zarr store, or a folder of images"
        )
    return _HOMES[path.suffix.lower()]


def _kind(home: str) -> Callable[[Path | str], Source]:
    module, _, name = home.partition(":")
    return getattr(import_module(f"laconic.data.{module}"), name)  # type: ignore[no-any-return]


def flat(name: str) -> str:
    """The name of what lies in groups: a store has none."""
    return name.strip("/").replace("/", "_")


def _only(source: Source, name: str) -> Source:
    name = flat(name)
    check_names(source, [name])
    source.arrays = {name: source.arrays[name]}
    return source


def check_names(source: Source, names: Sequence[str]) -> None:
    for name in names:
        if name not in source.arrays:
            raise SpecError(f"'{source.path}' has no array '{name}'. It has: {', '.join(source.arrays) or 'none'}")
