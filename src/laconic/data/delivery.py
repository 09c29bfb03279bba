"""Batches on their way to the device: compressed over the link, decoded there, ahead of the one who waits.

loader --pin--> pinned memory --side stream--> device --side stream--> decoded tensors --> training
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from laconic.chain import decode
from laconic.encoded import Encoded
from laconic.errors import SpecError


def to_device(batch: Any, device: torch.device | str, non_blocking: bool = True) -> Any:
    """A batch of any structure with its tensors on the device, and every Encoded in it decoded there.

    What is compressed travels so. From pinned memory (`DataLoader(pin_memory=True)`) the call does not wait.
    """

    def deliver(leaf: Any) -> Any:
        if isinstance(leaf, Encoded):
            return decode(leaf.to(device, non_blocking=non_blocking))
        return leaf.to(device, non_blocking=non_blocking) if isinstance(leaf, Tensor) else leaf

    return _mapped(deliver, batch)


class DeviceLoader:
    """Batches of a DataLoader on a device, `ahead` of them on their way while one is used.

        for images, labels in DeviceLoader(DataLoader(dataset, 32, shuffle=True), "cuda"): ..

    On CUDA they travel from pinned memory and are decoded on a stream of their own, so that the stream that trains
    waits for neither. Elsewhere this is `to_device` of each, when its turn has come.
    """

    def __init__(self, loader: Iterable[Any], device: torch.device | str, ahead: int = 2) -> None:
        if ahead < 1:
            raise SpecError(f"ahead={ahead}: expected at least 1")
        self.loader, self.device, self.ahead = loader, torch.device(device), ahead

    def __len__(self) -> int:
        if not isinstance(self.loader, Sized):
            raise TypeError(f"{type(self.loader).__name__} does not say how many batches it has")
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        if self.device.type == "cuda":
            return _ahead_on_cuda(self.loader, self.device, self.ahead)
        return (to_device(batch, self.device) for batch in self.loader)


class _Underway(NamedTuple):
    batch: Any
    arrived: torch.cuda.Event


def _ahead_on_cuda(loader: Iterable[Any], device: torch.device, ahead: int) -> Iterator[Any]:
    """What was sent before an error is delivered before it is raised."""
    stream, underway = torch.cuda.Stream(device), deque[_Underway]()
    error: Exception | None = None
    batches = iter(loader)
    while True:
        while error is None and len(underway) <= ahead:
            try:
                underway.append(_sent(next(batches), device, stream))
            except Exception as found:  # StopIteration, too
                error = found
        if not underway:
            break
        yield _taken(underway.popleft(), device)
    if error is not None and not isinstance(error, StopIteration):
        raise error


def _sent(batch: Any, device: torch.device, stream: torch.cuda.Stream) -> _Underway:
    with torch.cuda.stream(stream):
        moved = to_device(_mapped(_pinned, batch), device)
        return _Underway(moved, stream.record_event())


def _taken(underway: _Underway, device: torch.device) -> Any:
    """For the stream that is current now; the memory is not given to others before it has done with it."""
    current = torch.cuda.current_stream(device)
    current.wait_event(underway.arrived)

    def keep(leaf: Any) -> Any:
        if isinstance(leaf, Tensor) and leaf.is_cuda:
            leaf.record_stream(current)
        return leaf

    return _mapped(keep, underway.batch)


def _pinned(leaf: Any) -> Any:
    """The allocator of pinned memory keeps it until the copy from it is done."""
    if isinstance(leaf, Encoded):
        return leaf if leaf.parts["main"].is_pinned() or leaf.device.type != "cpu" else leaf.pin_memory()
    return leaf.pin_memory() if isinstance(leaf, Tensor) and leaf.device.type == "cpu" else leaf


def _mapped(change: Callable[[Any], Any], batch: Any) -> Any:
    return pytree.tree_map(change, batch, is_leaf=lambda leaf: isinstance(leaf, Encoded))
