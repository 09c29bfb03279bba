"""Images are uint8, weights bfloat16, and a flat float16 block overflows: none may go wrong quietly."""

from __future__ import annotations

import pytest
import torch

import laconic
from laconic.backends import native
from laconic.errors import DataError

from ..table import FLOATS, ramp


@pytest.mark.parametrize("shape", [(3, 64, 64), (3, 13, 257), (7, 1, 5)])
@pytest.mark.parametrize("keep", ["square", "triangle"])
def test_uint8_is_rounded_down_or_wrapped(shape: tuple[int, ...], keep: str) -> None:
    x = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    codec = laconic.codec(f"dct:chop=3,keep={keep}")
    enc = codec.encode(x)
    assert enc.parts["main"].dtype == torch.float32
    exact = codec.roundtrip(x.double()).round().clamp(0, 255)
    restored = laconic.decode(enc)
    assert restored.dtype == torch.uint8
    assert (restored.double() - exact).abs().max() <= 1  # a tie may fall either way
    assert (restored.double() != exact).float().mean() < 1e-3


def test_uint8_is_not_lossless_at_full_chop() -> None:
    x = torch.randint(0, 256, (3, 50, 70), dtype=torch.uint8)
    assert torch.equal(laconic.codec("dct:chop=8").roundtrip(x), x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_coefficients_change_dtype(dtype: torch.dtype) -> None:
    assert laconic.encode(ramp((3, 16, 16), dtype), "dct:chop=4").parts["main"].dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_arithmetic_happens_in_half_precision(dtype: torch.dtype) -> None:
    x = ramp((4, 64, 64), dtype)
    exact = laconic.encode(x.double(), "dct:chop=8").parts["main"]
    found = laconic.encode(x, "dct:chop=8").parts["main"]
    assert torch.allclose(found.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-6)


@pytest.mark.parametrize("spec", ["dct:chop=4", "dct:chop=4,keep=triangle", "hadamard:chop=2"])
def test_float16_overflow_becomes_inf(spec: str) -> None:
    with pytest.raises(DataError, match="float16"):
        laconic.encode(torch.full((8, 8), 60000.0, dtype=torch.float16), spec)
    with pytest.raises(DataError, match="float16"):
        laconic.encode(torch.full((8, 8), 60000.0), f"{spec}|cast:dtype=float16")


def test_a_value_that_rounds_up_becomes_inf_on_the_way_back() -> None:
    with pytest.raises(DataError, match="becomes Inf"):
        laconic.encode(torch.tensor([65504.0], dtype=torch.float16), "cast:dtype=bfloat16")
    with pytest.raises(DataError, match="becomes Inf"):
        laconic.encode(torch.tensor([1e300], dtype=torch.float64), "cast:dtype=float32")
    inf = torch.tensor([torch.inf, -torch.inf, 1.0])
    assert torch.equal(laconic.codec("cast:dtype=float16").roundtrip(inf), inf)


def test_inf_that_was_there_is_called_an_overflow() -> None:
    x = torch.ones(16, 16, dtype=torch.float16)
    x[0, 0] = torch.inf
    assert not laconic.encode(x, "dct:chop=4").parts["main"].isfinite().all()


@pytest.mark.skipif(not native.available(), reason="a product over a span of blocks spreads 0 * NaN within it")
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_one_bad_pixel_spoils_other_blocks(value: float) -> None:
    x = torch.rand(2, 24, 40)
    clean = laconic.codec("dct:chop=4").roundtrip(x)
    x[1, 9, 17] = value
    restored = laconic.codec("dct:chop=4").roundtrip(x)
    spoiled = torch.zeros_like(x, dtype=torch.bool)
    spoiled[1, 8:16, 16:24] = True
    assert torch.equal(restored[~spoiled], clean[~spoiled])
    assert not restored[spoiled].isfinite().any()


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64])
def test_other_dtypes_are_converted_quietly(dtype: torch.dtype) -> None:
    with pytest.raises(laconic.SpecError, match="expected float32"):
        laconic.encode(torch.ones(8, 8, dtype=dtype), "dct:chop=4")
