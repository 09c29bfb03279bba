"""The arrays of a .npz file, by name; read one at a time, each held against what the archive says of it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from laconic.errors import CorruptData, SpecError


def read(path: Path, name: str | None = None) -> dict[str, Tensor]:
    """All arrays of numbers that PyTorch has too, or the one called `name`. Never unpickles."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            if name is not None and name not in archive.files:
                raise SpecError(f"'{path}' has no array '{name}'. It has: {', '.join(archive.files)}")
            arrays = {key: archive[key] for key in archive.files if name in (None, key)}
    except (ValueError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        if isinstance(error, SpecError):
            raise
        raise CorruptData(f"'{path}' is not a sound .npz file: {error}") from error
    return {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in arrays.items()}
