"""Whoever brings samples from disk: laconic, and the peers as anybody would write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from laconic.bench.loader import files
from laconic.bench.loader.plan import Plan
from laconic.data.packed_dataset import PackedDataset
from laconic.data.store import PackedArray

RAW, RAW_BATCHED = "raw memmap", "raw memmap, batched"
DECODED, COMPRESSED = "decoded", "compressed"


class RawMemmap(Dataset[Tensor]):
    """Each sample copied out of a mapped file, stacked by the default collation."""

    def __init__(self, path: Path) -> None:
        self.data = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Tensor:
        return torch.from_numpy(self.data[index].copy())


class RawBatches(RawMemmap):
    """Whole batches copied at once: as good as it gets, for who knows DataLoader well."""

    def __getitems__(self, indices: list[int]) -> list[Tensor]:
        return [torch.from_numpy(self.data[indices])]


class PlainZarr(Dataset[Tensor]):
    def __init__(self, path: Path) -> None:
        import zarr

        self.array: Any = zarr.open_array(path, mode="r")

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def __getitem__(self, index: int) -> Tensor:
        return torch.from_numpy(self.array[index])


class JpegFolder(Dataset[Tensor]):
    def __init__(self, path: Path) -> None:
        self.files = sorted(path.iterdir())

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Tensor:
        return files.read_jpeg(self.files[index])


@dataclass(frozen=True)
class Entry:
    """One way of bringing samples, and what a table must say about it."""

    name: str
    path: Path
    open: Callable[[], Dataset[Any]]
    included: str
    codec: str | None = None
    deliver: str = DECODED
    collate: Callable[[Any], Any] | None = None


def entries(plan: Plan, folder: Path) -> Iterator[Entry]:
    """Writes the files of each, too."""
    raw_path = files.write_raw(folder, plan.samples)
    raw = np.load(raw_path, mmap_mode="r")
    copied = "a copy of each sample, then the default collation"
    yield Entry(RAW, raw_path, partial(RawMemmap, raw_path), copied)
    yield Entry(
        RAW_BATCHED, raw_path, partial(RawBatches, raw_path), "one copy of each batch, no collation", collate=_first
    )
    zarr_path = files.write_zarr(folder, raw)
    yield Entry("Zarr", zarr_path, partial(PlainZarr, zarr_path), "its default compressor, a sample in each chunk")
    jpeg_path = files.write_jpeg(folder, raw)
    quality = f"a file for each sample, quality {files.JPEG_QUALITY}, to floats: lossy, 8 bits"
    yield Entry("JPEG", jpeg_path, partial(JpegFolder, jpeg_path), quality)
    for codec in plan.all_codecs:
        yield from _packed(files.write_packed(folder, raw, codec), codec)


def _packed(path: Path, codec: str) -> Iterator[Entry]:
    decoded = partial(PackedDataset, path)
    yield Entry(codec, path, decoded, "checksum at first sight, decoded on the host", codec)
    if PackedArray.open(path / files.NAME).splits:
        compressed = partial(PackedDataset, path, deliver="compressed")
        yield Entry(codec, path, compressed, "checksum at first sight, decoded by nobody yet", codec, COMPRESSED)


def _first(items: list[Any]) -> Any:
    return items[0]
