"""What travels beside the packed arrays: labels and others, as Zarr keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.errors import CorruptData

_KEPT_WHOLE = 64 << 20  # bytes: labels are small, and Zarr takes a millisecond for each chunk it reads


class BesideArray:
    """An array of a store that is not packed. One that is small is read whole, the first time it is asked for."""

    def __init__(self, path: Path) -> None:
        import zarr

        self.path = path
        self._array: Any = zarr.open_array(path, mode="r")

    def __len__(self) -> int:
        return int(self._array.shape[0])

    def read(self, indices: Sequence[int]) -> Tensor | list[Any]:
        """A tensor, or a list of what PyTorch has no numbers for, such as text."""
        try:
            is_small = self._array.dtype.hasobject or self._array.nbytes <= _KEPT_WHOLE
            found = self._whole[list(indices)] if is_small else self._picked(indices)
        except Exception as error:  # each of Zarr's compressors has its own
            raise CorruptData(f"{self.path.parent}: array '{self.path.name}' cannot be read: {error}") from error
        return _as_tensor(np.asarray(found))

    @cached_property
    def _whole(self) -> Any:
        return self._array[...]

    def _picked(self, indices: Sequence[int]) -> Any:
        """Each chunk is read once, and Zarr wants them in order."""
        wanted, places = np.unique(np.asarray(indices, np.int64), return_inverse=True)
        return self._array.oindex[wanted][places]


def _as_tensor(values: np.ndarray[Any, Any]) -> Tensor | list[Any]:
    if values.dtype.kind not in "biufc":
        return list(values.tolist())
    return torch.from_numpy(np.require(values, values.dtype.newbyteorder("="), ["C", "W"]))
