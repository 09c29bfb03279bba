"""The operators of codes as torch sees them: schemas, fakes, compilers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from laconic.ops import bitpack, bound, grid, lorenzo, packed  # noqa: F401  # declare the operators

ops = torch.ops.laconic
X = torch.randn(3, 40, generator=torch.Generator().manual_seed(1))
STEP, BOUND = torch.full((3,), 0.1), torch.full((3,), 0.06)
CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor")


def codes() -> Tensor:
    return (X * 10).to(torch.int8)


def stream() -> Tensor:
    room = torch.empty(bitpack.capacity(120, 1), dtype=torch.uint8)
    return room[: ops.bitpack_encode_out(codes(), room)].clone()


CALLS = {
    "bound_grid": lambda: (X, 3, 1, 1e-2),
    "bound_encode_out": lambda: (X, STEP, BOUND, torch.empty_like(codes())),
    "bound_decode_out": lambda: (codes(), STEP, torch.empty_like(X)),
    "lorenzo_encode": lambda: (codes(), 2),
    "lorenzo_encode_out": lambda: (codes(), 1, torch.empty_like(codes())),
    "lorenzo_decode": lambda: (codes(), 2),
    "lorenzo_decode_out": lambda: (codes(), 1, torch.empty_like(codes())),
    "bitpack_encode_out": lambda: (codes(), torch.zeros(bitpack.capacity(120, 1), dtype=torch.uint8)),
    "bitpack_decode_out": lambda: (stream(), torch.empty_like(codes())),
    "bound_pack_out": lambda: (X, STEP, BOUND, 8, 2, torch.zeros(bitpack.capacity(120, 1), dtype=torch.uint8)),
    "bound_predict_out": lambda: (X, STEP, BOUND, 2, torch.empty_like(codes())),
    "bound_restore_out": lambda: (codes(), STEP, 2, torch.empty_like(X)),
    "bound_unpack_out": lambda: (stream(), STEP, 8, 0, torch.empty_like(X)),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_operator_lies_about_itself(name: str) -> None:
    torch.library.opcheck(getattr(ops, name).default, CALLS[name](), test_utils=CHECKS)


def decode(data: Tensor, step: Tensor) -> Tensor:
    residuals = torch.empty(3, 40, dtype=torch.int8)
    ops.bitpack_decode_out(data, residuals)
    summed = ops.lorenzo_decode(residuals, 1)
    x = torch.empty(3, 40)
    ops.bound_decode_out(summed, step, x)
    return x * 2


def test_a_graph_breaks_where_codes_are_decoded() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(decode, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(stream(), STEP), decode(stream(), STEP))


def encode(x: Tensor) -> tuple[Tensor, Tensor]:
    found = torch.empty(3, 40, dtype=torch.int8)
    places = ops.bound_encode_out(x, STEP, BOUND, found)
    return ops.lorenzo_encode(found, 2), places + 0


def test_a_graph_breaks_at_as_many_exceptions_as_there_are() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(encode, fullgraph=True, backend="aot_eager")
    for x in (X, X.where(X > -1, torch.nan)):
        for found, expected in zip(compiled(x), encode(x), strict=True):
            assert torch.equal(found, expected)


def pack(codes: Tensor) -> Tensor:
    room = torch.zeros(bitpack.capacity(120, 1), dtype=torch.uint8)
    length = ops.bitpack_encode_out(codes, room)
    torch._check(length <= room.shape[0])
    return room[:length] + 0


@pytest.mark.xfail(strict=True, reason="torch does not functionalise what writes into a tensor and returns a number")
def test_a_graph_breaks_at_a_stream_of_any_length() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(pack, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(codes()), stream())
