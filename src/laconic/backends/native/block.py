"""The block transform in C++: one pass over memory, no temporary."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from laconic.backends.native import DTYPES, core
from laconic.ops import LIBRARY
from laconic.ops.block import (
    check_call,
    empty_coefficients,
    empty_image,
    raise_on_overflow,
    reference_decode,
    reference_encode,
)

BLOCKS = (4, 8, 16, 32)

_core: Any = core()
if _core is None:
    raise ImportError("laconic's native part is not there; ask native.available() before importing its bodies")


def encode(x: Tensor, basis: Tensor, chop: int, triangle: bool, out: Tensor) -> None:
    check_call(x, out, basis, chop, triangle)
    if not _takes(x, basis) or not _aligned(out):
        return reference_encode(x, basis, chop, triangle, out)
    target = out if out.is_contiguous() else torch.empty_like(out, memory_format=torch.contiguous_format)
    overflowed = _core.block_encode(
        *(x.data_ptr(), DTYPES[x.dtype], x.shape, x.stride()),
        *(_doubles(basis).data_ptr(), basis.shape[0], chop, triangle),
        *(target.data_ptr(), DTYPES[target.dtype], torch.get_num_threads()),
    )
    if target is not out:
        out.copy_(target)
    return raise_on_overflow(overflowed)


def decode(y: Tensor, basis: Tensor, chop: int, triangle: bool, out: Tensor) -> None:
    check_call(out, y, basis, chop, triangle)
    if not _takes(out, basis) or not _aligned(y):
        return reference_decode(y, basis, chop, triangle, out)
    source = y.contiguous()
    overflowed = _core.block_decode(
        *(source.data_ptr(), DTYPES[source.dtype]),
        *(_doubles(basis).data_ptr(), basis.shape[0], chop, triangle),
        *(out.data_ptr(), DTYPES[out.dtype], out.shape, out.stride(), torch.get_num_threads()),
    )
    return raise_on_overflow(overflowed)


def _takes(image: Tensor, basis: Tensor) -> bool:
    return image.dtype in DTYPES and basis.shape[0] in BLOCKS and image.numel() > 0 and _aligned(image)


def _aligned(x: Tensor) -> bool:
    """Tensors over somebody's bytes need not lie at a multiple of their element's size; C++ wants them to."""
    return x.data_ptr() % x.element_size() == 0


def _doubles(basis: Tensor) -> Tensor:
    """The stages' matrices are float64 and contiguous already; a caller's own need not be."""
    return basis.to(device="cpu", dtype=torch.float64).contiguous()


def encode_new(x: Tensor, basis: Tensor, chop: int, triangle: bool) -> Tensor:
    """Spares small tensors a second way through the dispatcher."""
    out = empty_coefficients(x, basis, chop, triangle)
    encode(x, basis, chop, triangle, out)
    return out


def decode_new(
    y: Tensor, basis: Tensor, chop: int, triangle: bool, height: int, width: int, dtype: torch.dtype
) -> Tensor:
    out = empty_image(y, height, width, dtype)
    decode(y, basis, chop, triangle, out)
    return out


LIBRARY.impl("block_encode", encode_new, "CPU")
LIBRARY.impl("block_decode", decode_new, "CPU")
LIBRARY.impl("block_encode_out", encode, "CPU")
LIBRARY.impl("block_decode_out", decode, "CPU")
