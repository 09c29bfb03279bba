"""Many tensors in one call: their Encoded, in one allocation. For the wire, see `batch_wire.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar, overload

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from laconic.encoded import Encoded
from laconic.errors import SpecError

A = TypeVar("A")
B = TypeVar("B")

_ALIGNMENT = 16
_WORTH_A_THREAD = 4 << 20  # bytes of an item


@dataclass(frozen=True, eq=False)
class EncodedBatch(Sequence[Encoded]):
    """Compressed tensors, each of which decodes on its own. What they share is one tensor in all of them."""

    items: tuple[Encoded, ...]

    @classmethod
    def of(cls, items: Sequence[Encoded]) -> EncodedBatch:
        """Gathers all parts into one allocation."""
        return cls(_moved(items, _gathered))

    @property
    def nbytes(self) -> int:
        """What this takes on the wire: `len(self.to_bytes())`."""
        from laconic.batch_wire import wire_size

        return wire_size(self)

    @property
    def ratio(self) -> float:
        """Bytes that went in over bytes that came out, every one of them counted."""
        return sum(item.spec.nbytes for item in self.items) / self.nbytes

    def to_bytes(self) -> bytes:
        """One buffer for the wire or a file; `EncodedBatch.from_bytes` reads it."""
        from laconic.batch_wire import to_bytes

        return to_bytes(self)

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> EncodedBatch:
        """Reads what `to_bytes` wrote; CorruptData if it is anything else."""
        from laconic.batch_wire import from_bytes

        return from_bytes(data)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> EncodedBatch:
        return EncodedBatch(
            _moved(self.items, lambda parts: [part.to(device, non_blocking=non_blocking) for part in parts])
        )

    @overload
    def __getitem__(self, index: int) -> Encoded: ...
    @overload
    def __getitem__(self, index: slice) -> EncodedBatch: ...
    def __getitem__(self, index: int | slice) -> Encoded | EncodedBatch:
        return EncodedBatch(self.items[index]) if isinstance(index, slice) else self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Encoded]:
        return iter(self.items)

    def __repr__(self) -> str:
        return f"EncodedBatch({len(self)} tensors, {self.nbytes:,} bytes, {self.ratio:.2f}x)"


def worth_threads(count: int, nbytes: int) -> bool:
    """Whether that many tensors, of so many bytes in all, gain by a thread for each.

    Kernels have threads of their own, and let the interpreter go. For what is small, or quick, waiting to have it
    back costs more than a second thread gains.
    """
    return min(torch.get_num_threads(), count) > 1 and nbytes >= count * _WORTH_A_THREAD


def side_by_side(function: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """`map` on as many threads as PyTorch may use."""
    grad = torch.is_grad_enabled()

    def call(item: A) -> B:
        with torch.set_grad_enabled(grad):  # each thread has a flag of its own
            return function(item)

    with ThreadPoolExecutor(min(torch.get_num_threads(), len(items))) as pool:
        return list(pool.map(call, items))


Key = tuple[int, int, tuple[int, ...], torch.dtype]


def key_of(part: Tensor) -> Key:
    """Equal for tensors that are the same memory."""
    return part.data_ptr(), part.nbytes, tuple(part.shape), part.dtype


def _moved(items: Sequence[Encoded], move: Callable[[list[Tensor]], list[Tensor]]) -> tuple[Encoded, ...]:
    """The items with their parts as `move` gives all of them: what is one tensor in several remains one."""
    for item in items:
        if not isinstance(item, Encoded):
            raise SpecError(f"expected Encoded, got {type(item).__name__}")
    keys = [{name: key_of(part) for name, part in item.parts.items()} for item in items]
    distinct = {key: item.parts[name] for item, own in zip(items, keys, strict=True) for name, key in own.items()}
    moved = dict(zip(distinct, move(list(distinct.values())), strict=True))
    return tuple(
        Encoded(item.chain, item.specs, {name: moved[key] for name, key in own.items()})
        for item, own in zip(items, keys, strict=True)
    )


def _gathered(parts: list[Tensor]) -> list[Tensor]:
    """In one allocation, where they are on one device. What has no bytes is where it was."""
    filled = [part for part in parts if part.nbytes]
    devices = {part.device for part in filled}
    if len(devices) != 1:
        return parts
    sizes = [size for part in filled for size in (part.nbytes, -part.nbytes % _ALIGNMENT)]
    pieces = torch.empty(sum(sizes), dtype=torch.uint8, device=devices.pop()).split(sizes)[::2]
    rooms = [_as(piece, part) for piece, part in zip(pieces, filled, strict=True)]
    torch._foreach_copy_(rooms, filled)
    waiting = iter(rooms)
    return [next(waiting) if part.nbytes else part for part in parts]


def _as(piece: Tensor, part: Tensor) -> Tensor:
    """The memory of a row of bytes, as a tensor like this one."""
    if part.dtype != torch.uint8:
        piece = piece.view(part.dtype)
    return piece if part.dim() == 1 else piece.view(part.shape)


def _flatten(batch: EncodedBatch) -> tuple[list[Encoded], None]:
    return list(batch.items), None


def _unflatten(items: object, context: None) -> EncodedBatch:
    return EncodedBatch(tuple(items))  # type: ignore[arg-type]  # pytree hands back what it was given


pytree.register_pytree_node(EncodedBatch, _flatten, _unflatten, serialized_type_name="laconic.EncodedBatch")
