"""What stages are told, and how they print themselves."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import laconic
from laconic import TensorSpec
from laconic.registry import find


def test_specs_of_views_differ_from_those_of_copies() -> None:
    x = torch.zeros(4, 6)
    assert TensorSpec.of(x.T) == TensorSpec.of(x.T.contiguous()) == TensorSpec((6, 4), torch.float32)
    assert repr(TensorSpec((), torch.int64)) == "int64[]"
    assert TensorSpec((2, 0, 3), torch.float16).nbytes == 0
    assert hash(TensorSpec([8, 8], torch.float32)) == hash(TensorSpec((8, 8), torch.float32))  # type: ignore[arg-type]


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
