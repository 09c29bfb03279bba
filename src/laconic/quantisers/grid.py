"""How fine the grid of `bound` has to be, so that hardly a value needs to be stored exactly.

Half a step must not be more than the bound. It is a little less, as codes are found and read in floating point:
both roundings grow with the code, so the step shrinks by what the largest code may lose. float16 and bfloat16 round
once more, to their own grid, which must not take a value over the bound either.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from laconic.ops.block import compute_dtype

WIDTHS = {8: torch.int8, 16: torch.int16, 32: torch.int32}

Floats = NDArray[np.float64]

_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class Grid(NamedTuple):
    """The step and the bound of each scope, in the quantiser's arithmetic, and the width that holds its codes."""

    step: Tensor
    bound: Tensor
    width: int


def choose(bound: Floats, low: Floats, high: Floats, dtype: torch.dtype) -> Grid:
    """For values from `low` to `high`, per scope; where there are none, Inf and -Inf."""
    arithmetic = compute_dtype(dtype)
    kind = _NUMPY[arithmetic]
    with np.errstate(all="ignore"):
        largest = np.nan_to_num(np.maximum(np.abs(low), np.abs(high)), nan=0.0, posinf=0.0)
        bound = _round_down(bound, kind)
        reach = bound if dtype == arithmetic else np.minimum(bound, _reach_of_narrow(bound, largest, dtype))
        step = kind(2 * reach * (1 - _slack(largest / (2 * reach), arithmetic)))
        flat = (low == high) & (low != 0) & (bound <= np.finfo(kind).smallest_subnormal)
        step = np.where(flat, kind(low), step)
        step = np.where((step == 0) | ~np.isfinite(step), kind(1), step).astype(kind)
        codes = float(np.max(largest / np.abs(step.astype(np.float64)), initial=0.0)) + 1
    width = next((width for width in (8, 16) if codes <= 2 ** (width - 1) - 1), 32)
    return Grid(torch.from_numpy(step), torch.from_numpy(bound.astype(kind)), width)


def _slack(codes: Floats, arithmetic: torch.dtype) -> Floats:
    """By which part the step shrinks: a code of n loses n * 1.5 units in the last place; a little more, at most half."""
    bits = 20 if arithmetic == torch.float32 else 49
    return np.minimum(np.nan_to_num(codes, nan=0.0) + 1, 2.0**bits) * 2.0 ** -(bits + 1)


def _reach_of_narrow(bound: Floats, largest: Floats, dtype: torch.dtype) -> Floats:
    """How far from a value of few bits one may be, before rounding to them goes over the bound: `k + 1/2` units in
    the last place for a bound of `k` and a fraction. The three greatest binades have nearly all the values."""
    unit = torch.finfo(dtype).eps * 2.0 ** np.floor(np.log2(np.maximum(largest, torch.finfo(dtype).tiny)))
    reaches = [(np.floor(bound / u) + 0.5) * u for u in (unit, unit / 2, unit / 4)]
    return np.minimum.reduce(reaches)


def _round_down(bound: Floats, kind: type[np.floating]) -> Floats:
    """The bound as the quantiser's arithmetic has it: never more, and more than nothing."""
    rounded = np.asarray(kind(np.minimum(np.nan_to_num(bound, nan=0.0), np.finfo(kind).max)))
    rounded = np.where(rounded > bound, np.nextafter(rounded, kind(0)), rounded)
    return np.maximum(rounded, np.finfo(kind).smallest_subnormal).astype(np.float64)
