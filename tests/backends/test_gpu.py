"""On a real GPU: what an interpreter cannot see. Skipped where there is none, as on most machines that run tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import laconic
from laconic import TensorSpec
from laconic.encoders.memory import as_bytes
from laconic.ops import packed as _packed  # noqa: F401  # declares the operators
from laconic.ops.bitpack import capacity

from ..table import CHAINS, PORTABLE, ramp

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


@pytest.mark.parametrize("spec", PORTABLE)
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


PACKED = [
    "bound:rel=1e-2|bitpack",
    "bound:rel=1e-2|lorenzo|bitpack",
    "bound:rel=1e-4|lorenzo:dims=1|bitpack",
    "bound:abs=1e-6|lorenzo|bitpack",
    "bound:rms=1e-2,per=row|lorenzo|bitpack",
    "bound:rel=1e-3,per=channel|lorenzo:dims=1|bitpack",
    "bound:rel=1e-2,per=row|bitpack",
]
NOT_FUSED = [
    "bound:rel=1e-2",
    "bound:rms=1e-3,per=row|lorenzo",
    "bound:rel=1e-2|lorenzo|huffman",
    "bound:rel=1e-2|lorenzo|rans",
    "bound:rel=1e-2|lorenzo:dims=3|bitpack",
    "bitpack",
]
EDGES = [(1,), (4097,), (2, 65, 64), (3, 70, 33), (2, 3, 130, 1100), (900, 5), (1, 8200), (300_001,)]
"""Across the ends of blocks, chunks, slabs of 64 rows, and of what one program sums over."""


def wave(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Smooth with a little noise; a part of it flat."""
    count = torch.Size(shape).numel()
    values = (torch.arange(count) * 0.013).sin() + 0.02 * torch.randn(count, generator=torch.Generator().manual_seed(1))
    values[count // 3 : count // 2] = 0.25
    return values.reshape(shape).to(dtype)


def assert_same_bytes(x: torch.Tensor, spec: str) -> None:
    """What a GPU writes and reads is what a CPU does."""
    enc, there = laconic.encode(x, spec), laconic.encode(x.cuda(), spec)
    assert all(part.is_cuda for part in there.parts.values())
    assert there.specs == enc.specs
    for name, part in enc.parts.items():
        assert torch.equal(as_bytes(there.parts[name]).cpu(), as_bytes(part)), (spec, name)
    assert torch.equal(as_bytes(laconic.decode(there)).cpu(), as_bytes(laconic.decode(enc)))


@pytest.mark.parametrize("spec", PACKED + NOT_FUSED)
def test_a_gpu_writes_other_bytes_than_a_cpu(spec: str) -> None:
    for shape in EDGES:
        assert_same_bytes(wave(shape), spec)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_gpu_rounds_unlike_a_cpu(dtype: torch.dtype) -> None:
    for spec in ("bound:rel=1e-2|lorenzo|bitpack", "bound:rel=1e-4|bitpack", "bound:rel=1e-3,per=row|lorenzo|bitpack"):
        assert_same_bytes(wave((3, 70, 330), dtype), spec)


@pytest.mark.parametrize("spec", ["bound:abs=1e-2,width=8|lorenzo|bitpack", "bound:abs=1e-2|lorenzo:dims=1|bitpack"])
def test_exceptions_come_in_another_order_on_a_gpu(spec: str) -> None:
    x = wave((7, 130, 300))
    flat = x.view(-1)
    flat[::997], flat[5::3001], flat[4095:4098], flat[-1] = float("nan"), float("inf"), -1e38, 1e-44
    flat[1000:9000:2] = 1e30
    assert_same_bytes(x, spec)


@pytest.mark.parametrize("width", [8, 16, 32])
def test_noise_is_not_stored_as_it_is_on_a_gpu(width: int) -> None:
    noise = torch.rand(300, 500, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 2 - 1
    assert_same_bytes(noise * 2.0 ** (width - 1), f"bound:abs=0.6,width={width}|lorenzo|bitpack")


def test_a_gpu_reads_corrupt_bytes() -> None:
    x = wave((70, 3000)).cuda()
    enc = laconic.encode(x, "bound:rel=1e-2|lorenzo|bitpack")
    good = enc.parts["main"].clone()
    for place in [*range(0, 300, 7), *range(300, len(good), len(good) // 50)]:
        enc.parts["main"].copy_(good)
        enc.parts["main"][place] ^= 1 << place % 8
        here = enc.to("cpu")
        try:
            expected = laconic.decode(here)
        except laconic.LaconicError:
            with pytest.raises(laconic.LaconicError):
                laconic.decode(enc)
        else:
            assert torch.equal(laconic.decode(enc).cpu(), expected)
    torch.cuda.synchronize()


def test_an_offset_on_a_gpu_has_31_bits() -> None:
    if torch.cuda.mem_get_info()[0] < 32e9:
        pytest.skip("this needs 32 GB of memory")
    x = torch.zeros(2**31 + 5000, dtype=torch.bfloat16, device="cuda")
    x[-4900:] = torch.arange(4900) % 100
    x[2**31 + 7] = torch.inf
    y, out = torch.empty_like(x), torch.empty(capacity(x.numel(), 1), dtype=torch.uint8, device="cuda")
    step, bound = torch.ones(1, device="cuda"), torch.full((1,), 0.5, device="cuda")
    for dims in (0, 1):
        length, places = torch.ops.laconic.bound_pack_out.default(x, step, bound, 8, dims, out)
        assert places.tolist() == [2**31 + 7]
        torch.ops.laconic.bound_unpack_out.default(out[:length].clone(), step, 8, dims, y)
        y[places] = torch.inf
        assert torch.equal(x, y)


def seconds(run: Callable[[], object]) -> float:
    """The least of many, after a few to warm up, with what the host does before and after."""
    times = []
    for _ in range(25):
        torch.cuda.synchronize()
        start = perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(perf_counter() - start)
    return min(times[5:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_large_tensor_is_packed_otherwise_or_slowly(dtype: torch.dtype, capsys: pytest.CaptureFixture[str]) -> None:
    shape = (256 if dtype == torch.float32 else 512, 3, 256, 256)
    x = wave(shape, dtype)
    for spec in PACKED[:3]:
        assert_same_bytes(x, spec)
    x, y = x.cuda(), torch.empty(shape, dtype=dtype).cuda()
    out = torch.empty(capacity(x.numel(), 4), dtype=torch.uint8).cuda()
    lines = [f"copy_ {x.nbytes / seconds(lambda: y.copy_(x)) / 1e9:.0f} GB/s"]
    step, bound, width = torch.ops.laconic.bound_grid.default(x, 1, 1, 1e-2)
    for dims in (0, 1, 2):
        pack = partial(torch.ops.laconic.bound_pack_out.default, x, step, bound, width, dims, out)
        data = out[: pack()[0]].clone()
        unpack = partial(torch.ops.laconic.bound_unpack_out.default, data, step, width, dims, y)
        ratio, gigabytes = x.nbytes / data.nbytes, x.nbytes / 1e9
        speeds = f"pack {gigabytes / seconds(pack):.0f}, unpack {gigabytes / seconds(unpack):.0f} GB/s"
        lines.append(f"dims={dims}, codes of {width} bits: {speeds}, ratio {ratio:.1f}")
    with capsys.disabled():
        print(f"\n{torch.cuda.get_device_name()}, {x.nbytes / 1e6:.0f} MB of {dtype}: " + "; ".join(lines))
