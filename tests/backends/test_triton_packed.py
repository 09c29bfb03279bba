"""The Triton kernels of `bound|lorenzo|bitpack`: in the interpreter against the reference, and through the compiler.

Run as those of the block transform are (see `test_triton.py`), and blind to the same: wrong code from the compiler
for a GPU, races between programs, speed. `test_gpu.py` looks for these.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor

from laconic.errors import CorruptData
from laconic.ops import packed as ops
from laconic.ops.bitpack import capacity
from laconic.ops.grid import reference_grid

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402
from triton.runtime import interpreter  # noqa: E402

from laconic.backends.triton import packed as bodies  # noqa: E402  # it imports triton
from laconic.backends.triton import packed_kernels, unpacked_kernels  # noqa: E402

SHAPES = [(1,), (31,), (4097,), (5, 7), (70, 33), (2, 65, 64), (3, 1100), (1, 2, 130, 20), (1, 8200), (900, 5)]
"""Across the ends of blocks (32), of chunks and segments (4096), of slabs (64 rows), and of columns (1024)."""
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
SCOPES = {"tensor": 0, "channel": 2, "row": 1}


def test_kernels_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "python_functions=check_*", __file__]
    child = subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr


@pytest.mark.parametrize("operator", ["pack", "unpack", "restore"])
def test_a_gpu_runs_the_reference(operator: str) -> None:
    assert torch._C._dispatch_has_kernel_for_dispatch_key(f"laconic::bound_{operator}_out", "CUDA")


def compiled(kernel: triton.JITFunction, constants: dict[str, object], types: dict[str, str]) -> str:
    """The PTX for a GPU that is not there."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, "i32") for name in names}
    source = ASTSource(kernel, signature, {(names.index(name),): value for name, value in constants.items()})
    binary = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": False})
    return str(binary.asm["ptx"])


interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") == "1", reason="nothing is compiled in the interpreter"
)
POINTERS = {"planes": "*i32", "heads": "*u8", "sizes": "*i32", "filled_blocks": "*i32", "exceptions": "*i32"}
POINTERS |= {"stream": "*u8", "places": "*i64", "ends": "*i64", "corrupt": "*i32", "before": "*i32"}


@interpreted
@pytest.mark.parametrize("dims", [0, 1, 2])
@pytest.mark.parametrize(
    ("element", "bits", "one_scope"), [("fp32", 8, True), ("bf16", 16, False), ("fp64", 32, False)]
)
def test_the_compiler_contracts_or_flushes_what_a_receiver_does_not(
    element: str, bits: int, one_scope: bool, dims: int
) -> None:
    arithmetic = "*fp64" if element == "fp64" else "*fp32"
    types = POINTERS | dict.fromkeys(("inverse", "step", "bound"), arithmetic) | {"x": f"*{element}", "count": "i64"}
    types |= {"out": f"*{element}", "residuals": f"*i{bits}"}
    compute = tl.float64 if element == "fp64" else tl.float32
    constants = {"bits": bits, "top": 127.0, "dims": dims, "narrow": dims == 1, "one_scope": one_scope}
    constants["compute"] = compute
    pack = compiled(packed_kernels.pack_chunk, constants, types)
    rounding = {name: constants[name] for name in ("top", "one_scope", "compute")}
    listing = compiled(packed_kernels.list_exceptions, rounding, types)
    tile = {"bits": bits, "dims": dims, "compute": compute, "tall": 64, "wide": 64, "segment": 1024}
    restore = compiled(unpacked_kernels.restore, tile if dims == 2 else tile | {"before": None}, types)
    for ptx in (pack, listing, restore):
        assert "mul.rn.f" in ptx
        assert "fma." not in ptx
        assert ".ftz" not in ptx
    if element == "bf16":
        assert "cvt.rn.bf16" in pack
        assert "cvt.rn.bf16" in restore


@interpreted
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_a_kernel_that_is_interpreted_does_not_compile(bits: int) -> None:
    types = POINTERS | {"planes": "*u8", "count": "i64"}
    compiled(packed_kernels.place_chunk, {"bits": bits, "piece": bodies.PIECE}, types)
    types = POINTERS | {"sizes": "*i64", "residuals": f"*i{bits}"}
    compiled(unpacked_kernels.unpack_chunk, {"bits": bits}, types)


