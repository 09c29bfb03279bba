"""The same samples on disk in every form that is measured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic import chain
from laconic.bench.loader.plan import SHAPE
from laconic.bench.rate.data import NOISE, PICTURES, SEED
from laconic.data.store import PackedArray
from laconic.errors import MissingExtra
from laconic.stage import TensorSpec

NAME = "images"
JPEG_QUALITY = 90
_AT_ONCE = 64
_SHARD_BYTES = 64 << 20


def photographs(count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Random crops of pictures, from 0 to 1, with the noise of a sensor."""
    try:
        from skimage import data
    except ImportError as error:
        raise MissingExtra("scikit-image", "demo", "The samples of this measurement") from error
    rng = np.random.default_rng(SEED)
    pictures = [np.moveaxis(getattr(data, name)(), -1, 0) for name in PICTURES]
    samples = np.empty((count, *SHAPE), np.float32)
    for sample in samples:
        picture = pictures[rng.integers(len(pictures))]
        top, left = (rng.integers(0, size - side + 1) for size, side in zip(picture.shape[1:], SHAPE[1:], strict=True))
        crop = picture[:, top : top + SHAPE[1], left : left + SHAPE[2]] / 255
        sample[:] = crop + rng.standard_normal(SHAPE, np.float32) * NOISE
    return samples


def write_raw(folder: Path, count: int) -> Path:
    """A .npy file, written in pieces: it may be larger than memory. The pieces repeat what a few hundred crops show."""
    path = folder / "raw.npy"
    some = photographs(min(count, 512))
    raw = np.lib.format.open_memmap(path, "w+", np.float32, (count, *SHAPE))
    for start in range(0, count, len(some)):
        raw[start : start + len(some)] = some[: count - start]
    raw.flush()
    return path


def write_zarr(folder: Path, raw: np.ndarray[Any, Any]) -> Path:
    import zarr

    path = folder / "plain.zarr"
    array = zarr.create_array(path, shape=raw.shape, dtype=raw.dtype, chunks=(1, *SHAPE))
    for start in range(0, len(raw), _AT_ONCE):
        array[start : start + _AT_ONCE] = np.array(raw[start : start + _AT_ONCE])  # Zarr keeps it: nothing mapped
    return path


def write_jpeg(folder: Path, raw: np.ndarray[Any, Any]) -> Path:
    from PIL import Image

    path = folder / "jpeg"
    path.mkdir()
    for i, sample in enumerate(raw):
        pixels = np.moveaxis((sample.clip(0, 1) * 255).round().astype(np.uint8), 0, -1)
        Image.fromarray(pixels).save(path / f"{i:06}.jpg", quality=JPEG_QUALITY)
    return path


def write_packed(folder: Path, raw: np.ndarray[Any, Any], codec: str) -> Path:
    """What `laconic pack` writes, without its report."""
    import zarr

    path = folder / f"packed-{len(list(folder.iterdir()))}.zarr"
    group = zarr.create_group(path)
    spec = TensorSpec(raw.shape, torch.float32)
    per_shard = max(1, min(len(raw), _SHARD_BYTES // _bytes_of_one(raw, codec)))
    array = PackedArray.create(path / NAME, spec, chain.codec(codec), per_shard)
    for shard in range(array.shards):
        samples = array.samples_in(shard)
        array.write(shard, torch.from_numpy(raw[samples.start : samples.stop].copy()))
    group.attrs["laconic"] = {"format": 1, "packed": [NAME]}
    return path


def _bytes_of_one(raw: np.ndarray[Any, Any], codec: str) -> int:
    return chain.encode(torch.from_numpy(raw[:1].copy()), codec).nbytes


def read_jpeg(path: Path) -> Tensor:
    """As floats from 0 to 1, channels first."""
    from PIL import Image

    with Image.open(path) as image:
        pixels = torch.from_numpy(np.array(image))
    return pixels.movedim(-1, 0).contiguous().float().div_(255)


def all_files(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]


def drop_from_cache(path: Path) -> None:
    """Asks the system to forget what it keeps of these files in memory; the next read comes from the disk."""
    for file in all_files(path):
        handle = os.open(file, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)
