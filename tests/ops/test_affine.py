"""The operators of `affine` and `bitpack:width=N` as torch sees them: schemas, fakes, compilers."""

from __future__ import annotations

import pytest
import torch

import laconic
from laconic.ops import packed_affine as _packed  # noqa: F401  # declares them all

ops = torch.ops.laconic


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("seed", [None, 3])
def test_an_operator_lies_about_itself(symmetric: bool, seed: int | None) -> None:
    x, codes = torch.randn(4, 40), torch.zeros(4, 40, dtype=torch.int8 if symmetric else torch.uint8)
    scale, offset = torch.ones(4, 2), None if symmetric else torch.zeros(4, 2)
    data = torch.zeros(4, 20, dtype=torch.uint8)
    torch.library.opcheck(ops.affine_encode_out.default, (x, 4, 40, 32, seed, codes, scale, offset))
    torch.library.opcheck(ops.affine_decode_out.default, (codes, scale, offset, 40, 32, torch.empty_like(x)))
    torch.library.opcheck(ops.affine_pack_out.default, (x, 4, 40, 32, seed, 4, data, scale, offset))
    torch.library.opcheck(ops.affine_unpack_out.default, (data, scale, offset, 40, 32, 4, torch.empty_like(x)))
    torch.library.opcheck(ops.bitpack_fixed_encode_out.default, (torch.zeros_like(codes), 4, data))
    torch.library.opcheck(ops.bitpack_fixed_decode_out.default, (data, 4, codes))


def test_a_graph_breaks() -> None:
    def roundtrip(x: torch.Tensor) -> torch.Tensor:
        scale, offset = x.new_empty(4, 2), x.new_empty(4, 2)
        data = x.new_empty((4, 20), dtype=torch.uint8)
        ops.affine_pack_out(x, 4, 40, 32, None, 4, data, scale, offset)
        out = torch.empty_like(x)
        ops.affine_unpack_out(data, scale, offset, 40, 32, 4, out)
        return out

    x = torch.randn(4, 40)
    torch._dynamo.reset()
    compiled = torch.compile(roundtrip, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), laconic.codec("affine:bits=4,group=32").roundtrip(x))
