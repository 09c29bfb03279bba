"""`affine` and `bitpack:width=N` at once: floats to planes and back, without the codes ever being in memory.

The bytes are those of one operator after the other. `width` is at least the bits of a code.
"""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.errors import SpecError
from laconic.ops import LIBRARY, load_bodies
from laconic.ops import affine as _affine  # noqa: F401  # declares what the reference calls
from laconic.ops import fixed as _fixed  # noqa: F401

LIBRARY.define(
    "affine_pack_out(Tensor x, int bits, SymInt row, SymInt group, int? seed, int width, "
    "Tensor(a!) out, Tensor(b!) scale, Tensor(c!)? offset) -> ()"
)
LIBRARY.define(
    "affine_unpack_out(Tensor data, Tensor scale, Tensor? offset, SymInt row, SymInt group, int width, "
    "Tensor(a!) out) -> ()"
)


def reference_pack(
    x: Tensor,
    bits: int,
    row: int,
    group: int,
    seed: int | None,
    width: int,
    out: Tensor,
    scale: Tensor,
    offset: Tensor | None,
) -> None:
    check_bits(bits, width)
    codes = torch.empty(x.shape, dtype=_code_dtype(offset), device=x.device)
    torch.ops.laconic.affine_encode_out.default(x, bits, row, group, seed, codes, scale, offset)
    torch.ops.laconic.bitpack_fixed_encode_out.default(codes, width, out)


def reference_unpack(
    data: Tensor, scale: Tensor, offset: Tensor | None, row: int, group: int, width: int, out: Tensor
) -> None:
    codes = torch.empty(out.shape, dtype=_code_dtype(offset), device=out.device)
    torch.ops.laconic.bitpack_fixed_decode_out.default(data, width, codes)
    torch.ops.laconic.affine_decode_out.default(codes, scale, offset, row, group, out)


def check_bits(bits: int, width: int) -> None:
    if not 1 <= bits <= width:
        raise SpecError(f"affine_pack_out: expected a width of at least {bits} bits, got {width}")


def _code_dtype(offset: Tensor | None) -> torch.dtype:
    return torch.int8 if offset is None else torch.uint8


def _fake_pack(
    x: Tensor,
    bits: int,
    row: int,
    group: int,
    seed: int | None,
    width: int,
    out: Tensor,
    scale: Tensor,
    offset: Tensor | None,
) -> None:
    return None


def _fake_unpack(
    data: Tensor, scale: Tensor, offset: Tensor | None, row: int, group: int, width: int, out: Tensor
) -> None:
    return None


LIBRARY.impl("affine_pack_out", reference_pack, "CompositeExplicitAutograd")
LIBRARY.impl("affine_unpack_out", reference_unpack, "CompositeExplicitAutograd")
torch.library.register_fake("laconic::affine_pack_out", _fake_pack, lib=LIBRARY)
torch.library.register_fake("laconic::affine_unpack_out", _fake_unpack, lib=LIBRARY)

load_bodies("packed_affine")