def grid_of(x: Tensor, per: str, rel: float) -> tuple[Tensor, Tensor, int]:
    scopes = math.prod(x.shape[: -SCOPES[per]]) if SCOPES[per] else 1
    return reference_grid(x, scopes, 1, rel)


def assert_same(x: Tensor, step: Tensor, bound: Tensor, width: int, dims: int) -> Tensor:
    """The stream and the places are the reference's, and so is what is read from it. Gives the stream."""
    room, expected = (torch.zeros(capacity(x.numel(), width // 8), dtype=torch.uint8) for _ in range(2))
    length, places = bodies.pack(x, step, bound, width, dims, room)
    expected_length, expected_places = ops.reference_pack(x, step, bound, width, dims, expected)
    assert length == expected_length
    assert torch.equal(room[:length], expected[:length])
    assert not room[length:].any()
    assert torch.equal(places, expected_places)
    back, expected_back = torch.empty_like(x), torch.empty_like(x)
    bodies.unpack(room[:length], step, width, dims, back)
    ops.reference_unpack(room[:length], step, width, dims, expected_back)
    assert torch.equal(back, expected_back)
    if dims:
        residuals = torch.empty(x.shape, dtype=ops.CODES[width])
        ops.reference_predict(x, step, bound, dims, residuals)
        bodies.restore_residuals(residuals, step, dims, back.zero_())
        assert torch.equal(back, expected_back)
    return room[:length]


def wave(shape: tuple[int, ...], dtype: torch.dtype = torch.float32, noise: float = 0.02) -> Tensor:
    """Smooth from place to place, and different from row to row; a part of it flat."""
    generator = torch.Generator().manual_seed(math.prod(shape))
    values = (torch.arange(math.prod(shape), dtype=torch.float64) * 0.013).sin()
    values += noise * torch.randn(len(values), generator=generator, dtype=torch.float64)
    values[len(values) // 2 : len(values) // 2 + 200] = 0.25
    return values.reshape(shape).to(dtype)


@pytest.fixture(autouse=True)
def _only_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference must not stand in for a kernel unseen."""
    refused = mock.Mock(side_effect=AssertionError("the kernels did not take this"))
    monkeypatch.setattr(bodies, "reference_pack", refused)
    monkeypatch.setattr(bodies, "reference_unpack", refused)
    monkeypatch.setattr(bodies, "reference_restore", refused)


@pytest.fixture(autouse=True)
def _round_to_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a GPU does. The interpreter cuts off."""
    convert = interpreter._convert_float

    def rounded(values: np.ndarray, source: tl.dtype, target: tl.dtype, mode: object) -> np.ndarray:
        if (source, target) != (tl.float32, tl.bfloat16):
            return convert(values, source, target, mode)
        narrow = torch.from_numpy(np.ascontiguousarray(values)).bfloat16()
        return narrow.view(torch.int16).numpy().view(np.uint16).reshape(values.shape)

    monkeypatch.setattr(interpreter, "_convert_float", rounded)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dims", [0, 1, 2])
def check_a_neighbour_is_not_where_it_should_be(shape: tuple[int, ...], dims: int) -> None:
    x = wave(shape)
    assert_same(x, *grid_of(x, "tensor", 1e-2), min(dims, x.dim()))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rel", "width"), [(1e-2, 8), (1e-4, 16), (1e-6, 32)])
@pytest.mark.parametrize("dims", [0, 1, 2])
def check_a_width_or_a_dtype_writes_other_bytes(dtype: torch.dtype, rel: float, width: int, dims: int) -> None:
    x = wave((70, 75), dtype)
    step, bound, _ = grid_of(x, "tensor", rel)
    assert_same(x, step, bound, width, dims)


@pytest.mark.parametrize("per", ["channel", "row"])
@pytest.mark.parametrize("dims", [0, 1, 2])
@pytest.mark.parametrize("shape", [(70, 65), (3, 70, 33), (2, 2, 9, 5), (4, 1100)])
def check_a_neighbour_has_another_scope(per: str, dims: int, shape: tuple[int, ...]) -> None:
    x = wave(shape) * torch.arange(1, shape[-2] + 1)[:, None]
    assert_same(x, *grid_of(x, per, 1e-2), dims)


@pytest.mark.parametrize("dims", [0, 1, 2])
def check_an_exception_is_lost(dims: int) -> None:
    x = wave((3, 40, 50))
    x.view(-1)[::97] = torch.tensor(float("nan"))
    x.view(-1)[5::1000] = float("inf")
    x.view(-1)[4095:4098] = torch.tensor([-1e38, float("-inf"), 3e38])
    x.view(-1)[-1] = 1e-44
    step, bound = torch.tensor([0.01]), torch.tensor([0.005])
    assert_same(x, step, bound, 8, dims)
    assert_same(x, step, bound, 32, dims)
    assert_same(x, step * 1e-42, bound * 1e-42, 32, dims)


def check_a_half_is_rounded_away_from_even() -> None:
    codes = torch.cat([torch.arange(-300, 300) / 2, 2.0**23 + torch.arange(-9, 9) / 2, 2.0**24 + torch.arange(-3, 3)])
    for width in (8, 32):
        assert_same(codes, torch.tensor([1.0]), torch.tensor([0.75]), width, 0)
    wide = torch.cat([2.0**31 - torch.arange(0, 5) / 2, 0.5 - 2.0**31 + torch.arange(0, 5) / 2]).double()
    one = torch.tensor([1.0], dtype=torch.float64)
    for dims in (0, 1):
        assert_same(wide, one, one * 0.75, 32, dims)


@pytest.mark.parametrize("dims", [0, 1, 2])
def check_a_difference_does_not_wrap(dims: int) -> None:
    x = (torch.arange(70 * 66) % 2 * 254.0 - 127).view(70, 66)
    assert_same(x, torch.tensor([1.0]), torch.tensor([0.5]), 8, dims)


@pytest.mark.parametrize(("width", "dims"), [(8, 0), (8, 2), (16, 1), (32, 2)])
def check_noise_is_not_stored_as_it_is(width: int, dims: int) -> None:
    generator = torch.Generator().manual_seed(1)
    x = (torch.rand(66, 70, generator=generator) * 2 - 1) * 2.0 ** min(width - 1, 24)
    stream = assert_same(x, torch.tensor([1.0]), torch.tensor([0.6]), width, dims)
    assert stream[0] == (width == 32)  # of which float32 has too few for noise
    double = (torch.rand(66, 70, generator=generator, dtype=torch.float64) * 2 - 1) * 2.0 ** (width - 1)
    one = torch.tensor([1.0], dtype=torch.float64)
    assert assert_same(double, one, one * 0.6, width, dims)[0] == 0


def check_room_that_is_too_small_or_not_in_order_is_written_to() -> None:
    x = wave((70, 75))
    with pytest.raises(AssertionError, match="did not take"):
        bodies.pack(x, *grid_of(x, "tensor", 1e-2), 2, torch.empty(5250, dtype=torch.uint8))
    with pytest.raises(AssertionError, match="did not take"):
        bodies.unpack(torch.empty(9, dtype=torch.uint8), torch.ones(1), 8, 2, x.mT)


@pytest.mark.parametrize(("rel", "width"), [(1e-2, 8), (1e-5, 32)])
def check_corrupt_bytes_are_read(rel: float, width: int) -> None:
    x = wave((50, 90))
    step, bound, _ = grid_of(x, "tensor", rel)
    good = assert_same(x, step, bound, width, 2)
    memory = torch.full((len(good) + 200,), 255, dtype=torch.uint8)
    places = [*range(12), *range(12, 60, 8), *range(60, len(good), len(good) // 10)]
    streams = [good[:length] for length in places[1::2]] + [torch.cat([good, good[:1]])]
    for place in places:
        streams.append(good.clone())
        streams[-1][place] ^= 1 << place % 8
    for stream in streams:
        data = memory[100 : 100 + len(stream)]
        data.copy_(stream)
        assert outcome(bodies.unpack, data, step, width, x) == outcome(ops.reference_unpack, data, step, width, x)


def outcome(unpack: object, data: Tensor, step: Tensor, width: int, x: Tensor) -> list[float] | str:
    out = torch.empty_like(x)
    try:
        unpack(data, step, width, 2, out)
    except CorruptData:
        return "corrupt"
    return out.view(-1).tolist()
