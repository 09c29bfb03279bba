"""Many arrays and one peer: what a loader would do with them, here or in the child process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laconic.encoders.peers.wrapper import Array, Settings, find


@dataclass
class Job:
    """Compresses all arrays, each with settings of its own, and brings back all."""

    peer: str
    settings: Sequence[Settings]
    arrays: Sequence[Array]
    blobs: list[Any] = field(default_factory=list)
    rooms: list[Array] = field(default_factory=list)

    def compress(self) -> None:
        wrapper = find(self.peer)
        self.blobs = [wrapper.compress(x, one) for x, one in zip(self.arrays, self.settings, strict=True)]

    def decompress(self) -> list[Array]:
        wrapper = find(self.peer)
        self.rooms = self.rooms or [np.empty_like(x) for x in self.arrays]
        jobs = zip(self.blobs, self.rooms, self.settings, strict=True)
        return [wrapper.decompress(blob, room, one) for blob, room, one in jobs]


def compress(peer: str, x: Array, settings: Settings) -> bytes:
    return bytes(find(peer).compress(x, settings))


def decompress(peer: str, data: bytes, shape: tuple[int, ...], dtype: str, settings: Settings) -> Array:
    """An array of exactly this shape and dtype; ValueError where the peer gives another."""
    room = np.empty(shape, dtype)
    found = find(peer).decompress(data, room, settings)
    if (found.size, found.dtype) != (room.size, room.dtype):
        raise ValueError(f"expected {room.size} values of {room.dtype}, found {found.size} of {found.dtype}")
    return np.ascontiguousarray(found).reshape(shape)
