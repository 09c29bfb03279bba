"""Bit planes of one width in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.backends.native.codes import CORE, line, takes
from laconic.ops import LIBRARY
from laconic.ops.fixed import check_call, raise_on_misfit, reference_decode, reference_encode


def encode(codes: Tensor, width: int, out: Tensor) -> None:
    if not takes(codes, out):
        return reference_encode(codes, width, out)
    check_call(codes, out, width)
    fit = CORE.fixed_encode(codes.data_ptr(), _shape(codes, width), out.data_ptr(), torch.get_num_threads())
    return raise_on_misfit(fit, width)


def decode(data: Tensor, width: int, out: Tensor) -> None:
    if not takes(data, out):
        return reference_decode(data, width, out)
    check_call(out, data, width)
    CORE.fixed_decode(data.data_ptr(), _shape(out, width), out.data_ptr(), torch.get_num_threads())
    return None


def _shape(codes: Tensor, width: int) -> tuple[int, int, int, bool]:
    return codes.numel(), line(codes), width, codes.dtype.is_signed


LIBRARY.impl("bitpack_fixed_encode_out", encode, "CPU")
LIBRARY.impl("bitpack_fixed_decode_out", decode, "CPU")
