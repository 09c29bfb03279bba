"""The bytes of `bound`, `lorenzo` and `bitpack`, whichever body, instruction set and number of threads made them."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import laconic
from laconic import registry
from laconic.backends import native
from laconic.encoded import Encoded
from laconic.ops import bitpack, bound, grid, lorenzo, packed  # noqa: F401  # declare the operators

from ..table import FLOATS
from .test_native import needs_native, run_python

ops = torch.ops.laconic
CODES = [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32]
SIGNED = [dtype for dtype in CODES if dtype.is_signed]

# At and beside the ends of blocks, chunks, segments and slabs; some long enough for several threads.
LONG = [(4095,), (4096,), (4097,), (70_001,), (3, 8193), (1, 5000), (5000, 1)]
FLAT = [(63, 65), (64, 33), (65, 31), (130, 601), (2, 129, 301)]
DEEP = [(17, 9, 11), (16, 1, 33), (33, 21, 113), (2, 18, 5, 7), (2, 17, 64, 40)]
SHAPES = [*LONG, *FLAT, *DEEP]

DIGESTS = """
    import hashlib, math, torch, laconic
    from laconic import registry
    from laconic.backends import native
    from laconic.run import Run
    torch.set_num_threads(THREADS)
    if not FUSED:
        registry.FUSIONS.clear()
    digest = hashlib.sha256()
    random = torch.Generator().manual_seed(7)
    afters = ["", "|bitpack", "|lorenzo:dims=1|bitpack", "|lorenzo|bitpack", "|lorenzo:dims=3|bitpack", "|lorenzo"]
    bounds = ["rel=1e-2", "abs=1e-3,per=row", "rms=1e-2,per=channel", "rel=1e-5,width=32", "rel=1e-4,width=8"]
    for s, shape in enumerate(SHAPES):
        smooth = torch.arange(math.prod(shape), dtype=torch.float64).mul(0.01).sin().reshape(shape)
        for i, after in enumerate(after for after in afters for _ in range(2)):
            limit = bounds[(s + i) % 5]
            dtype = [torch.float32, torch.float64, torch.float16, torch.bfloat16][(s + i // 2) % 4]
            x = (smooth + 0.01 * torch.randn(shape, generator=random, dtype=torch.float64)).to(dtype)
            x.view(-1)[7::1237] = torch.nan
            codec = laconic.codec(f"bound:{limit}{after}")
            enc = Run(x).over(codec.links).encoded(codec.links)
            restored = laconic.decode(enc)
            for tensor in (*enc.parts.values(), restored):
                digest.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
            digest.update(codec.encode(x).to_bytes())
    print(native.core().isa() if native.core() else "python", digest.hexdigest())
"""


def digest(threads: int = 1, fused: bool = True, **env: str) -> tuple[str, str]:
    """Of what many chains write and read back, in a process of its own."""
    code = DIGESTS.replace("THREADS", str(threads)).replace("FUSED", str(fused)).replace("SHAPES", repr(SHAPES))
    isa, found = run_python(code, **env).split()
    return isa, found


@pytest.fixture(scope="module")
def expected() -> str:
    return digest(LACONIC_NATIVE="0")[1]


@needs_native
@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_an_instruction_set_writes_other_bytes(isa: str, expected: str) -> None:
    assert digest(LACONIC_ISA=isa)[1] == expected


@needs_native
@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_the_bytes(threads: int, expected: str) -> None:
    assert digest(threads)[1] == expected


@needs_native
def test_stages_at_once_write_other_bytes_than_one_by_one(expected: str) -> None:
    assert digest(2, fused=False)[1] == expected


def some_codes(shape: tuple[int, ...], dtype: torch.dtype, spread: int) -> Tensor:
    """Mostly small, and the extremes."""
    random = torch.Generator().manual_seed(spread)
    codes = (torch.randn(shape, generator=random) * 2**spread).clamp(-(2.0**31), 2.0**31).to(torch.int64)
    info = torch.iinfo(dtype)
    codes.view(-1)[::61] = info.min
    codes.view(-1)[1::67] = info.max
    codes.view(-1)[: codes.numel() // 3] = 0
    return codes.to(dtype)


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("shape", SHAPES)
def test_codes_come_back_as_others(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Packed, alone and predicted: both bodies write the same, and read what the other wrote."""
    for spread in (0, 2, 7, 20):
        codes = some_codes(shape, dtype, spread)
        streams = []
        for encode in (ops.bitpack_encode_out, bitpack.reference_encode):
            room = torch.full((bitpack.capacity(codes.numel(), codes.element_size()),), 99, dtype=torch.uint8)
            streams.append(room[: encode(codes, room)])
        assert torch.equal(*streams)
        assert len(streams[0]) <= 1 + codes.nbytes
        for decode in (ops.bitpack_decode_out, bitpack.reference_decode):
            restored = torch.full_like(codes.to(torch.int64), 77).to(dtype)
            decode(streams[0].clone(), restored)
            assert torch.equal(restored.view(torch.uint8), codes.view(torch.uint8))


@pytest.mark.parametrize("dtype", [*SIGNED, torch.int64])
@pytest.mark.parametrize("shape", SHAPES)
def test_differences_sum_up_to_others(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    for dims in range(1, min(3, len(shape)) + 1):
        codes = some_codes(shape, dtype, 20)
        residuals, restored = torch.empty_like(codes), torch.empty_like(codes)
        lorenzo.reference_encode(codes, dims, residuals)
        assert torch.equal(ops.lorenzo_encode(codes, dims), residuals)
        lorenzo.reference_decode(residuals, dims, restored)
        assert torch.equal(restored, codes)
        assert torch.equal(ops.lorenzo_decode(residuals, dims), codes)


FLOAT = st.one_of(
    st.floats(width=32), st.integers(-400, 400).map(lambda k: k * 0.05), st.sampled_from([1e-45, 3.4e38, -65504.0])
)


@settings(max_examples=150)
@pytest.mark.parametrize("dtype", FLOATS)
@given(
    values=st.lists(FLOAT, min_size=1, max_size=70),
    rows=st.integers(1, 3),
    kind=st.integers(0, 2),
    value=st.sampled_from([0.1, 1e-3, 1e-44, 1e30, 5e-324, 1e308]),
    width=st.sampled_from(SIGNED),
)
def test_bodies_quantise_differently(
    dtype: torch.dtype, values: list[float], rows: int, kind: int, value: float, width: torch.dtype
) -> None:
    x = torch.tensor(values, dtype=torch.float64).to(dtype).repeat(rows, 1)
    x[-1] = -x[-1] / 3
    step, limit, auto = ops.bound_grid(x, rows, kind, value)
    expected = grid.reference_grid(x, rows, kind, value)
    assert torch.equal(step, expected[0])
    assert torch.equal(limit, expected[1])
    assert auto == expected[2]
    codes, reference = torch.empty(x.shape, dtype=width), torch.empty(x.shape, dtype=width)
    places = ops.bound_encode_out(x, step, limit, codes)
    assert torch.equal(places, bound.reference_encode(x, step, limit, reference))
    assert torch.equal(codes, reference)
    y, reference_y = torch.empty_like(x), torch.empty_like(x)
    ops.bound_decode_out(codes, step, y)
    bound.reference_decode(codes, step, reference_y)
    assert torch.equal(y.view(torch.uint8), reference_y.view(torch.uint8))


VIEWS = [
    lambda x: x.transpose(-1, -2),
    lambda x: x[..., ::2],
    lambda x: x[:, 1:, 3:],
    lambda x: x[:1].expand(4, -1, -1),
    lambda x: x.permute(1, 2, 0),
    lambda x: (
        torch.frombuffer(bytearray(x.nbytes + 8), dtype=x.dtype, offset=1, count=x.numel()).view(x.shape).copy_(x)
    ),
]


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_read_in_memorys_order(view: object) -> None:
    x = view(torch.rand(5, 67, 70, generator=torch.Generator().manual_seed(2)))  # type: ignore[operator]
    for limit, after in itertools.product(
        ["bound:rel=1e-2", "bound:rel=1e-3,per=row", "bound:abs=0.01,per=channel"],
        ["", "|bitpack", "|lorenzo|bitpack", "|lorenzo:dims=3", "|zstd", "|lz4"],
    ):
        codec = laconic.codec(limit + after)
        assert codec.encode(x).to_bytes() == codec.encode(x.clone(memory_format=torch.contiguous_format)).to_bytes()
        into = view(torch.zeros(5, 67, 70))  # type: ignore[operator]
        if 0 not in into.stride():
            assert laconic.decode(codec.encode(x), out=into) is into
            assert torch.equal(into, laconic.decode(codec.encode(x)))


def test_a_part_at_an_odd_address_crashes_the_kernels() -> None:
    """As from a buffer that somebody else filled."""
    x = torch.rand(64, 100)
    for spec in ("bound:rel=1e-3", "bound:rel=1e-3,per=row|lorenzo|bitpack", "bound:rel=1e-2|bitpack"):
        enc = laconic.encode(x, spec)
        odd = {}
        for name, part in enc.parts.items():
            room = torch.frombuffer(bytearray(part.nbytes + 9), dtype=torch.uint8)[1 : 1 + part.nbytes]
            at_odd = torch.frombuffer(room.numpy(), dtype=part.dtype) if part.numel() else part  # type: ignore[arg-type]
            odd[name] = at_odd.reshape(part.shape).copy_(part)
        assert torch.equal(laconic.decode(Encoded(enc.chain, enc.specs, odd)), laconic.decode(enc))


@needs_native
def test_fork_after_use_hangs_the_child() -> None:
    out = run_python("""
        import os, signal, torch, laconic
        codec, x = laconic.codec("bound:rel=1e-3|lorenzo|bitpack"), torch.rand(64, 256, 256)
        before = codec.encode(x).to_bytes()
        child = os.fork()
        signal.alarm(30)
        if child == 0:
            assert codec.encode(x).to_bytes() == before
            laconic.decode(codec.encode(x))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print("both")
    """)
    assert out.strip() == "both"


def test_nothing_is_fused() -> None:
    """Or what is compared here is one way with itself."""
    assert registry.find_fusion(("bound", "bitpack")) is not None
    assert registry.find_fusion(("bound", "lorenzo", "bitpack")) is not None
    assert native.available() == (native.core() is not None)
