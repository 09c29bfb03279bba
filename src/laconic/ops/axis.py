"""A block transform along one axis, as few dense matrix products. This is what every compiler can run.

A matrix that covers one block does the least arithmetic, one that covers the whole axis makes the largest
products; `span` says how many pixels a matrix covers. What a span does not divide goes to a `tail` matrix, with
the padding (encoding) and the cropping (decoding) of the last block folded into it:

    x:  | span | span | span | tail |        each body product: [.., spans, span] @ body.T
           |      |      |      |
    y:  |  k   |  k   |  k   |  k'  |        one product for all spans, and one for the tail
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class AxisMap(NamedTuple):
    """A linear map along one axis: `body` on each of the first `spans` spans, `tail` on what is left."""

    body: Tensor | None
    spans: int
    tail: Tensor | None

    @property
    def cut(self) -> int:
        """Where the spans end and the tail begins, in the input."""
        return 0 if self.body is None else self.spans * self.body.shape[1]

    @property
    def in_size(self) -> int:
        return self.cut + (0 if self.tail is None else self.tail.shape[1])


def encoding_map(size: int, rows: Tensor, span: int | None = None) -> AxisMap:
    """Takes `size` pixels to coefficients. `rows` are the kept rows of the analysis matrix, `[chop, block]`."""

    def fold_padding(blocks: Tensor, pixels: int) -> Tensor:
        """The last pixel stands for its replicas too, so its column sums theirs."""
        last = blocks[:, pixels - 1 :].sum(dim=1, keepdim=True)
        return torch.cat([blocks[:, : pixels - 1], last], dim=1)

    return _axis_map(size, rows, rows.shape[1], span, fold_padding)


def decoding_map(size: int, columns: Tensor, span: int | None = None) -> AxisMap:
    """Takes coefficients to `size` pixels. `columns` are the kept columns of the synthesis, `[block, chop]`."""
    return _axis_map(size, columns, columns.shape[0], span, lambda blocks, pixels: blocks[:pixels])


def _axis_map(size: int, matrix: Tensor, block: int, span: int | None, fit: Callable[[Tensor, int], Tensor]) -> AxisMap:
    span = size if span is None else max(block, span - span % block)
    span = min(span, size)
    spans, rest = divmod(size, span) if span % block == 0 else (0, size)
    body = repeat_diagonally(matrix, span // block) if spans else None
    tail = fit(repeat_diagonally(matrix, -(-rest // block)), rest) if rest else None
    return AxisMap(body, spans, tail)


def repeat_diagonally(matrix: Tensor, times: int) -> Tensor:
    """The block-diagonal matrix with `matrix` on it `times` times."""
    return torch.kron(torch.eye(times, dtype=matrix.dtype, device=matrix.device), matrix)


def along_rows(m: AxisMap, x: Tensor) -> Tensor:
    """Applies a map to the last-but-one dimension."""
    pieces = []
    if m.body is not None:
        spans = x.narrow(-2, 0, m.cut).unflatten(-2, (m.spans, m.body.shape[1]))
        pieces.append(torch.matmul(m.body, spans).flatten(-3, -2))
    if m.tail is not None:
        pieces.append(torch.matmul(m.tail, x.narrow(-2, m.cut, m.tail.shape[1])))
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=-2)


def along_columns(m: AxisMap, x: Tensor) -> Tensor:
    """Applies a map to the last dimension."""
    pieces = []
    if m.body is not None:
        spans = x.narrow(-1, 0, m.cut).unflatten(-1, (m.spans, m.body.shape[1]))
        pieces.append(torch.matmul(spans, m.body.mT).flatten(-2))
    if m.tail is not None:
        pieces.append(torch.matmul(x.narrow(-1, m.cut, m.tail.shape[1]), m.tail.mT))
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=-1)
