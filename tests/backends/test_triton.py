"""The Triton kernels: in Triton's interpreter against the formula, and through its compiler. No GPU is needed.

Whether kernels are interpreted is settled when Triton is imported, so a child process runs the `check_` functions.
What this does not see: wrong code from the compiler for a GPU, races between programs, and speed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from laconic.errors import DataError, SpecError
from laconic.ops.block import coefficient_dtype, coefficient_shape
from laconic.ops.triangle import gather_triangle, scatter_triangle, triangle_index
from laconic.transforms.bases import Dct, Hadamard, Zfp
from laconic.transforms.block import BlockTransform, matrix

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

from laconic.backends.triton import block as bodies  # noqa: E402  # it imports triton
from laconic.backends.triton.block_kernels import decode_tile, encode_tile  # noqa: E402

CODECS = [
    basis(block=block, chop=chop)
    for basis in (Dct, Hadamard, Zfp)
    for block in basis.blocks
    for chop in {*range(1, 9), 11, 16, 32}
    if chop <= block
]
NOT_FINITE = [float("nan"), float("inf"), -3.4e38]
"""The last is finite, and often marks missing pixels; sums of it are not."""


def test_kernels_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "python_functions=check_*", __file__]
    child = subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr


@pytest.mark.parametrize("operator", ["laconic::block_encode_out", "laconic::block_decode_out"])
def test_a_gpu_runs_the_reference(operator: str) -> None:
    assert torch._C._dispatch_has_kernel_for_dispatch_key(operator, "CUDA")


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="nothing is compiled in the interpreter")
@pytest.mark.parametrize(
    ("element", "overflow", "block", "chop"), [("fp32", None, 8, 4), ("fp16", "*i32", 8, 7), ("u8", None, 32, 32)]
)
@pytest.mark.parametrize("keep", ["square", "triangle"])
@pytest.mark.parametrize("kernel", [encode_tile, decode_tile])
def test_a_kernel_that_is_interpreted_does_not_compile(
    element: str, overflow: str | None, block: int, chop: int, keep: str, kernel: triton.JITFunction
) -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    constants = {"block": block, "chop": chop, "triangle": keep == "triangle", "whole": False, "compute": tl.float32}
    constants |= {"column_stride": 1, **bodies.choose_tile(block, 512)._asdict()}
    if overflow is None:
        constants["overflow"] = None
    types = {"images": f"*{element}", "coefficients": "*fp16" if element == "fp16" else "*fp32", "basis": "*fp64"}
    names = kernel.arg_names
    signature = {
        n: "constexpr" if n in constants else types.get(n, overflow if n == "overflow" else "i32") for n in names
    }
    source = ASTSource(kernel, signature, {(names.index(n),): value for n, value in constants.items()})
    triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": bodies.WARPS})


def by_blocks(x: Tensor, codec: BlockTransform) -> Tensor:
    """The formula, in float64: A X A^T for each block, which edges continue."""
    a = codec.analysis(codec.block)[: codec.chop]
    rows, columns = (torch.arange(-(-n // codec.block) * codec.block).clamp(max=n - 1) for n in x.shape[-2:])
    blocks = x.double()[..., rows, :][..., columns].unflatten(-1, (-1, codec.block)).unflatten(-3, (-1, codec.block))
    y = torch.einsum("ij,...ajbk,lk->...aibl", a, blocks, a).flatten(-2).flatten(-3, -2)
    if not codec.triangle:
        return y
    return gather_triangle(y, codec.chop, triangle_index(y.shape[-1] // codec.chop, codec.chop))


def from_blocks(y: Tensor, codec: BlockTransform, height: int, width: int) -> Tensor:
    s = torch.linalg.inv(codec.analysis(codec.block))[:, : codec.chop]
    y = y.double()
    if codec.triangle:
        y = scatter_triangle(y, codec.chop, triangle_index(-(-width // codec.block), codec.chop))
    blocks = y.unflatten(-1, (-1, codec.chop)).unflatten(-3, (-1, codec.chop))
    return torch.einsum("ji,...aibl,kl->...ajbk", s, blocks, s).flatten(-2).flatten(-3, -2)[..., :height, :width]


def encode(x: Tensor, codec: BlockTransform, out: Tensor | None = None) -> Tensor:
    if out is None:
        shape = coefficient_shape(x.shape, codec.block, codec.chop, codec.triangle)
        out = torch.empty(shape, dtype=coefficient_dtype(x.dtype))
    bodies.encode(x, matrix(type(codec), codec.block, "analysis", x.device), codec.chop, codec.triangle, out)
    return out


def decode(y: Tensor, codec: BlockTransform, out: Tensor) -> Tensor:
    bodies.decode(y, matrix(type(codec), codec.block, "synthesis", y.device), codec.chop, codec.triangle, out)
    return out


def assert_near(actual: Tensor, exact: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(actual.double(), exact, rtol=0, atol=tolerance * max(1.0, float(exact.abs().max())))


def strided(shape: tuple[int, ...], layout: str, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers of this shape, as views of something else. `folded` ones cannot be flattened."""
    *leading, height, width = shape
    if layout == "transposed":
        return torch.randn(*leading, width, height).to(dtype).mT
    if layout == "sliced":
        return torch.randn(*leading, 2 * height + 1, 3 * width + 2).to(dtype)[..., 1::2, 2::3]
    if layout == "folded":
        return torch.randn(*reversed(leading), height, width).to(dtype).permute(*range(len(leading))[::-1], -2, -1)
    return torch.randn(shape).to(dtype)


