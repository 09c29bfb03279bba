"""The operators as torch sees them: schemas, fakes, gradients, compilers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import laconic
from laconic.transforms.bases import Dct, Zfp
from laconic.transforms.block import matrix

from ..table import agree

CPU = torch.device("cpu")
ANALYSIS = matrix(Dct, 8, "analysis", CPU)
SYNTHESIS = matrix(Dct, 8, "synthesis", CPU)
SHAPES = [(2, 16, 24), (13, 9), (1, 2, 3, 17)]
ops = torch.ops.laconic


@pytest.mark.parametrize("triangle", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_operator_lies_about_itself(shape: tuple[int, ...], dtype: torch.dtype, triangle: bool) -> None:
    x = (torch.rand(shape) * 200).to(dtype)
    x.requires_grad_(dtype == torch.float64)
    torch.library.opcheck(ops.block_encode.default, (x, ANALYSIS, 3, triangle))
    y = ops.block_encode(x.detach(), ANALYSIS, 3, triangle)
    torch.library.opcheck(ops.block_encode_out.default, (x.detach(), ANALYSIS, 3, triangle, torch.empty_like(y)))
    y.requires_grad_(dtype == torch.float64)
    torch.library.opcheck(ops.block_decode.default, (y, SYNTHESIS, 3, triangle, *shape[-2:], dtype))
    torch.library.opcheck(ops.block_decode_out.default, (y.detach(), SYNTHESIS, 3, triangle, torch.empty_like(x)))


@pytest.mark.parametrize("basis", [Dct, Zfp])
@pytest.mark.parametrize("triangle", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_gradient_is_wrong_at_the_edge(shape: tuple[int, ...], triangle: bool, basis: type) -> None:
    block = basis.blocks[0]
    analysis, synthesis = (matrix(basis, block, side, CPU) for side in ("analysis", "synthesis"))
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)

    def encode(x: Tensor) -> Tensor:
        return ops.block_encode(x, analysis, 3, triangle)

    def decode(y: Tensor) -> Tensor:
        return ops.block_decode(y, synthesis, 3, triangle, *shape[-2:], torch.float64)

    assert torch.autograd.gradcheck(encode, x)
    assert torch.autograd.gradcheck(decode, encode(x).detach().requires_grad_())


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_graph_breaks(dynamic: bool) -> None:
    def roundtrip(x: Tensor) -> Tensor:
        y = ops.block_encode(x, ANALYSIS, 4, False)
        return ops.block_decode(y * 2, SYNTHESIS, 4, False, x.shape[-2], x.shape[-1], x.dtype)

    torch._dynamo.reset()
    compiled = torch.compile(roundtrip, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for size in (16, 24):
        x = torch.rand(2, size, 13, requires_grad=True)
        torch.testing.assert_close(compiled(x), roundtrip(x))
        (expected,) = torch.autograd.grad(roundtrip(x).square().sum(), x)
        (found,) = torch.autograd.grad(compiled(x).square().sum(), x)
        torch.testing.assert_close(found, expected)


def test_a_codec_breaks_the_graph() -> None:
    codec = laconic.codec("dct:chop=4,keep=triangle")
    torch._dynamo.reset()

    def twice(x: Tensor) -> Tensor:
        return codec.decode(codec.encode(x)) + codec.roundtrip(x)

    compiled = torch.compile(twice, fullgraph=True, backend="aot_eager")
    x = torch.rand(2, 16, 16)
    torch.testing.assert_close(compiled(x), codec.roundtrip(x) * 2)


def test_export_loses_the_operator() -> None:
    class Roundtrip(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("analysis", ANALYSIS)
            self.register_buffer("synthesis", SYNTHESIS)

        def forward(self, x: Tensor) -> Tensor:
            y = ops.block_encode(x, self.analysis, 4, True)
            return ops.block_decode(y, self.synthesis, 4, True, 16, 16, torch.float32)

    x = torch.rand(2, 16, 16)
    exported = torch.export.export(Roundtrip(), (x,))
    assert {"block_encode.default", "block_decode.default"} <= {
        node.target.__name__ for node in exported.graph.nodes if node.op == "call_function"
    }
    torch.testing.assert_close(exported.module()(x), Roundtrip()(x))


@pytest.mark.parametrize(
    ("chop", "basis", "out"),
    [
        (0, ANALYSIS, torch.empty(8, 8)),
        (9, ANALYSIS, torch.empty(8, 8)),
        (4, ANALYSIS[:4], torch.empty(8, 8)),
        (4, ANALYSIS, torch.empty(8, 9)),
        (4, ANALYSIS, torch.empty(8, 8, dtype=torch.float64)),
        (4, ANALYSIS, torch.empty(1, 8, 8)),
    ],
)
def test_a_kernel_writes_beyond_the_sizes_it_is_told(chop: int, basis: Tensor, out: Tensor) -> None:
    with pytest.raises(laconic.SpecError, match="expected"):
        ops.block_encode_out(torch.empty(16, 16), basis, chop, False, out)
    with pytest.raises(laconic.SpecError, match="expected"):
        ops.block_decode_out(out, basis, chop, False, torch.empty(16, 16))


def test_strided_out_is_filled_as_if_it_were_dense() -> None:
    x = torch.rand(3, 16, 24)
    y = ops.block_encode(x, ANALYSIS, 4, False)
    strided = torch.zeros(3, 12, 8).transpose(1, 2)
    ops.block_encode_out(x, ANALYSIS, 4, False, strided)
    assert agree(strided, y)
    restored = ops.block_decode(y, SYNTHESIS, 4, False, 16, 24, torch.float32)
    wide = torch.zeros(3, 16, 48)
    ops.block_decode_out(strided, SYNTHESIS, 4, False, wide[..., ::2])
    assert agree(wide[..., ::2], restored)
    assert not wide[..., 1::2].any()
