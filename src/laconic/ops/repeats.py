"""Rows that occur again: which they are. What the operators of `rows` and `vlz` share; the reference in numpy."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from laconic.errors import DataError, SpecError
from laconic.ops.huffman_book import Array

MOST_ROWS = 2**31 - 1


@lru_cache(maxsize=256)
def layout_of(shape: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """How many rows such a tensor has, and the bytes of each. A row is the last dimension; a scalar is one."""
    columns = shape[-1] if shape else 1
    return (math.prod(shape[:-1]), columns * itemsize) if columns else (0, itemsize)


def check_rows(codes: Tensor) -> tuple[int, int]:
    """The layout of codes as they lie in memory. Every body asks first."""
    if not codes.is_contiguous():
        raise SpecError(f"expected contiguous codes, got strides {codes.stride()}")
    count, nbytes = layout_of(codes.shape, codes.element_size())
    if count > MOST_ROWS:
        raise SpecError(f"expected at most {MOST_ROWS:,} rows, got {count:,}")
    return count, nbytes


def bytes_of(codes: Tensor) -> Array:
    """The rows, as bytes."""
    count, nbytes = check_rows(codes)
    flat = codes.detach().cpu().reshape(-1)
    data: Array = flat.view(torch.uint8).numpy()
    return data.reshape(count, nbytes)


class Repeats(NamedTuple):
    """For each row which of the different ones it is, numbered as they first occur, and how many rows back the last
    one equal to it lies: 0 for none."""

    ids: Array
    back: Array

    @property
    def kept(self) -> int:
        """How many different ones there are."""
        return int((self.back == 0).sum())


def find_repeats(rows: Array, given: Array | None = None) -> Repeats:
    """By their bytes; or by the numbers given for them, which is then checked."""
    if len(rows) == 0:
        return Repeats(np.zeros(0, np.int64), np.zeros(0, np.int64))
    keys = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}")[:, 0] if given is None else given
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    ids = rank[inverse.reshape(-1)]
    order = np.argsort(ids, kind="stable")
    again = ids[order[1:]] == ids[order[:-1]]
    back = np.zeros(len(rows), np.int64)
    back[order[1:][again]] = (order[1:] - order[:-1])[again]
    if given is not None:
        _refuse_lies(rows, given, back)
    return Repeats(ids, back)


def _refuse_lies(rows: Array, given: Array, back: Array) -> None:
    different = (rows != rows[np.arange(len(rows)) - back]).any(axis=1)
    if different.any():
        row = int(different.argmax())
        raise lying(row - int(back[row]), row, int(given[row]))


def lying(first: int, second: int, index: int) -> DataError:
    return DataError(
        f"rows= lies: rows {first} and {second} are both said to be row {index} of a table, and they differ. "
        "Give the indices that these very rows were looked up with, or none"
    )


def is_worth_it(nbytes: int, repeated: int) -> bool:
    """Whether what says how rows repeat takes so much less than they do that it pays also if they are entropy-coded."""
    return 4 * nbytes <= repeated
