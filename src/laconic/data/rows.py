"""A batch as the list of samples that DataLoader asks for, which its default collation puts together without a copy.

    whole batch  --rows-->  [sample, sample, ..]  --default_collate-->  whole batch

The samples are views. Who takes them apart, changes or reorders them finds ordinary tensors, and `default_collate`
stacks what no longer lies side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import reduce_tensor
from torch.utils.data._utils.collate import default_collate_fn_map

from laconic.encoded import Encoded, boundary_specs, stack
from laconic.stage import TensorSpec


class Row(Tensor):
    """A sample of a batch; whatever is done to it gives a plain tensor."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


def rows(batch: Tensor | Encoded | list[Any]) -> list[Any]:
    """The samples of a batch."""
    if isinstance(batch, Tensor):
        return [row.as_subclass(Row) for row in batch.unbind()]
    return _encoded_rows(batch) if isinstance(batch, Encoded) else batch


def _encoded_rows(batch: Encoded) -> list[Encoded]:
    """`list(batch)`, whose parts are known to split."""
    specs = boundary_specs(batch.chain, TensorSpec(batch.spec.shape[1:], batch.spec.dtype))
    columns = [part.unbind() for part in batch.parts.values()]
    return [
        Encoded(batch.chain, specs, dict(zip(batch.parts, parts, strict=True))) for parts in zip(*columns, strict=True)
    ]


def _collate_rows(items: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    plain = [item.as_subclass(Tensor) if isinstance(item, Row) else item for item in items]
    together = _together(plain)
    if together is None:
        return default_collate_fn_map[Tensor](plain, collate_fn_map=collate_fn_map)  # type: ignore[no-any-return]
    return together


def _collate_encoded(items: Sequence[Encoded], *, collate_fn_map: Any = None) -> Encoded:
    first = items[0]
    parts: dict[str, Tensor] = {}
    if all(isinstance(item, Encoded) and item.specs is first.specs for item in items):
        for name in first.parts:
            together = _together([item.parts[name] for item in items])
            if together is not None:
                parts[name] = together
    if len(parts) < len(first.parts):
        return stack(items)
    spec = TensorSpec((len(items), *first.spec.shape), first.spec.dtype)
    return Encoded(first.chain, boundary_specs(first.chain, spec), parts)


def _together(pieces: Sequence[Tensor]) -> Tensor | None:
    """What lies side by side, as one: without a copy; None where it does not."""
    first = pieces[0]
    memory, start, size = first.untyped_storage().data_ptr(), first.data_ptr(), first.nbytes
    if first.requires_grad or not all(
        piece.data_ptr() == start + i * size
        and (piece.shape, piece.dtype) == (first.shape, first.dtype)
        and piece.is_contiguous()
        and piece.untyped_storage().data_ptr() == memory
        for i, piece in enumerate(pieces)
    ):
        return None
    return first.as_strided((len(pieces), *first.shape), (first.numel(), *first.stride()))


default_collate_fn_map[Row] = _collate_rows
default_collate_fn_map[Encoded] = _collate_encoded
ForkingPickler.register(Row, reduce_tensor)
