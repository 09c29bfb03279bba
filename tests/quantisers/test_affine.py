"""A fixed grid: no bias, no step lost at the ends, nothing that is not finite."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import laconic
from laconic.errors import DataError

from ..table import FLOATS, ramp


@given(
    values=st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=1, max_size=30),
    bits=st.integers(2, 8),
    symmetric=st.booleans(),
)
def test_an_error_exceeds_half_a_step(values: list[float], bits: int, symmetric: bool) -> None:
    x = torch.tensor(values)
    enc = laconic.encode(x, f"affine:bits={bits},symmetric={str(symmetric).lower()}")
    step = float(enc.parts["0.scale"])
    error = (laconic.decode(enc).double() - x.double()).abs()
    rounding = 4 * torch.finfo(torch.float32).eps * float(x.abs().max())
    assert float(error.max()) <= step / 2 * (1 + 1e-5) + rounding


def test_ties_drift_one_way() -> None:
    """Half to even: codes k + 0.5 go up as often as down."""
    x = torch.arange(0, 255.5, 0.5)
    codes = laconic.encode(x, "affine").parts["main"]
    ties = x % 1 == 0.5
    assert torch.equal(codes[ties].double(), x[ties].double().round())
    assert abs(float((codes[ties] - x[ties]).mean())) < 0.01


def test_zero_is_lost_where_the_grid_is_symmetric() -> None:
    x = torch.tensor([-0.7, 0.0, 0.3])
    assert laconic.codec("affine:symmetric=true").roundtrip(x)[1] == 0


@pytest.mark.parametrize("value", [0.0, -3.25, 1e-40, 1e30])
@pytest.mark.parametrize("symmetric", ["true", "false"])
def test_a_flat_tensor_divides_by_zero(value: float, symmetric: str) -> None:
    x = torch.full((4, 4), value)
    assert torch.allclose(laconic.codec(f"affine:symmetric={symmetric}").roundtrip(x), x, rtol=1e-6, atol=1e-39)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("per", ["tensor", "sample", "channel"])
def test_what_is_not_finite_gets_a_code(value: float, per: str) -> None:
    x = ramp((2, 3, 8, 8))
    x[1, 2, 3, 4] = value
    with pytest.raises(DataError, match="finite"):
        laconic.encode(x, f"affine:per={per}")


def test_a_range_beyond_float32_becomes_inf() -> None:
    with pytest.raises(DataError, match="range"):
        laconic.encode(torch.tensor([-3e38, 3e38]), "affine")


@pytest.mark.parametrize(("per", "shape"), [("tensor", ()), ("sample", (2,)), ("channel", (2, 3))])
def test_scales_do_not_follow_their_images(per: str, shape: tuple[int, ...]) -> None:
    x = ramp((2, 3, 8, 8)) * torch.tensor([1.0, 10.0]).reshape(2, 1, 1, 1)
    enc = laconic.encode(x, f"affine:per={per}")
    assert enc.parts["0.scale"].shape == shape
    if per != "tensor":
        assert (laconic.decode(enc)[0] - x[0]).abs().max() < 0.003


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_grid_is_as_coarse_as_the_input(dtype: torch.dtype) -> None:
    enc = laconic.encode(ramp((8, 8), dtype), "affine")
    assert enc.parts["0.scale"].dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_integers_are_quantised_again() -> None:
    with pytest.raises(laconic.SpecError, match="expected floats"):
        laconic.encode(torch.ones(4, dtype=torch.uint8), "affine")


def test_gradients_see_the_steps() -> None:
    x = torch.linspace(0, 1, 16, requires_grad=True)
    laconic.codec("affine:bits=2").roundtrip(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(16))  # type: ignore[arg-type]
