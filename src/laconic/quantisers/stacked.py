"""`bound` for many small tensors in one call: those of one spec are the scopes of one tensor.

n x [rows, columns]  -->  [n, rows, columns], n times the scopes  -->  n x codes
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from laconic.ops.bound import CODES, put_exceptions
from laconic.stage import Parts, TensorSpec

if TYPE_CHECKING:
    from laconic.quantisers.bound import Bound

_WORTH_A_COPY = 64 << 10  # bytes, of a tensor: beyond, a call for each costs less than stacking them


def encode_alike(bound: Bound, batch: Sequence[Tensor]) -> dict[int, Parts]:
    """The parts of those that others are like, by their places in the batch."""
    found: dict[int, Parts] = {}
    for places in _alike([(*TensorSpec.of(x), x.device) for x in batch], [x.nbytes for x in batch]):
        stacked = torch.stack([batch[place].detach() for place in places])
        found |= zip(places, _encode(bound, stacked), strict=False)
    return found


def _encode(bound: Bound, x: Tensor) -> list[Parts]:
    """Of each along the first dimension; of none where each would have codes of a width of its own."""
    count = len(x)
    grid = bound.grid(x, count * math.prod(bound.leading_shape(tuple(x.shape[1:]))))
    if bound.width == "auto" and grid.width > min(CODES):
        return []
    codes = torch.empty(x.shape, dtype=CODES[grid.width], device=x.device)
    exceptions = torch.ops.laconic.bound_encode_out.default(x, grid.step, grid.bound, codes)
    steps = grid.step.view(count, -1).unbind()
    own = [exceptions] * count if exceptions.numel() == 0 else _by_item(exceptions, count, x[0].numel())
    return [
        Parts(main, bound.side(item, step, places))
        for main, item, step, places in zip(codes.unbind(), x.unbind(), steps, own, strict=True)
    ]


def _by_item(places: Tensor, count: int, numel: int) -> list[Tensor]:
    """Places in all, as places in each."""
    edges = torch.arange(1, count, device=places.device) * numel
    return [own % numel for own in places.tensor_split(torch.searchsorted(places, edges).cpu())]


def decode_alike(batch: Sequence[Parts], specs: Sequence[TensorSpec]) -> dict[int, Tensor]:
    """Those that others are like, by their places in the batch."""
    found: dict[int, Tensor] = {}
    keys = [(*x, parts.main.dtype, parts.main.device) for x, parts in zip(specs, batch, strict=True)]
    for places in _alike(keys, [x.nbytes for x in specs]):
        x = specs[places[0]]
        codes = torch.stack([batch[place].main for place in places])
        step = torch.cat([batch[place].side["step"].reshape(-1) for place in places])
        out = torch.empty(codes.shape, dtype=x.dtype, device=codes.device)
        torch.ops.laconic.bound_decode_out.default(codes, step, out)
        for place, view in zip(places, out.unbind(), strict=True):
            restored = view.data  # with a version of its own: what is done to one says nothing of the others
            put_exceptions(restored, batch[place].side["index"], batch[place].side["values"])
            found[place] = restored
    return found


def _alike(keys: Sequence[Hashable], sizes: Sequence[int]) -> list[list[int]]:
    """The places of small tensors with equal keys, where there are several."""
    groups: dict[Hashable, list[int]] = {}
    for place, (key, size) in enumerate(zip(keys, sizes, strict=True)):
        if 0 < size <= _WORTH_A_COPY:
            groups.setdefault(key, []).append(place)
    return [places for places in groups.values() if len(places) > 1]
