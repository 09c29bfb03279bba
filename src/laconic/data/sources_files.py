"""Arrays in HDF5, NetCDF and Zarr, by the libraries that know them."""

from __future__ import annotations

import threading
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from laconic.data.sources import ArrayInfo, Block, Source, flat
from laconic.errors import CorruptData, MissingExtra

_LIBRARY = threading.Lock()
"""HDF5 and NetCDF are not made for two threads."""


class _LibrarySource(Source):
    """One whose arrays are sliced as NumPy's are."""

    def read(self, start: int, stop: int, names: Sequence[str]) -> Block:
        with _LIBRARY:
            if "_open" not in self.__dict__:
                self._open = self._opened()
            return {name: np.asarray(self._open[name][start:stop]) for name in names}

    @abstractmethod
    def _opened(self) -> Any:
        """A mapping from names to arrays."""


class Hdf5Source(_LibrarySource):
    """Every dataset of a file, by its path within."""

    def __init__(self, path: Path) -> None:
        h5py = _h5py()
        found: dict[str, Any] = {}
        file = self._opened_at(path)
        file.visititems(lambda name, item: found.update({flat(name): item} if isinstance(item, h5py.Dataset) else {}))
        self._paths = {name: item.name for name, item in found.items()}
        arrays = {name: ArrayInfo(item.shape, item.dtype) for name, item in found.items() if item.shape is not None}
        self.step = _largest_step({name: (arrays[name], item.chunks) for name, item in found.items() if item.chunks})
        file.close()
        super().__init__(path, arrays)

    def _opened(self) -> Any:
        file = self._opened_at(Path(self.path))
        return {name: file[path] for name, path in self._paths.items()}

    def _opened_at(self, path: Path) -> Any:
        try:
            return _h5py().File(path, "r")
        except OSError as error:
            raise CorruptData(f"'{path}' is not a sound HDF5 file: {error}") from error


class NetcdfSource(_LibrarySource):
    """Every variable of a file, its values as xarray gives them: scaled where the file says so, NaN where none is."""

    def __init__(self, path: Path) -> None:
        opened = self._opened_at(path)
        arrays = {
            str(name): ArrayInfo(tuple(item.shape), item.dtype, tuple(map(str, item.dims)))
            for name, item in opened.variables.items()
        }
        opened.close()
        super().__init__(path, arrays)

    def _opened(self) -> Any:
        return self._opened_at(Path(self.path)).variables

    def _opened_at(self, path: Path) -> Any:
        try:
            import xarray
        except ImportError as error:
            raise MissingExtra("xarray and netCDF4", "netcdf", "Reading NetCDF") from error
        try:
            return xarray.open_dataset(path, decode_times=False, decode_coords=False, cache=False)
        except (ValueError, OSError) as error:
            raise CorruptData(f"'{path}' is not a sound NetCDF file: {str(error).splitlines()[0]}") from error


class ZarrSource(_LibrarySource):
    """An array, called `data`, or every array of a group."""

    def __init__(self, path: Path) -> None:
        found = self._opened_at(path)
        arrays = {
            name: ArrayInfo(item.shape, np.dtype(item.dtype), getattr(item.metadata, "dimension_names", None))
            for name, item in found.items()
        }
        self.step = _largest_step({name: (arrays[name], item.chunks) for name, item in found.items()})
        super().__init__(path, arrays)

    def _opened(self) -> Any:
        return self._opened_at(Path(self.path))

    def _opened_at(self, path: Path) -> dict[str, Any]:
        import zarr

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = zarr.open(path, mode="r")
                if isinstance(found, zarr.Array):
                    return {"data": found}
                return {
                    flat(name): item
                    for name, item in sorted(found.members(None), key=lambda member: member[0])
                    if isinstance(item, zarr.Array)
                }
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptData(f"'{path}' is not a sound Zarr store: {error}") from error

    def _files(self) -> list[int]:
        """Those of the metadata: the chunks may be too many to ask each."""
        states = [file.stat() for file in sorted(Path(self.path).glob("**/zarr.json"))]
        return [number for state in states for number in (state.st_size, state.st_mtime_ns)]


def _largest_step(chunked: dict[str, tuple[ArrayInfo, tuple[int, ...]]]) -> int:
    """Samples in a chunk of what has the most bytes: reading fewer inflates it again and again."""
    sizes = [(info.sample_bytes * info.shape[0], chunks[0]) for info, chunks in chunked.values() if info.shape]
    return int(max(sizes)[1]) if sizes else 1


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("h5py", "data", "Reading HDF5") from error
    return h5py
