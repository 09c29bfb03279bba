"""What the encoders study compresses: dumped look-ups, whole or in slices, and what is known of them beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic import chain
from laconic.bench.encoders.study import Case, dump_name
from laconic.schedule import TableClass
from laconic.stage import Context, Parts, TensorSpec

CALL_ROWS = 2048
"""The rows of one call: a whole batch, or as many slices as make one."""


@dataclass(frozen=True, eq=False)
class Dump:
    """Rows that were looked up in one table: float32 `[rows, width]`."""

    table: str
    iteration: int | None
    x: Tensor

    @property
    def name(self) -> str:
        return dump_name(self.table, self.iteration)


@dataclass(frozen=True, eq=False)
class Load:
    """A dump in slices of so many rows, each of them repeated `pad` times, at a bound."""

    dump: Dump
    table_class: TableClass
    quantiser: str
    """With its bound: `bound:rel=0.03`."""
    bound: float
    kind: str
    rows: int
    pad: int

    @property
    def name(self) -> str:
        whole = f"{self.dump.name}, {self.rows} rows"
        return whole if self.pad == 1 else f"{whole} x {self.pad}"

    @cached_property
    def slices(self) -> tuple[Tensor, ...]:
        return tuple(torch.split(self.dump.x, self.rows))

    @cached_property
    def calls(self) -> tuple[tuple[Tensor, ...], ...]:
        """What one call compresses, padded."""
        return self._in_calls([one.repeat(self.pad, 1) for one in self.slices])

    @cached_property
    def hints(self) -> tuple[tuple[Tensor, ...], ...]:
        """Which row each is, for `rows=`: as if those that are equal came from the same row of the table."""
        _, which = np.unique(_as_bits(self.dump.x), return_inverse=True)
        return self._in_calls([one.repeat(self.pad) for one in torch.from_numpy(which).split(self.rows)])

    def _in_calls(self, slices: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], ...]:
        together = max(1, CALL_ROWS // self.rows)
        return tuple(tuple(slices[i : i + together]) for i in range(0, len(slices), together))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(x for call in self.calls for x in call)

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec((len(self.dump.x) * self.pad, self.dump.x.shape[1]), self.dump.x.dtype)

    @cached_property
    def limits(self) -> tuple[float, ...]:
        """How far off a value of each slice may be."""
        return tuple(self.bound * _scale(x, self.kind) for x in self.slices)

    def case(self) -> Case:
        """What the tables and the JSON say of it. Padding changes no count but that of the rows."""
        codes = [parts.main for parts in quantised(self.slices, self.quantiser)]
        rows = len(self.dump.x) * self.pad
        return Case(
            name=self.name,
            table=self.dump.table,
            iteration=self.dump.iteration,
            table_class=self.table_class,
            kind=self.kind,
            bound=self.bound,
            quantiser=self.quantiser,
            shape=list(self.spec.shape),
            rows=self.rows,
            pad=self.pad,
            slices=len(self.slices),
            slices_in_a_call=max(map(len, self.calls)),
            code_bits=8 * max(x.element_size() for x in codes),
            unique_before=sum(map(distinct_rows, self.slices)) / rows,
            unique_after=sum(map(distinct_rows, codes)) / rows,
            entropy=entropy(codes),
            nbytes=self.spec.nbytes,
        )


def quantised(tensors: Sequence[Tensor], quantiser: str) -> list[Parts]:
    """What the quantiser leaves of each: codes for an encoder, and side parts."""
    (stage,) = chain.codec(quantiser).stages
    return [stage.encode(x, Context(x)) for x in tensors]


def distinct_rows(x: Tensor) -> int:
    """How many rows there are that differ in some bit."""
    return len(np.unique(_as_bits(x)))


def _as_bits(x: Tensor) -> np.ndarray[Any, np.dtype[Any]]:
    """Each row as one item."""
    flat = np.ascontiguousarray(x.numpy()).reshape(len(x), -1)
    return flat.view(np.dtype((np.void, flat.shape[1] * flat.itemsize))).reshape(-1)


def entropy(codes: Sequence[Tensor]) -> float:
    """Of order 0, in bits a code, over all of them.

    >>> entropy([torch.tensor([0, 0, 1]), torch.tensor([2])])
    1.5
    """
    _, counts = torch.cat([x.reshape(-1).to(torch.int32) for x in codes]).unique(return_counts=True)
    shares = counts.double() / counts.sum()
    return abs(float((shares * shares.log2()).sum()))


def _scale(x: Tensor, kind: str) -> float:
    """What a bound of this kind is a part of, over finite values, in float64."""
    finite = x[x.isfinite()].double()
    if kind == "abs":
        return 1.0
    if not finite.numel():
        return 0.0
    return float(finite.max() - finite.min()) if kind == "rel" else float(finite.square().mean().sqrt())
