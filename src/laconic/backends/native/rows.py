"""Different rows and their index in C++: looked for in all tensors of a batch, then written where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.backends.native import core
from laconic.ops import LIBRARY
from laconic.ops.repeats import check_rows, lying
from laconic.ops.rows import check_batch, check_given, check_room, kept_rows, no_index
from laconic.ops.streams import check_bytes

_core: Any = core()
if _core is None:
    raise ImportError("laconic's native part is not there; ask native.available() before importing its bodies")


def _planned(batch: Sequence[Tensor], rows: Sequence[Tensor | None]) -> Any:
    """What will be kept of all of them."""
    items, hints = [], 0
    for codes, given in zip(batch, rows, strict=True):
        count, nbytes = check_rows(codes)
        check_given(given, count)
        hint = 0 if given is None else given.data_ptr()
        items.append((codes.data_ptr(), count, nbytes, hint))
        hints |= hint
    plan = _core.UniqueBatch(items, torch.get_num_threads())
    if hints:
        for item, first, second in plan.lies():
            raise lying(first, second, int(rows[item].view(-1)[second]))
    return plan


def encode(codes: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
    plan = _planned((codes,), (rows,))
    ((kept, size),) = plan.sizes()
    columns = codes.shape[-1] if codes.dim() else 1
    main = torch.empty(kept * columns, dtype=codes.dtype)
    index = torch.empty(size, dtype=torch.uint8)
    plan.write(main.data_ptr(), index.data_ptr())
    return main, index


def encode_out(codes: Tensor, out: Tensor, index: Tensor, rows: Tensor | None = None) -> Tensor:
    check_room(codes, out, index)
    plan = _planned((codes,), (rows,))
    ((kept, size),) = plan.sizes()
    plan.write(out.data_ptr(), index.data_ptr())
    return torch.tensor([kept * (codes.shape[-1] if codes.dim() else 1), size])


def encode_many(batch: Sequence[Tensor], rows: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, Tensor]:
    check_batch(batch, rows)
    plan = _planned(batch, rows)
    sizes = [
        (kept * (codes.shape[-1] if codes.dim() else 1), size)
        for codes, (kept, size) in zip(batch, plan.sizes(), strict=True)
    ]
    main = torch.empty(sum(kept for kept, _ in sizes), dtype=batch[0].dtype)
    index = torch.empty(sum(size for _, size in sizes), dtype=torch.uint8)
    plan.write(main.data_ptr(), index.data_ptr())
    return main, index, torch.from_numpy(np.array(sizes))


def decode(main: Tensor, index: Tensor, out: Tensor) -> None:
    decode_many((main,), (index,), (out,))


def decode_many(mains: Sequence[Tensor], indices: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
    batch = []
    for main, index, out in zip(mains, indices, outs, strict=True):
        check_bytes(index)
        count, nbytes = check_rows(out)
        kept = (main.data_ptr(), kept_rows(main, out), index.data_ptr(), index.numel())
        batch.append((out.data_ptr(), count, nbytes, *kept))
    wrong = _core.rows_decode(batch, torch.get_num_threads())
    if wrong >= 0:
        raise no_index(indices[wrong], outs[wrong])


LIBRARY.impl("rows_encode", encode, "CPU")
LIBRARY.impl("rows_encode_out", encode_out, "CPU")
LIBRARY.impl("rows_encode_many", encode_many, "CPU")
LIBRARY.impl("rows_decode_out", decode, "CPU")
LIBRARY.impl("rows_decode_many_out", decode_many, "CPU")