@pytest.mark.parametrize("codec", CODECS, ids=str)
def check_a_chop_is_wrong(codec: BlockTransform) -> None:
    x = torch.randn(codec.block - 1, codec.block)
    y = encode(x, codec)
    assert_near(y, by_blocks(x, codec))
    assert_near(decode(y, codec, torch.empty_like(x)), from_blocks(y, codec, *x.shape))


@settings(max_examples=30)
@given(
    codec=st.sampled_from(CODECS),
    keep=st.sampled_from(["square", "triangle"]),
    leading=st.sampled_from([(), (1,), (3,), (2, 3)]),
    height=st.one_of(st.just(1), st.integers(1, 40)),
    width=st.one_of(st.just(1), st.integers(1, 70)),
    layout=st.sampled_from(["contiguous", "transposed", "sliced", "folded"]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16]),
)
def check_a_shape_or_its_strides_are_misread(
    codec: BlockTransform, keep: str, leading: tuple[int, ...], height: int, width: int, layout: str, dtype: torch.dtype
) -> None:
    codec = replace(codec, keep=keep)
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5}.get(dtype, torch.finfo(dtype).eps)
    x = strided((*leading, height, width), layout, dtype)
    exact = by_blocks(x, codec)
    y = encode(x, codec, strided(tuple(exact.shape), layout, dtype))
    assert_near(y, exact, tolerance)
    image = decode(y, codec, strided(tuple(x.shape), layout, dtype))
    assert_near(image, from_blocks(y, codec, height, width), tolerance)


@pytest.mark.parametrize("codec", [Dct(7), Hadamard(3, block=4), Dct(5, block=16), Dct(6, keep="triangle")], ids=str)
def check_something_is_written_beside_the_result(codec: BlockTransform) -> None:
    x = torch.randn(13, 27)
    shape = coefficient_shape(x.shape, codec.block, codec.chop, codec.triangle)
    memory = torch.full((shape[0] * shape[1] + 200,), 7.0)
    y = encode(x, codec, memory[100:-100].view(shape))
    assert (memory[:100] == 7).all()
    assert (memory[-100:] == 7).all()
    canvas = torch.full((53, 67), 7.0)
    decode(y, codec, canvas[20:33, 20:47])
    canvas[20:33, 20:47] = 7
    assert (canvas == 7).all()


def check_an_offset_has_31_bits() -> None:
    far = torch.empty(2**31 + 64, dtype=torch.uint8).as_strided((3, 8, 8), (2**30, 8, 1))
    far.copy_(torch.arange(192).view(3, 8, 8))
    assert_near(encode(far, Dct(8)), by_blocks(far, Dct(8)))


@pytest.mark.parametrize("codec", [Hadamard(4, block=4), Dct(5), Dct(8), Dct(4, block=16), Dct(32, block=32)], ids=str)
@pytest.mark.parametrize("value", NOT_FINITE)
def check_what_is_not_finite_spreads_to_other_blocks(codec: BlockTransform, value: float) -> None:
    x = torch.randn(2 * codec.block, 3 * codec.block)
    x[0, codec.block] = value
    if abs(value) < float("inf"):
        x[: codec.block, codec.block : 2 * codec.block] = value
    y = encode(x, codec)
    assert_finite_but_in_the_middle(y, by_blocks(x, codec), codec.chop)
    pixels = decode(y, codec, torch.empty_like(x))
    assert_finite_but_in_the_middle(pixels, from_blocks(y, codec, *x.shape), codec.block)


def assert_finite_but_in_the_middle(actual: Tensor, exact: Tensor, block: int) -> None:
    middle = torch.zeros(actual.shape, dtype=torch.bool)
    middle[:block, block : 2 * block] = True
    assert not actual[middle].isfinite().all()
    assert_near(actual[~middle], exact[~middle])


def check_float16_overflows_in_silence() -> None:
    flat = torch.full((2, 8, 8), 60000.0, dtype=torch.float16)
    with pytest.raises(DataError, match="too large for float16"):
        encode(flat, Dct(4))
    y = torch.full((4, 4), 60000.0, dtype=torch.float16)
    with pytest.raises(DataError, match="too large for float16"):
        decode(y, Hadamard(4, block=4), torch.empty(4, 4, dtype=torch.float16))


def check_inf_or_a_cropped_pixel_counts_as_overflow() -> None:
    x = torch.full((32, 32), float("inf"), dtype=torch.float16)
    for block in (8, 32):
        assert not encode(x, Hadamard(4, block)).isfinite().any()
    y = torch.zeros(4, 4, dtype=torch.float16)
    y[0], y[1] = 60000, -60000
    assert decode(y, Hadamard(4, block=4), torch.empty(1, 1, dtype=torch.float16)) == 0


def check_a_uint8_image_changes() -> None:
    x = torch.randint(0, 256, (2, 19, 21), dtype=torch.uint8)
    assert torch.equal(decode(encode(x, Dct(8)), Dct(8), torch.empty_like(x)), x)


def check_uint8_wraps_or_rounds_half_up() -> None:
    y = torch.tensor([[0.5, 1.5, 2.5, 254.5, 255.5, 300.0, -1.0, float("nan")]]) * 4
    pixels = decode(y, Hadamard(1, block=4), torch.empty(1, 32, dtype=torch.uint8))
    assert pixels[0, ::4].tolist() == [0, 2, 2, 254, 255, 255, 0, 0]


def check_an_output_of_the_wrong_shape_is_overrun() -> None:
    with pytest.raises(SpecError):
        encode(torch.randn(64, 64), Dct(4), torch.empty(4, 4))
