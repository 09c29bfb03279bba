"""Bodies for GPUs, in Triton."""

from __future__ import annotations

from importlib.util import find_spec

import torch


def available() -> bool:
    return torch.cuda.is_available() and find_spec("triton") is not None
