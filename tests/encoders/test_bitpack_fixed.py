"""Planes of one width: every code comes back, none is cut in silence, and no bytes are too strange to read."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import laconic
from laconic.errors import DataError, SpecError
from laconic.ops import fixed as ops
from laconic.ops import packed_affine as _packed  # noqa: F401  # declares the operator

SHAPES = [(), (1,), (31,), (32,), (100,), (3, 8), (2, 3, 33), (5, 1), (2, 9000), (70000,)]


def codes_of(shape: tuple[int, ...], width: int, dtype: torch.dtype) -> torch.Tensor:
    least = -(1 << (width - 1)) if dtype == torch.int8 else 0
    drawn = torch.randint(0, 1 << width, shape, generator=torch.Generator().manual_seed(width))
    return (drawn + least).to(dtype)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_code_comes_back_as_another(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    for width in range(1, 9):
        codes = codes_of(shape, width, dtype)
        enc = laconic.encode(codes, f"bitpack:width={width}")
        assert torch.equal(laconic.decode(enc), codes)
        expected, restored = torch.empty_like(enc.parts["main"]), torch.empty_like(codes)
        ops.reference_encode(codes, width, expected)
        ops.reference_decode(expected, width, restored)
        assert torch.equal(enc.parts["main"], expected)
        assert torch.equal(restored, codes)


def test_the_planes_of_format_md_are_others() -> None:
    codes = codes_of((2, 45), 3, torch.int8)
    data = laconic.encode(codes, "bitpack:width=3").parts["main"].tolist()
    for row, packed in zip(codes.tolist(), data, strict=True):
        expected: list[int] = []
        for at in range(0, 45, 32):
            block = row[at : at + 32]
            for bit in range(3):
                plane = sum((code >> bit & 1) << i for i, code in enumerate(block))
                expected += plane.to_bytes(-(-len(block) // 8), "little")
        assert packed == expected


@pytest.mark.parametrize(("code", "dtype"), [(8, torch.uint8), (255, torch.uint8), (4, torch.int8), (-5, torch.int8)])
@pytest.mark.parametrize("place", [0, 100, 69999])
def test_a_code_too_large_is_cut(code: int, dtype: torch.dtype, place: int) -> None:
    codes = codes_of((70000,), 3, dtype)
    codes[place] = code
    with pytest.raises(DataError, match="at most 3 bits"):
        laconic.encode(codes, "bitpack:width=3")
    with pytest.raises(DataError, match="at most 3 bits"):
        ops.reference_encode(codes, 3, torch.empty(ops.packed_shape((70000,), 3), dtype=torch.uint8))


@given(data=st.binary(min_size=1, max_size=60), width=st.integers(1, 8), signed=st.booleans())
def test_hostile_bytes_are_no_codes(data: bytes, width: int, signed: bool) -> None:
    """Any bytes of the right size are: every bit belongs to a code, or fills up a row's last byte."""
    planes = len(data) // width
    if planes == 0:
        return
    main = torch.frombuffer(bytearray(data), dtype=torch.uint8)[: planes * width]
    for row in (8 * planes, 8 * planes - 7):
        codes, expected = (torch.empty(row, dtype=torch.int8 if signed else torch.uint8) for _ in range(2))
        torch.ops.laconic.bitpack_fixed_decode_out(main, width, codes)
        ops.reference_decode(main, width, expected)
        assert torch.equal(codes, expected)
        assert bool(ops.fits(codes, width).all())


@pytest.mark.parametrize("spec", ["affine:bits=4,group=128|bitpack:width=4", "affine:bits=3,per=row|bitpack:width=8"])
def test_fused_bytes_are_others(spec: str) -> None:
    affine, bitpack = (laconic.codec(part) for part in spec.split("|"))
    for shape in [(3, 5, 200), (2, 1000), (9,), (40, 256)]:
        x = torch.randn(shape)
        enc, first = laconic.encode(x, spec), affine.encode(x)
        assert torch.equal(enc.parts["main"], bitpack.encode(first.parts["main"]).parts["main"])
        assert torch.equal(enc.parts["0.scale"], first.parts["0.scale"])
        assert torch.equal(laconic.decode(enc), laconic.decode(first))


def test_more_bits_than_the_width_are_cut() -> None:
    with pytest.raises(DataError, match="at most 3 bits"):
        laconic.encode(torch.randn(100), "affine:bits=4|bitpack:width=3")
    assert laconic.encode(torch.tensor([0.0, 1.0]), "affine:bits=1|bitpack:width=3").parts["main"].tolist() == [2, 0, 0]


@pytest.mark.parametrize("bad", ["width=0", "width=9", "width=x"])
def test_a_width_that_no_code_has_is_taken(bad: str) -> None:
    with pytest.raises(SpecError, match="expected"):
        laconic.codec(f"bitpack:{bad}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.int32])
def test_wide_codes_are_packed_narrow(dtype: torch.dtype) -> None:
    with pytest.raises(SpecError, match="expected codes of 8 bits"):
        laconic.encode(torch.ones(4, dtype=dtype), "bitpack:width=4")


def test_samples_lie_across_bytes() -> None:
    x = torch.randn(6, 3, 5, 7)
    enc = laconic.encode(x, "affine:bits=4,group=32|bitpack:width=4")
    assert enc.parts["main"].shape == (6, 3, 5, 4)
    whole = laconic.decode(enc)
    assert torch.equal(laconic.decode(enc[2]), whole[2])
    assert torch.equal(laconic.decode(enc[1:4]), whole[1:4])
    assert torch.equal(laconic.decode(laconic.stack(list(enc))), whole)
    with pytest.raises(SpecError, match="cannot be indexed"):
        laconic.encode(torch.zeros(8, dtype=torch.uint8), "bitpack:width=8")[:4]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_modules_pack_other_planes(dtype: torch.dtype) -> None:
    for width in (1, 3, 4, 8):
        for row in (5, 8, 32, 77):
            codes = codes_of((2, 3, row), width, dtype)
            spec = f"bitpack:width={width}"
            modules = [
                module(spec, (2, 3, row), dtype=dtype) for module in (laconic.nn.Compress, laconic.nn.Decompress)
            ]
            main = laconic.encode(codes, spec).parts["main"]
            assert torch.equal(modules[0](codes), main)
            assert torch.equal(modules[1](main), codes)


def test_memory_that_the_operators_are_not_given_is_written() -> None:
    codes, data = torch.zeros(2, 40, dtype=torch.uint8), torch.zeros(2, 19, dtype=torch.uint8)
    for call in (
        lambda: torch.ops.laconic.bitpack_fixed_encode_out(codes, 4, data),
        lambda: torch.ops.laconic.bitpack_fixed_decode_out(data, 4, codes),
        lambda: torch.ops.laconic.bitpack_fixed_decode_out(data, 9, codes),
        lambda: torch.ops.laconic.affine_unpack_out(data, torch.ones(3), torch.ones(3), 40, 32, 4, torch.empty(2, 40)),
    ):
        with pytest.raises(SpecError, match="expected"):
            call()
