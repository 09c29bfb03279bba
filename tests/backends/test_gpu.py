"""On a real GPU: what an interpreter cannot see. Skipped where there is none, as on most machines that run tests."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import laconic
from laconic import TensorSpec

from ..table import CHAINS, FIXED_SIZE, ramp

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")

BLOCK_CODECS = [
    "dct:chop=4",
    "dct:chop=7",
    "dct:chop=3,block=4",
    "dct:chop=11,block=16",
    "dct:chop=32,block=32",
    "zfp:chop=2",
    "hadamard:chop=5",
    "dct:chop=4,keep=triangle",
]
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.uint8: 1e-5}


def assert_close(found: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> None:
    assert found.is_cuda
    scale = max(1.0, float(expected.double().abs().max()))
    torch.testing.assert_close(found.cpu().double(), expected.double(), rtol=0, atol=TOLERANCE[dtype] * scale)


@settings(max_examples=30, deadline=None)
@given(
    spec=st.sampled_from(BLOCK_CODECS),
    leading=st.sampled_from([(), (1,), (5,), (2, 3)]),
    height=st.integers(1, 150),
    width=st.integers(1, 300),
    dtype=st.sampled_from(list(TOLERANCE)),
    transposed=st.booleans(),
)
def test_a_gpu_gives_other_values_than_a_cpu(
    spec: str, leading: tuple[int, ...], height: int, width: int, dtype: torch.dtype, transposed: bool
) -> None:
    x = ramp((*leading, height, width), dtype)
    x = x.mT if transposed else x
    enc, there = laconic.encode(x, spec), laconic.encode(x.cuda(), spec)
    assert_close(there.parts["main"], enc.parts["main"], dtype)
    back = laconic.decode(there)
    expected = laconic.decode(there.to("cpu"))
    assert (back.cpu().int() - expected.int()).abs().max() <= 1 if dtype == torch.uint8 else True
    if dtype != torch.uint8:
        assert_close(back, expected, dtype)


@pytest.mark.parametrize("spec", CHAINS)
def test_a_chain_leaves_the_gpu_on_its_way(spec: str) -> None:
    codec, x = laconic.codec(spec), ramp((2, 3, 24, 40)).cuda()
    enc = codec.encode(x)
    assert all(part.is_cuda for part in enc.parts.values())
    room = codec.encode(x, out=codec.empty(TensorSpec.of(x), "cuda"))
    assert all(torch.equal(room.parts[name], part) for name, part in enc.parts.items())
    y = torch.empty_like(x)
    assert torch.equal(laconic.decode(enc, out=y), laconic.decode(enc))
    assert_close(laconic.decode(enc), laconic.decode(enc.to("cpu")), torch.float32)


@pytest.mark.parametrize("spec", FIXED_SIZE)
def test_modules_stay_on_the_cpu(spec: str) -> None:
    shape = (2, 3, 32, 32)
    x = ramp(shape).cuda()
    compress, decompress = (kind(spec, shape).cuda() for kind in (laconic.nn.Compress, laconic.nn.Decompress))
    parts = compress(x)
    back = decompress(*(parts if isinstance(parts, tuple) else (parts,)))
    assert (back - laconic.codec(spec).roundtrip(x)).abs().max() < 2e-2


def test_a_file_or_a_buffer_loses_the_gpu(tmp_path: object) -> None:
    enc = laconic.encode(ramp((2, 3, 24, 40)).cuda(), "dct:chop=4|affine:per=channel")
    laconic.save(f"{tmp_path}/x", enc)
    loaded = laconic.load(f"{tmp_path}/x", device="cuda")
    assert torch.equal(laconic.decode(loaded), laconic.decode(enc))
    wired = laconic.Encoded.from_bytes(enc.to_bytes()).pin_memory().to("cuda", non_blocking=True)
    assert torch.equal(laconic.decode(wired), laconic.decode(enc))


def test_a_large_tensor_ends_where_a_grid_does() -> None:
    x = torch.rand(70_000, 16, 16, device="cuda")
    enc = laconic.encode(x, "dct:chop=8")
    assert (laconic.decode(enc) - x).abs().max() < 1e-5


def test_float16_overflows_in_silence() -> None:
    with pytest.raises(laconic.LaconicError, match="float16"):
        laconic.encode(torch.full((64, 64), 60000.0, dtype=torch.float16, device="cuda"), "dct:chop=4")


def test_gradients_stop_on_the_gpu() -> None:
    x = ramp((2, 13, 21), torch.float32)
    there = x.cuda().requires_grad_()
    here = x.clone().requires_grad_()
    for leaf in (there, here):
        laconic.codec("dct:chop=3").roundtrip(leaf).square().sum().backward()
    assert there.grad is not None
    assert here.grad is not None
    assert_close(there.grad, here.grad, torch.float32)


@pytest.mark.parametrize("spec", ["dct:chop=4", "dct:chop=4,keep=triangle"])
def test_a_cuda_graph_captures_nothing(spec: str) -> None:
    codec, x = laconic.codec(spec), torch.rand(8, 64, 64, device="cuda")
    enc, y = codec.empty(TensorSpec.of(x), "cuda"), torch.empty_like(x)

    def roundtrip() -> None:
        codec.encode(x, out=enc)
        laconic.decode(enc, out=y)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        roundtrip()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        roundtrip()
    x.copy_(torch.rand(8, 64, 64))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.allclose(y, codec.roundtrip(x), atol=1e-6)


def test_a_compiler_cannot_take_a_codec_on_the_gpu() -> None:
    codec, x = laconic.codec("dct:chop=4"), torch.rand(4, 3, 64, 64, device="cuda")
    compiled = torch.compile(lambda x: codec.roundtrip(x * 2) + 1, fullgraph=True)
    torch.testing.assert_close(compiled(x), codec.roundtrip(x * 2) + 1)
