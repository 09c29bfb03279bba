"""Memory for batches that is used again: pages that are new to a process cost more than decoding into them."""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from laconic.data.layout import Bytes
from laconic.stage import TensorSpec

_WORTH_KEEPING = 1 << 20  # bytes
_ALIGNMENT = 64


class Recycled:
    """Gives tensors, and takes their memory back when neither they nor views of them are left."""

    def __init__(self, kept: int = 4) -> None:
        self._free: deque[Bytes] = deque(maxlen=kept)

    def tensor(self, spec: TensorSpec) -> Tensor:
        """Not filled. In a worker of a DataLoader it lies where both processes see it, so that nothing is copied."""
        if get_worker_info() is not None:
            storage = torch.UntypedStorage._new_shared(spec.nbytes)
            return torch.empty(0, dtype=spec.dtype).set_(storage).view(spec.shape)
        if spec.nbytes < _WORTH_KEEPING:
            return torch.empty(spec.shape, dtype=spec.dtype)
        block = self._block(spec.nbytes + _ALIGNMENT)
        start = -block.ctypes.data % _ALIGNMENT
        used = block[start : start + spec.nbytes]  # lives as long as the memory of the tensor
        weakref.finalize(used, self._free.append, block).atexit = False
        return torch.from_numpy(used).view(spec.dtype).view(spec.shape)

    def _block(self, size: int) -> Bytes:
        for _ in range(len(self._free)):
            block = self._free.popleft()
            if len(block) == size:
                return block
            self._free.append(block)
        return np.empty(size, np.uint8)
