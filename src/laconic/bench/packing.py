"""How fast packing is, beside reading the source alone: both from the page cache, the start of processes left out."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from laconic.data.pack import pack

SHAPE = (3, 256, 256)
FLOOR = 0.5
_CHUNK = 8 << 20


class PackSpeed(NamedTuple):
    """Bytes of the source a second; medians."""

    reading: float
    packing: float

    @property
    def over_reading(self) -> float:
        return self.packing / self.reading


def pack_speed(codec: str = "dct:chop=4", samples: int = 1365, workers: int = 2, rounds: int = 3) -> PackSpeed:
    """Float32 images in a .npy. Reading and packing take turns, so that what else the machine does is met by both."""
    reading, packing = [], []
    with TemporaryDirectory() as folder:
        source = Path(folder) / "source.npy"
        _write(source, samples)
        for i in range(rounds):
            reading.append(_read(source))
            speed = pack(source, Path(folder) / f"{i}.zarr", codec, workers=workers)["speed"]
            packing.append(speed["bytes_per_second"])
    return PackSpeed(median(reading), median(packing))


def _write(path: Path, samples: int) -> None:
    y, x = np.mgrid[: SHAPE[1], : SHAPE[2]].astype("f4") / 256
    wave = np.stack([np.sin(x * (i + 3) + y * (7 - i)) for i in range(SHAPE[0])]).astype("f4")
    header = {"descr": "<f4", "fortran_order": False, "shape": (samples, *SHAPE)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_2_0(file, header)
        for i in range(samples):
            file.write((wave + np.float32(i)).data)


def _read(path: Path) -> float:
    room = bytearray(_CHUNK)
    begun, count = time.perf_counter(), 0
    with path.open("rb", buffering=0) as file:
        while found := file.readinto(room):
            count += found
    return count / (time.perf_counter() - begun)
