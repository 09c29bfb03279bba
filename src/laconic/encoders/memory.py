"""Tensors as their bytes in memory, and floats as the integers that their bits spell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from laconic.errors import CorruptData, SpecError
from laconic.stage import Stage, TensorSpec, room_for

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def code_dtype(stage: Stage, dtype: torch.dtype, widest: int = 8) -> torch.dtype:
    """The integers that a predictor or encoder reads such elements as: floats as the integers of their size."""
    if dtype.is_complex or dtype == torch.bool or dtype.itemsize > widest:
        raise SpecError(
            f"{stage}: expected codes or real numbers of at most {widest} bytes, got {dtype}. Try '{stage.example}'"
        )
    return dtype if dtype == torch.uint8 or not dtype.is_floating_point else INTEGERS[dtype.itemsize]


def refuse_wide(stage: Stage, x: TensorSpec) -> None:
    """For `out_spec` of stages that read bytes: no description names a type of more than eight."""
    if x.dtype.itemsize > 8:
        raise SpecError(f"{stage}: expected elements of at most 8 bytes, got {x}. Try torch.view_as_real")


def as_codes(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The same bits as integers, contiguous."""
    codes = x.detach().contiguous()
    return codes if codes.dtype == dtype else codes.view(dtype)


def as_bytes(x: Tensor) -> Tensor:
    """The same memory as one row of uint8."""
    return x.detach().contiguous().reshape(-1).view(torch.uint8)


def from_bytes(data: Tensor, spec: TensorSpec, out: Tensor | None = None) -> Tensor:
    """A tensor of this spec with a copy of these bytes; into `out` when given."""
    if data.nbytes != spec.nbytes:
        raise CorruptData(f"expected {spec.nbytes} bytes for {spec}, found {data.nbytes}")
    if out is not None and out.is_contiguous():
        copy_bytes(as_bytes(out), data)
        return out
    restored = room_for(spec, data.device)
    copy_bytes(as_bytes(restored), data)
    return restored if out is None else out.copy_(restored)


def as_integers(x: Tensor) -> Tensor:
    """The same memory as one row of integers of the elements' size."""
    return x.detach().contiguous().view(-1).view(INTEGERS[x.element_size()])


def copy_bytes(to: Tensor, data: Tensor) -> Tensor:
    """On CPUs not by torch: on a busy machine its threads wait for each other for milliseconds."""
    if to.device.type != "cpu" or data.device.type != "cpu":
        return to.copy_(data)
    to.numpy()[:] = data.numpy()
    return to


def tight(data: Tensor, length: int) -> Tensor:
    """Its first elements in memory of their own. On CPUs not by torch, whose threads hang a child after `fork`."""
    kept = data[:length]
    return torch.from_numpy(kept.numpy().copy()) if kept.device.type == "cpu" else kept.clone()


def claimed(stage: Stage, x: TensorSpec, device: torch.device) -> Tensor:
    """Room for a tensor that a few bytes may stand for, however large it claims to be."""
    try:
        return room_for(x, device)
    except RuntimeError as error:
        raise CorruptData(f"{stage}: expected a tensor that fits into memory, found {x}") from error


def claimed_all(stage: Stage, specs: Sequence[TensorSpec], device: torch.device) -> list[Tensor]:
    """Room for many: where they are alike, in one piece."""
    if len(set(specs)) != 1 or len(specs) == 1:
        return [claimed(stage, x, device) for x in specs]
    whole = claimed(stage, TensorSpec((len(specs), *specs[0].shape), specs[0].dtype), device)
    return [room.data for room in whole.unbind()]  # each with a version of its own: autograd minds only what it uses


def to_library(x: Tensor) -> Any:
    """A tensor's bytes as a library of compressors takes them."""
    return as_bytes(x.cpu()).numpy()


def from_library(data: Any, device: torch.device, room: Tensor | None = None) -> Tensor:
    """Bytes that a library gave, as a tensor; at the beginning of `room` when given."""
    view = memoryview(data)
    main = room_for(TensorSpec((view.nbytes,), torch.uint8), device, room)
    if view.nbytes:
        copy_bytes(main, torch.frombuffer(bytearray(view), dtype=torch.uint8))
    return main
