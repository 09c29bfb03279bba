"""What the native entropy coders share: tensors as C++ takes them, and what it wrote as a tensor."""

from __future__ import annotations

import torch
from torch import Tensor


def place(data: Tensor | None) -> tuple[int, int]:
    return (0, 0) if data is None else (data.data_ptr(), data.numel())


def cut(room: Tensor, written: int) -> Tensor:
    """A copy of what was written, without torch's threads: in a forked child they would hang."""
    return torch.from_numpy(room[:written].numpy().copy())


def is_aligned(x: Tensor) -> bool:
    """Tensors over somebody's bytes need not lie at a multiple of their element's size; C++ wants them to."""
    return x.data_ptr() % x.element_size() == 0


def aligned(codes: Tensor) -> Tensor:
    return codes if is_aligned(codes) else codes.clone()
