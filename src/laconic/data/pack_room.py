"""Memory that a packer uses for block after block: pages new to a process cost more than all that is done in them."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from laconic.data.sources import ArrayInfo
from laconic.data.store import PackedArray
from laconic.encoded import Encoded
from laconic.stage import TensorSpec


class Room:
    """For so many samples of an array: as they are read, as they are encoded, and as they come back."""

    def __init__(self, array: PackedArray, info: ArrayInfo, samples: int) -> None:
        spec = TensorSpec((samples, *array.spec.shape[1:]), array.spec.dtype)
        self.array = array
        memory = torch.empty(samples * info.sample_bytes, dtype=torch.uint8)  # aligned, unlike NumPy's
        self.source: NDArray[Any] = memory.numpy().view(info.dtype).reshape(samples, *info.sample)
        self._restored = torch.empty(spec.shape, dtype=spec.dtype)
        self._encoded = array.codec.empty(spec) if array.splits else None

    def encode(self, x: Tensor) -> list[Encoded]:
        """What is true until the next block."""
        out = self._encoded
        return self.array.encode(x, out if out is None or len(out) == len(x) else out[: len(x)])

    def decode(self, encoded: list[Encoded]) -> Tensor:
        """What will be read. True until the next block."""
        at = 0
        for enc in encoded:
            self.array.codec.decode(enc, self._restored[at : at + len(enc)])
            at += len(enc)
        return self._restored[:at]
