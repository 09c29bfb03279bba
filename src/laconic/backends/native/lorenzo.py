"""Lorenzo prediction in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.backends.native.codes import CODES, CORE, code_shape, takes
from laconic.ops import LIBRARY
from laconic.ops.lorenzo import reference_decode, reference_encode


def encode(codes: Tensor, dims: int, out: Tensor) -> None:
    if not takes(codes, out) or codes.dtype not in CODES:
        return reference_encode(codes, dims, out)
    shape = code_shape(codes, codes.dtype, dims)
    CORE.code_encode(codes.data_ptr(), shape, False, out.data_ptr(), torch.get_num_threads())
    return None


def decode(residuals: Tensor, dims: int, out: Tensor) -> None:
    if not takes(residuals, out) or residuals.dtype not in CODES:
        return reference_decode(residuals, dims, out)
    shape = code_shape(residuals, residuals.dtype, dims)
    CORE.code_decode(residuals.data_ptr(), -1, shape, out.data_ptr(), torch.get_num_threads())
    return None


LIBRARY.impl("lorenzo_encode_out", encode, "CPU")
LIBRARY.impl("lorenzo_decode_out", decode, "CPU")
