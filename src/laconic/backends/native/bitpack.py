"""Bit planes of blocks in C++."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.backends.native.codes import CODES, CORE, code_shape, takes
from laconic.errors import CorruptData
from laconic.ops import LIBRARY
from laconic.ops.bitpack import capacity, reference_decode, reference_encode


def encode(codes: Tensor, out: Tensor) -> int:
    roomy = out.nbytes >= capacity(codes.numel(), codes.element_size())
    if not takes(codes, out) or codes.dtype not in CODES or not roomy:
        return reference_encode(codes, out)
    shape = code_shape(codes, codes.dtype, 0, flat=True)
    length, _ = CORE.code_encode(codes.data_ptr(), shape, True, out.data_ptr(), torch.get_num_threads())
    return int(length)


def decode(data: Tensor, out: Tensor) -> None:
    if not takes(data, out) or out.dtype not in CODES:
        return reference_decode(data, out)
    shape = code_shape(out, out.dtype, 0, flat=True)
    if not CORE.code_decode(data.data_ptr(), data.nbytes, shape, out.data_ptr(), torch.get_num_threads()):
        raise CorruptData(f"bitpack: these {data.nbytes} bytes are not a stream of {out.numel()} codes")
    return None


LIBRARY.impl("bitpack_encode_out", encode, "CPU")
LIBRARY.impl("bitpack_decode_out", decode, "CPU")
