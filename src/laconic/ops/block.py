"""The block transform, two ways: `block_encode` and `block_decode`, each also writing into a given tensor.

An image of `H x W` pixels in blocks of `N x N`, of whose coefficients the upper-left `chop x chop` are kept:

    X [.., H, W]  --A X_b A^T-->  Y [.., Hb*chop, Wb*chop]                 square: one matrix, as in the paper
                                  Y [.., Hb, Wb*chop*(chop+1)/2]           triangle: i + j < chop only

`basis` is the N x N analysis matrix for encoding, the synthesis matrix for decoding. Sizes that N does not
divide are continued by their edge, and cropped again. Arithmetic is float32, or float64 for float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from laconic.errors import DataError, SpecError
from laconic.ops import LIBRARY, load_bodies
from laconic.ops.axis import along_columns, along_rows, decoding_map, encoding_map
from laconic.ops.triangle import gather_triangle, scatter_triangle, triangle_index

SPAN = 32
"""Pixels a matrix of the reference covers: the fastest of 8 to 256 on a CPU, see docs/performance.md."""

LIBRARY.define("block_encode(Tensor x, Tensor basis, int chop, bool triangle) -> Tensor")
LIBRARY.define("block_encode_out(Tensor x, Tensor basis, int chop, bool triangle, Tensor(a!) out) -> ()")
LIBRARY.define(
    "block_decode(Tensor y, Tensor basis, int chop, bool triangle, "
    "SymInt height, SymInt width, ScalarType dtype) -> Tensor"
)
LIBRARY.define("block_decode_out(Tensor y, Tensor basis, int chop, bool triangle, Tensor(a!) out) -> ()")


def coefficient_dtype(image: torch.dtype) -> torch.dtype:
    """Floats keep their dtype; uint8 gives float32."""
    return torch.float32 if image == torch.uint8 else image


def compute_dtype(image: torch.dtype) -> torch.dtype:
    return torch.float64 if image == torch.float64 else torch.float32


def coefficient_shape(shape: Any, block: int, chop: int, triangle: bool) -> list[Any]:
    """What `block_encode` gives for an image of this shape."""
    *leading, height, width = shape
    block_rows, block_columns = -(-height // block), -(-width // block)
    if triangle:
        return [*leading, block_rows, block_columns * (chop * (chop + 1) // 2)]
    return [*leading, block_rows * chop, block_columns * chop]


def check_call(image: Tensor, coefficients: Tensor, basis: Tensor, chop: int, triangle: bool) -> None:
    """Raises unless the tensors fit together. Every body asks first: a kernel believes the sizes it is told."""
    block = basis.shape[0]
    if basis.dim() != 2 or basis.shape[1] != block or not 1 <= chop <= block:
        raise SpecError(f"expected a square basis and chop from 1 to its size, got {list(basis.shape)}, chop={chop}")
    expected = coefficient_shape(image.shape, block, chop, triangle)
    dtype = coefficient_dtype(image.dtype)
    if list(coefficients.shape) != expected or coefficients.dtype != dtype or coefficients.device != image.device:
        raise SpecError(
            f"For an image of {list(image.shape)} {image.dtype} on {image.device}, expected coefficients of "
            f"{expected} {dtype}, got {list(coefficients.shape)} {coefficients.dtype} on {coefficients.device}"
        )


# The reference: on any device, whatever has no faster body.


def reference_encode(x: Tensor, basis: Tensor, chop: int, triangle: bool, out: Tensor) -> None:
    check_call(x, out, basis, chop, triangle)
    floats = x.to(compute_dtype(x.dtype))
    kept = basis[:chop].to(device=x.device, dtype=floats.dtype)
    with torch.autocast(x.device.type, enabled=False):
        y = along_rows(encoding_map(x.shape[-2], kept, SPAN), floats)
        y = along_columns(encoding_map(x.shape[-1], kept, SPAN), y)
    if triangle:
        y = gather_triangle(y, chop, triangle_index(y.shape[-1] // chop, chop, x.device))
    out.copy_(y)
    if out.dtype == torch.float16:
        raise_on_overflow(bool((out.isinf() & y.isfinite()).any()))


def reference_decode(y: Tensor, basis: Tensor, chop: int, triangle: bool, out: Tensor) -> None:
    check_call(out, y, basis, chop, triangle)
    floats = y.to(compute_dtype(out.dtype))
    kept = basis[:, :chop].to(device=y.device, dtype=floats.dtype)
    height, width = out.shape[-2:]
    if triangle:
        blocks = -(-width // basis.shape[0])
        floats = scatter_triangle(floats, chop, triangle_index(blocks, chop, y.device))
    with torch.autocast(y.device.type, enabled=False):
        x = along_columns(decoding_map(width, kept, SPAN), floats)
        x = along_rows(decoding_map(height, kept, SPAN), x)
    out.copy_(to_pixels(x) if out.dtype == torch.uint8 else x)
    if out.dtype == torch.float16:
        raise_on_overflow(bool((out.isinf() & x.isfinite()).any()))


def to_pixels(x: Tensor) -> Tensor:
    """Floats to uint8: rounded half to even, and clamped."""
    return x.nan_to_num(0.0).round().clamp(0, 255).to(torch.uint8)


def raise_on_overflow(overflowed: bool) -> None:
    if overflowed:
        raise DataError(
            "A finite value is too large for float16 (65504 at most; the transform multiplies a flat block "
            "by its size). Scale the input down, or give float32 or bfloat16"
        )


# The functional operators: the same for every backend, on top of the one that writes into `out`.


def empty_coefficients(x: Tensor, basis: Tensor, chop: int, triangle: bool) -> Tensor:
    shape = coefficient_shape(x.shape, basis.shape[0], chop, triangle)
    return x.new_empty(shape, dtype=coefficient_dtype(x.dtype))


def empty_image(y: Tensor, height: int, width: int, dtype: torch.dtype) -> Tensor:
    return y.new_empty([*y.shape[:-2], height, width], dtype=dtype)


def block_encode(x: Tensor, basis: Tensor, chop: int, triangle: bool) -> Tensor:
    out = empty_coefficients(x, basis, chop, triangle)
    torch.ops.laconic.block_encode_out.default(x, basis, chop, triangle, out)
    return out


def block_decode(
    y: Tensor, basis: Tensor, chop: int, triangle: bool, height: int, width: int, dtype: torch.dtype
) -> Tensor:
    out = empty_image(y, height, width, dtype)
    torch.ops.laconic.block_decode_out.default(y, basis, chop, triangle, out)
    return out


LIBRARY.impl("block_encode", block_encode, "CompositeExplicitAutograd")
LIBRARY.impl("block_decode", block_decode, "CompositeExplicitAutograd")
LIBRARY.impl("block_encode_out", reference_encode, "CompositeExplicitAutograd")
LIBRARY.impl("block_decode_out", reference_decode, "CompositeExplicitAutograd")


# Fakes and gradients. Both maps are linear, so each one's gradient is the other with the matrix transposed.


def _fake_decode(
    y: Tensor, basis: Tensor, chop: int, triangle: bool, height: int, width: int, dtype: torch.dtype
) -> Tensor:
    return empty_image(y, height, width, dtype)


def _fake_out(x: Tensor, basis: Tensor, chop: int, triangle: bool, out: Tensor) -> None:
    return None


def _remember(shape_of: str) -> Callable[..., None]:
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.basis, ctx.chop, ctx.triangle = inputs[1:4]
        ctx.shape = (inputs[0] if shape_of == "input" else output).shape

    return setup_context


def _encode_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
    (height, width), block = ctx.shape[-2:], ctx.basis.shape[0]
    padded_height, padded_width = (-(-size // block) * block for size in (height, width))
    x = torch.ops.laconic.block_decode(
        grad, ctx.basis.mT.contiguous(), ctx.chop, ctx.triangle, padded_height, padded_width, grad.dtype
    )
    return _fold_edge(_fold_edge(x, -1, width), -2, height), None, None, None


def _fold_edge(x: Tensor, dim: int, size: int) -> Tensor:
    """The adjoint of continuing the edge: what lies beyond `size` is added to the last line within."""
    if x.shape[dim] == size:
        return x
    inside = x.narrow(dim, 0, size - 1)
    edge = x.narrow(dim, size - 1, x.shape[dim] - size + 1).sum(dim, keepdim=True)
    return torch.cat([inside, edge], dim)


def _decode_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None, None, None]:
    block = ctx.basis.shape[0]
    bottom, right = (-size % block for size in grad.shape[-2:])
    padded = torch.nn.functional.pad(grad, (0, right, 0, bottom))
    y = torch.ops.laconic.block_encode(padded, ctx.basis.mT.contiguous(), ctx.chop, ctx.triangle)
    return y, None, None, None, None, None, None


torch.library.register_fake("laconic::block_encode", empty_coefficients, lib=LIBRARY)
torch.library.register_fake("laconic::block_decode", _fake_decode, lib=LIBRARY)
torch.library.register_fake("laconic::block_encode_out", _fake_out, lib=LIBRARY)
torch.library.register_fake("laconic::block_decode_out", _fake_out, lib=LIBRARY)
torch.library.register_autograd(
    "laconic::block_encode", _encode_gradient, setup_context=_remember("input"), lib=LIBRARY
)
torch.library.register_autograd(
    "laconic::block_decode", _decode_gradient, setup_context=_remember("output"), lib=LIBRARY
)

load_bodies("block")
