"""docs/format.md is enough to read what laconic writes: a decoder from the page alone gives the same bytes."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import laconic

from . import format_decoder
from .table import FLOATS, ramp, stored
from .test_golden import CASES, GOLDEN

BOUNDS = ["bound:abs=0.01", "bound:rel=1e-2,per=row", "bound:rms=0.1,per=channel,width=16", "bound:rel=1e-6,width=32"]
AFTER = [
    "",
    "|bitpack",
    "|lorenzo|bitpack",
    "|lorenzo:dims=1|bitpack",
    "|lorenzo:dims=3|bitpack",
    "|lorenzo:dims=3",
    "|huffman",
    "|lorenzo|huffman",
    "|rans",
    "|lorenzo|rans",
    "|rows|huffman",
    "|vlz",
]
LOSSLESS = [
    "bitpack",
    "lorenzo",
    "lorenzo|bitpack",
    "lorenzo:dims=3|bitpack",
    "raw",
    "huffman",
    "lorenzo|huffman",
    "rans",
    "rows",
    "rows|huffman",
    "vlz",
    "vlz:window=2,block=5",
]
FIXED = [
    "affine",
    "affine:bits=5,per=channel,symmetric=true",
    "affine:bits=3,group=32,stochastic=true,seed=3",
    "affine:bits=4,per=row|bitpack:width=4",
    "affine:bits=3,group=40,symmetric=true|bitpack:width=5",
    "affine:bits=6,per=sample|lorenzo:dims=1|huffman",
]
SHAPES = [(), (1,), (33,), (4100,), (3, 17), (66, 5), (2, 3, 7), (18, 2, 5), (2, 17, 3, 2), (0, 3), (70, 64)]


def assert_read_the_same(enc: laconic.Encoded) -> None:
    (dtype, shape), data = format_decoder.decode(enc.to_bytes())
    expected = laconic.decode(enc)
    assert dtype == str(expected.dtype).removeprefix("torch.")
    assert shape == tuple(expected.shape)
    assert data == bytes_of(expected)


def bytes_of(x: Tensor) -> bytes:
    return x.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def test_the_decoder_peeks_at_what_it_is_held_against() -> None:
    tree = ast.parse(Path(format_decoder.__file__).read_text())
    names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == {"__future__", "collections.abc", "math", "re", "struct", "zlib", "encoders"}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_page_leaves_something_out(bound: str, shape: tuple[int, ...]) -> None:
    for i, after in enumerate(AFTER):
        x = ramp(shape, torch.float64).sub(0.5).mul(40).to(FLOATS[(i + len(shape)) % 4])
        x.view(-1)[3::50] = torch.nan
        x.view(-1)[4::90] = -torch.inf
        x.view(-1)[5::77] *= 1000
        codec = laconic.codec(bound + after)
        assert_read_the_same(codec.encode(x))
        assert_read_the_same(stored(codec, x))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.float32])
@pytest.mark.parametrize("spec", LOSSLESS)
def test_codes_are_read_as_others(spec: str, dtype: torch.dtype) -> None:
    for shape in SHAPES:
        x = ramp(shape).mul(250).to(dtype) if shape else torch.tensor(7).to(dtype)
        assert_read_the_same(stored(laconic.codec(spec), x))
        assert_read_the_same(laconic.encode(x, spec))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("spec", FIXED)
def test_codes_of_fixed_size_are_read_as_others(spec: str, dtype: torch.dtype) -> None:
    for shape in SHAPES:
        assert_read_the_same(laconic.encode(ramp(shape).mul(40).to(dtype), spec))


@pytest.mark.parametrize("spec", ["bound:rel=1e-2|huffman", "bound:rel=1e-4,per=row|lorenzo|bitpack", "affine", "raw"])
def test_many_are_read_as_others(spec: str) -> None:
    tensors = [ramp(shape) for shape in [*SHAPES, *[(9, 24)] * 8]] + [torch.full((30, 3), 2.5)]
    tensors[4].view(-1)[7] = 3e30
    batch = laconic.codec(spec).encode_many(tensors)
    found = format_decoder.decode_many(batch.to_bytes())
    expected = [laconic.decode(enc) for enc in batch]
    assert [(shape, data) for (_, shape), data in found] == [(tuple(x.shape), bytes_of(x)) for x in expected]


@pytest.mark.parametrize("dtype", [*FLOATS, torch.uint8, torch.int64, torch.bool])
def test_a_constant_is_read_as_another(dtype: torch.dtype) -> None:
    for shape, value in itertools.product([(5,), (0,), (1,), (2, 3), ()], [0, 1]):
        assert_read_the_same(laconic.encode(torch.full(shape, value, dtype=dtype), "constant"))


@settings(max_examples=100)
@given(
    codes=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=40),
    step=st.floats(allow_nan=False, width=32),
    dtype=st.sampled_from(FLOATS),
)
def test_another_arithmetic_gives_other_values(codes: list[int], step: float, dtype: torch.dtype) -> None:
    """Steps and codes that no encoder would choose, too."""
    x = torch.ones(len(codes), dtype=dtype)
    enc = stored(laconic.codec("bound:abs=1e-4,width=32"), x)
    parts = dict(enc.parts) | {"main": torch.tensor(codes, dtype=torch.int32)}
    parts["0.step"] = torch.tensor(step, dtype=enc.parts["0.step"].dtype)
    for name in ("0.index", "0.values"):
        parts[name] = parts[name][:0]
    damaged = laconic.Encoded(enc.chain, enc.specs, parts)
    restored = laconic.decode(damaged)
    _, data = format_decoder.decode(damaged.to_bytes())
    found = torch.frombuffer(bytearray(data), dtype=dtype)
    assert torch.equal(found.isnan(), restored.isnan())
    assert bytes_of(found[~found.isnan()]) == bytes_of(restored[~restored.isnan()])


READ = [
    name for name, spec in CASES.items() if all(part.split(":")[0] in format_decoder.STAGES for part in spec.split("|"))
]


@pytest.mark.parametrize("name", READ)
def test_old_bytes_are_not_what_the_page_says(name: str) -> None:
    data = (GOLDEN / f"{name}.wire").read_bytes()
    assert format_decoder.decode(data)[1] == bytes_of(laconic.decode(laconic.Encoded.from_bytes(data)))
