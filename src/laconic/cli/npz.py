"""The arrays of a .npz file, by name; read one at a time, each held against what the archive says of it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.cli import npy
from laconic.errors import CorruptData, FileError, SpecError
from laconic.files import file_errors


class Npz(Mapping[str, Tensor]):
    """All arrays of a file, each read when it is asked for. Never unpickles."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._opened() as archive:
            self._names = list(archive.files)
        if not self._names:
            raise SpecError(f"'{path}' holds no arrays")

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with file_errors(self._path, "read"):
            if self._path.is_dir():
                raise FileError(f"Could not read '{self._path}': it is a directory")
            try:
                with self._path.open("rb") as file:
                    if not zipfile.is_zipfile(file):
                        raise ValueError("it is no archive, or is truncated")
                with np.load(self._path, allow_pickle=False) as archive:
                    yield archive
            except (ValueError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
                raise CorruptData(f"'{self._path}' is not a sound .npz file: {error}") from error

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise SpecError(f"'{self._path}' has no array '{name}'. It has: {', '.join(self._names)}")
        with self._opened() as archive:
            array = archive[name]
        npy.check_dtype(Path(f"{self._path}:{name}"), array.dtype)
        return torch.from_numpy(np.require(array, array.dtype.newbyteorder("="), ["C", "W"]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def write(path: Path, names: Iterable[str], read: Callable[[str], Tensor]) -> None:
    """Writes an archive, an array after another."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            array = npy.to_array(read(name))
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
