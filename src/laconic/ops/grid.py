"""How fine the grid of `bound` has to be, so that hardly a value needs to be stored exactly.

Half a step must not be more than the bound. It is a little less, as codes are found and read in floating point:
both roundings grow with the code, so the step shrinks by what the largest code may lose. float16 and bfloat16 round
once more, to their own grid, which must not take a value over the bound either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from laconic.ops import LIBRARY, load_bodies
from laconic.ops.block import compute_dtype

LANES, ROWS = 64, 64
KINDS = ("abs", "rel", "rms")

Floats = NDArray[np.float64]

LIBRARY.define("bound_grid(Tensor x, int scopes, int kind, float value) -> (Tensor, Tensor, SymInt)")

_NUMPY: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.float64: np.float64}


def reference_grid(x: Tensor, scopes: int, kind: int, value: float) -> tuple[Tensor, Tensor, int]:
    """The step and the bound of each scope, in the quantiser's arithmetic, and the width that holds all codes.

    `value` is the bound itself (kind 0), or its ratio to the scope's range (1) or root mean square (2).
    """
    low, high, squares, count = extent(x, scopes, squares=kind == 2).cpu().numpy().T
    number = _NUMPY[compute_dtype(x.dtype)]
    with np.errstate(all="ignore"):
        squares = np.minimum(
            squares, np.finfo(np.float64).max
        )  # of what overflowed, less than it was: no looser a bound
        size = (np.ones_like(low), np.maximum(high - low, 0.0), np.sqrt(squares / count))[kind]
        bound = _round_down(value * np.nan_to_num(size), number)
        largest = np.nan_to_num(np.maximum(np.abs(low), np.abs(high)), posinf=0.0)
        step = _step(bound, low, high, largest, x.dtype)
        codes = float(np.max(largest / np.abs(step.astype(np.float64)), initial=0.0)) + 1
    width = next((width for width in (8, 16) if codes <= 2 ** (width - 1) - 1), 32)
    return torch.from_numpy(step).to(x.device), torch.from_numpy(bound.astype(number)).to(x.device), width


def _step(bound: Floats, low: Floats, high: Floats, largest: Floats, dtype: torch.dtype) -> NDArray[Any]:
    """That of each scope; a scope of one value has that value for its step, where the bound allows no other."""
    arithmetic = compute_dtype(dtype)
    number = _NUMPY[arithmetic]
    reach = bound if dtype == arithmetic else np.minimum(bound, _reach_of_narrow(bound, largest, dtype))
    step = number(2 * reach * (1 - _slack(largest / (2 * reach), arithmetic)))
    flat = (low == high) & (low != 0) & (bound <= np.finfo(number).smallest_subnormal)
    step = np.where(flat, number(low), step)
    return np.asarray(np.where((step == 0) | ~np.isfinite(step), number(1), step), number)


def _slack(codes: Floats, arithmetic: torch.dtype) -> Floats:
    """By which part a step shrinks: a code of n loses 1.5 n units in the last place. A little more, at most half."""
    bits = 20 if arithmetic == torch.float32 else 49
    return np.minimum(codes + 1, 2.0**bits) * 2.0 ** -(bits + 1)


def _reach_of_narrow(bound: Floats, largest: Floats, dtype: torch.dtype) -> Floats:
    """How far from a value of few bits one may be, before rounding to them goes over the bound: `k + 1/2` units in
    the last place for a bound of `k` and a fraction. The three greatest binades have nearly all the values."""
    _, exponent = np.frexp(np.maximum(largest, torch.finfo(dtype).tiny))
    unit = np.ldexp(torch.finfo(dtype).eps, exponent - 1)
    reaches = [(np.floor(bound / u) + 0.5) * u for u in (unit, unit / 2, unit / 4)]
    return np.asarray(np.minimum.reduce(reaches))


def _round_down(bound: Floats, number: Any) -> Floats:
    """The bound as the quantiser's arithmetic has it: never more, and more than nothing."""
    rounded = number(np.minimum(bound, np.finfo(number).max))
    rounded = np.where(rounded > bound, np.nextafter(rounded, number(0)), rounded)
    return np.asarray(np.maximum(rounded, np.finfo(number).smallest_subnormal), np.float64)


def extent(x: Tensor, scopes: int, squares: bool) -> Tensor:
    """Of each scope's finite values: least, greatest, and with `squares` their sum of squares and count, else 0, 0.
    Inf and -Inf are least and greatest where there are none.

    Squares are summed in float64, in an order that every body keeps: in pieces of 64 x 64, first down the rows for
    each of 64 lanes, then over the lanes, then over the pieces.
    """
    values = x.detach().reshape(scopes, -1).double()
    finite = values.isfinite()
    low = values.masked_fill(~finite, torch.inf).amin(1)
    high = values.masked_fill(~finite, -torch.inf).amax(1)
    total = count = torch.zeros_like(low)
    if squares:
        count = finite.sum(1).double()
        numbers = values.masked_fill(~finite, 0.0)
        total = _ordered_sum(torch.nn.functional.pad(numbers, (0, -numbers.shape[1] % (LANES * ROWS))).square())
    return torch.stack([low, high, total, count], 1)


def _ordered_sum(values: Tensor) -> Tensor:
    pieces = values.reshape(len(values), -1, ROWS, LANES)
    lanes = pieces[:, :, 0]
    for row in range(1, ROWS):
        lanes = lanes + pieces[:, :, row]
    sums = lanes[..., 0]
    for lane in range(1, LANES):
        sums = sums + lanes[..., lane]
    return torch.from_numpy(np.add.accumulate(sums.cpu().numpy(), axis=1)[:, -1].copy()).to(values.device)


def _fake_grid(x: Tensor, scopes: int, kind: int, value: float) -> tuple[Tensor, Tensor, int]:
    step = x.new_empty((scopes,), dtype=compute_dtype(x.dtype))
    width = torch.library.get_ctx().new_dynamic_size()
    return step, step.clone(), width  # type: ignore[return-value]  # a SymInt: an int yet unknown


LIBRARY.impl("bound_grid", reference_grid, "CompositeExplicitAutograd")
torch.library.register_fake("laconic::bound_grid", _fake_grid, lib=LIBRARY)

load_bodies("grid")
