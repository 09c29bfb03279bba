"""What stages are told, and how they print themselves."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import laconic
from laconic import TensorSpec
from laconic.registry import find
from laconic.stage import Context


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8])
def test_the_range_counts_what_is_not_finite(dtype: torch.dtype) -> None:
    x = torch.tensor([1, 3, 7], dtype=dtype)
    assert Context(x).range == 6
    assert Context(x).rms == pytest.approx((59 / 3) ** 0.5)
    if dtype.is_floating_point:
        spoiled = Context(torch.cat([x, torch.tensor([torch.nan, torch.inf, -torch.inf], dtype=dtype)]))
        assert (spoiled.range, spoiled.rms) == (Context(x).range, Context(x).rms)


def test_a_range_of_nothing_fails() -> None:
    for nothing in (torch.empty(0), torch.tensor([torch.nan])):
        assert (Context(nothing).range, Context(nothing).rms) == (0.0, 0.0)


def test_a_wide_range_overflows_its_dtype() -> None:
    assert Context(torch.tensor([-3e38, 3e38])).range == pytest.approx(6e38)


def test_specs_of_views_differ_from_those_of_copies() -> None:
    x = torch.zeros(4, 6)
    assert TensorSpec.of(x.T) == TensorSpec.of(x.T.contiguous()) == TensorSpec((6, 4), torch.float32)
    assert repr(TensorSpec((), torch.int64)) == "int64[]"
    assert TensorSpec((2, 0, 3), torch.float16).nbytes == 0


def test_a_stage_can_be_changed_under_a_codec() -> None:
    codec = laconic.codec("dct:chop=4")
    with pytest.raises(dataclasses.FrozenInstanceError):
        codec.stages[0].chop = 5  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        codec.stages = ()  # type: ignore[misc]


def test_equal_codecs_differ() -> None:
    built = laconic.Codec((find("dct")(chop=4), find("affine")(bits=8)))  # type: ignore[call-arg]
    assert built == laconic.codec("dct:chop=4|affine")
    assert hash(built) == hash(laconic.codec("dct:chop=4|affine"))
    with pytest.raises(laconic.SpecError, match="cannot follow"):
        laconic.Codec(tuple(reversed(built.stages)))
    with pytest.raises(laconic.SpecError, match="at least one stage"):
        laconic.Codec(())
