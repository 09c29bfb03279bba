"""The block codec against the paper's formula, Y = (M T_L) A (T_L^T M^T), written out densely in float64.

What this does not check: the Triton body, which has its own file, and speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import laconic
from laconic.backends import native
from laconic.ops import block as ops
from laconic.registry import find
from laconic.transforms.block import BlockTransform, matrix

BASES = ["dct", "zfp", "hadamard"]
CPU = torch.device("cpu")


def bodies() -> list[str]:
    return ["reference", "native"] if native.available() else ["reference"]


def body_of(name: str, side: str) -> Callable[..., None]:
    if name == "reference":
        return getattr(ops, f"reference_{side}")
    return getattr(torch.ops.laconic, f"block_{side}_out")


def dense(size: int, kept: Tensor) -> Tensor:
    """M T_L: the block-diagonal transform with the dropped rows left out."""
    blocks = -(-size // kept.shape[1])
    return torch.block_diag(*[kept] * blocks)


def pad_by_edge(x: Tensor, block: int) -> Tensor:
    rows = torch.arange(-(-x.shape[-2] // block) * block).clamp(max=x.shape[-2] - 1)
    columns = torch.arange(-(-x.shape[-1] // block) * block).clamp(max=x.shape[-1] - 1)
    return x[..., rows, :][..., columns]


def paper_encode(x: Tensor, basis: Tensor, chop: int) -> Tensor:
    padded = pad_by_edge(x.double(), basis.shape[0])
    rows, columns = (dense(size, basis[:chop]) for size in padded.shape[-2:])
    return rows @ padded @ columns.T


def paper_decode(y: Tensor, synthesis: Tensor, chop: int, height: int, width: int) -> Tensor:
    rows, columns = (dense(size, synthesis[:, :chop].T).T for size in (height, width))
    return (rows @ y.double() @ columns.T)[..., :height, :width]


def keep_triangle(y: Tensor, chop: int) -> Tensor:
    """The kept coefficients of each block row, one by one: the definition, not the way we compute it."""
    *leading, height, width = y.shape
    images = y.reshape(-1, height // chop, chop, width // chop, chop)
    rows = [
        torch.cat([image_row[i, :, : chop - i].reshape(-1) for i in range(chop)])
        for image in images
        for image_row in image
    ]
    return torch.stack(rows).reshape([*leading, height // chop, -1])


@st.composite
def cases(draw: st.DrawFn) -> tuple[type[BlockTransform], int, int, bool, Tensor]:
    basis = find(draw(st.sampled_from(BASES)))
    assert issubclass(basis, BlockTransform)
    block = draw(st.sampled_from(basis.blocks))
    chop = draw(st.integers(1, block))
    leading = draw(st.lists(st.integers(1, 3), max_size=2))
    height, width = draw(st.integers(1, 70)), draw(st.one_of(st.integers(1, 90), st.sampled_from([256, 300])))
    seed = draw(st.integers(0, 2**16))
    x = torch.randn([*leading, height, width], generator=torch.Generator().manual_seed(seed))
    return basis, block, chop, draw(st.booleans()), x


@pytest.mark.parametrize("body", bodies())
@given(case=cases())
def test_encoding_strays_from_the_paper(body: str, case: tuple[type[BlockTransform], int, int, bool, Tensor]) -> None:
    basis, block, chop, triangle, x = case
    analysis = matrix(basis, block, "analysis", CPU)
    expected = paper_encode(x, analysis, chop)
    expected = keep_triangle(expected, chop) if triangle else expected
    out = torch.full(ops.coefficient_shape(x.shape, block, chop, triangle), math.nan)
    body_of(body, "encode")(x, analysis, chop, triangle, out)
    assert_close(out, expected, x)


@pytest.mark.parametrize("body", bodies())
@given(case=cases())
def test_decoding_strays_from_the_paper(body: str, case: tuple[type[BlockTransform], int, int, bool, Tensor]) -> None:
    basis, block, chop, triangle, x = case
    synthesis = matrix(basis, block, "synthesis", CPU)
    square = paper_encode(x, matrix(basis, block, "analysis", CPU), chop).float()
    kept = keep_triangle(square, chop) if triangle else square
    if triangle:
        i = torch.arange(chop)
        inside = (i[:, None] + i < chop).repeat(square.shape[-2] // chop, square.shape[-1] // chop)
        square = square * inside
    out = torch.full_like(x, math.nan)
    body_of(body, "decode")(kept, synthesis, chop, triangle, out)
    assert_close(out, paper_decode(square, synthesis, chop, *x.shape[-2:]), x)


def assert_close(found: Tensor, expected: Tensor, x: Tensor) -> None:
    """1e-5 of the largest value: a sum of up to 32 x 32 products has no better sense of 'relative'."""
    assert found.shape == expected.shape
    scale = max(float(expected.abs().max()), float(x.abs().max()))
    assert float((found.double() - expected).abs().max()) <= 1e-5 * scale


@pytest.mark.parametrize("name", BASES)
def test_keeping_everything_is_lossy(name: str) -> None:
    basis = find(name)
    assert issubclass(basis, BlockTransform)
    for block in basis.blocks:
        x = torch.randn(2, 37, 41, dtype=torch.float64)
        restored = laconic.codec(f"{name}:chop={block},block={block}").roundtrip(x)
        assert torch.allclose(restored, x, atol=1e-12)


def test_the_dct_is_not_orthonormal() -> None:
    for block in (4, 8, 16, 32):
        t = matrix(find("dct"), block, "analysis", CPU)  # type: ignore[arg-type]
        assert torch.allclose(t @ t.T, torch.eye(block, dtype=torch.float64), atol=1e-14)


def test_zfp_is_not_zfps_transform() -> None:
    inverse = torch.tensor([[4, 6, -4, -1], [4, 2, 4, 5], [4, -2, 4, -5], [4, -6, -4, 1]], dtype=torch.float64) / 4
    assert torch.allclose(matrix(find("zfp"), 4, "synthesis", CPU), inverse, atol=1e-14)  # type: ignore[arg-type]


def test_hadamard_keeps_the_fast_waves() -> None:
    for block in (4, 8, 16, 32):
        waves = matrix(find("hadamard"), block, "analysis", CPU)  # type: ignore[arg-type]
        assert (waves.sign().diff(dim=1) != 0).sum(dim=1).tolist() == list(range(block))


@pytest.mark.parametrize(("chop", "keep", "ratio"), [(4, "square", 4.0), (2, "square", 16.0), (7, "triangle", 64 / 28)])
def test_the_ratio_is_not_the_papers(chop: int, keep: str, ratio: float) -> None:
    x = torch.rand(10, 256, 256)
    enc = laconic.encode(x, f"dct:chop={chop},keep={keep}")
    assert x.nbytes / enc.parts["main"].nbytes == pytest.approx(ratio)
    assert enc.ratio == pytest.approx(ratio, rel=1e-3)
