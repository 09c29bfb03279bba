"""What encoding and decoding ask of tensors and parts before they touch them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from laconic.encoded import Encoded, promised_parts
from laconic.errors import CorruptData, SpecError
from laconic.stage import PartSpec, TensorSpec


def check_tensor(x: Any) -> None:
    if not isinstance(x, Tensor):
        raise SpecError(f"expected a torch.Tensor, got {type(x).__name__}. Try torch.as_tensor(x)")
    if x.device.type == "meta" or x.layout is not torch.strided:
        raise SpecError(f"expected a dense tensor with data, got one on {x.device} with layout {x.layout}")


def check_writable(out: Tensor, source: Tensor) -> None:
    """Raises where writing to `out` while reading `source` would give something else, or escape autograd."""
    if torch.is_grad_enabled() and (out.requires_grad or source.requires_grad):
        raise SpecError("out= does not carry gradients: leave it out, or work under torch.no_grad()")
    if torch._debug_has_internal_overlap(out) == 1:
        raise SpecError("out= is expanded: several of its elements share one place in memory")
    if torch._C._is_alias_of(out, source) and _extents_meet(out, source):  # type: ignore[attr-defined]  # not in its stubs
        raise SpecError("out= shares memory with what is read; expected memory of its own")


def _extents_meet(a: Tensor, b: Tensor) -> bool:
    (start, end), (other_start, other_end) = _extent(a), _extent(b)
    return start < other_end and other_start < end


def _extent(x: Tensor) -> tuple[int, int]:
    """The addresses between which a tensor's elements lie."""
    if x.numel() == 0:
        return 0, 0
    last = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return x.data_ptr(), x.data_ptr() + (last + 1) * x.element_size()


def check_parts(enc: Encoded) -> None:
    """Holds what is there against what the stages promise, before anything is allocated by its word."""
    for name, promised in promised_parts(enc.chain, enc.specs).items():
        check_part(name, promised, enc.parts.get(name))


def check_part(name: str, promised: PartSpec, part: Tensor | None) -> None:
    if part is None:
        raise CorruptData(f"part '{name}' is missing: expected {promised.tensor}")
    if not promised.allows(TensorSpec.of(part)):
        raise CorruptData(f"part '{name}': expected {promised.tensor}, found {TensorSpec.of(part)}")
