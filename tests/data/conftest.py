"""Small data sets, and what a store is made of."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("zarr")


def smooth(count: int = 23, size: int = 16) -> np.ndarray:
    """Images as float32 `[count, 3, size, size]`, each another."""
    y, x = np.mgrid[:size, :size].astype("f4")
    waves = [[np.sin(x / 5 + i + c) * np.cos(y / 7 - i) for c in range(3)] for i in range(count)]
    return np.array(waves, "f4")


@pytest.fixture
def images():
    return smooth()


@pytest.fixture
def npy(tmp_path, images):
    path = tmp_path / "images.npy"
    np.save(path, images)
    return path


@pytest.fixture
def npz(tmp_path, images):
    path = tmp_path / "set.npz"
    np.savez(path, images=images, labels=np.arange(len(images)), scale=np.float32(3))
    return path


def files(store) -> dict[str, bytes]:
    """Every file of a store by its name; of what it says of itself, all but the speed."""
    found = {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}
    about = json.loads(found["zarr.json"])
    del about["attributes"]["laconic"]["speed"]
    assert len(found["zarr.json"]) % 512 == 0
    return found | {"zarr.json": json.dumps(about).encode()}
