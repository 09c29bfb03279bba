"""The survey: every body counts the same."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from laconic import SpecError
from laconic.ops import survey as ops
from laconic.ops.survey import reference_survey, survey

DTYPES = [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32]


def some_codes(shape: tuple[int, ...], dtype: torch.dtype, spread: float, kinds: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(5)
    codes = (torch.randn(shape, generator=random, dtype=torch.float64) * spread).to(torch.int64).to(dtype)
    return codes[torch.randint(0, kinds, shape[:1], generator=random)] if kinds and len(codes) else codes


@settings(deadline=None, max_examples=80)
@given(
    dtype=st.sampled_from(DTYPES),
    rows=st.integers(0, 400),
    width=st.integers(1, 90),
    spread=st.sampled_from([0.1, 2.0, 40.0, 3e4, 1e9]),
    repeat=st.booleans(),
    most=st.sampled_from([(8, 8), (128, 64), (1 << 20, 1 << 20)]),
)
def test_a_body_counts_otherwise(
    dtype: torch.dtype, rows: int, width: int, spread: float, repeat: bool, most: tuple[int, int]
) -> None:
    codes = some_codes((rows, width), dtype, spread, kinds=max(1, rows // 9) if repeat else 0)
    for row in (0, width):
        assert [*survey(codes, row, *most)[:-1], *survey(codes, row, *most)[-1]] == reference_survey(codes, row, *most)


def test_a_sample_of_everything_is_not_everything() -> None:
    codes = torch.tensor([[0, 0, 1], [0, 0, 1], [5, 5, 5], [0, 0, 1], [-2, 3, 0]], dtype=torch.int8)
    found = survey(codes, 3, 8, 8)
    assert (found.codes, found.kinds, found.squares) == (15, 5, 7**2 + 3**2 + 3**2 + 1 + 1)
    assert (found.rows, found.row_pairs, found.equal_rows) == (5, 4, 1)
    assert found.row_kinds[:3] == [2, 1, 0]  # of three alike two are neighbours, and count as one
    assert found.alike_rows == 1
    assert (found.blocks, found.planes, found.extra) == (1, 1 + 4 * 4, 0)
    assert found.huffman == 7 * 1 + 3 * 2 + 3 * 3 + 4 * 2


def test_codes_that_lie_apart_are_read_as_if_side_by_side() -> None:
    with pytest.raises(SpecError, match="contiguous"):
        survey(torch.zeros(8, 8, dtype=torch.int8).t()[1:], 0, 8, 8)
    with pytest.raises(SpecError, match="1, 2 or 4 bytes"):
        survey(torch.zeros(8, dtype=torch.int64), 0, 8, 8)


def test_an_address_that_is_no_multiple_crashes() -> None:
    data = bytes(range(200))
    codes, odd = (
        torch.frombuffer(bytearray(before + data), dtype=torch.int16, offset=len(before)) for before in (b"", b"0")
    )
    assert odd.data_ptr() % 2 == 1
    assert survey(odd, 0, 64, 8) == survey(codes, 0, 64, 8)


@pytest.mark.parametrize(("most", "total"), [(0, 0), (1, 1), (4, 4), (5, 4), (4, 5), (64, 1000), (3, 1 << 40)])
def test_places_are_met_twice_or_lie_outside(most: int, total: int) -> None:
    places = ops.spread(most, total).tolist()
    assert len(set(places)) == min(most, total)
    assert all(0 <= place < total for place in places)
    assert places == sorted(places)
