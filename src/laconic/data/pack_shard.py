"""One shard of a store that is being packed: read, encoded, compared, written; done when its notes are there.

OUT.zarr.partial/NAME/c/K/..       the shard of each packed array
OUT.zarr.partial/.pack/plan.json   what must be the same to go on
OUT.zarr.partial/.pack/K.npz       samples of what travels beside, until the end
OUT.zarr.partial/.pack/K.json      the sums of shard K: it is there whole
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from laconic.data.pack_plan import Plan, transforms
from laconic.data.pack_quality import NONE, Sums, compare, refuse_nan
from laconic.data.pack_room import Room
from laconic.data.store import PackedArray
from laconic.data.zarr_codec import to_tensor
from laconic.encoded import Encoded
from laconic.errors import DataError
from laconic.files import replacing

NOTES = ".pack"


@dataclass(frozen=True)
class Job:
    """What a worker is given, in whatever process."""

    plan: Plan
    partial: Path

    @property
    def notes(self) -> Path:
        return self.partial / NOTES

    def array(self, name: str) -> PackedArray:
        return PackedArray(self.partial / name, self.plan.codec, self.plan.spec(name), self.plan.per_shard)

    def notes_of(self, shard: int) -> Path:
        return self.notes / f"{shard}.json"

    def done(self, shard: int) -> dict[str, Sums] | None:
        """What its notes say; None where there are none."""
        try:
            found = json.loads(self.notes_of(shard).read_text())
        except FileNotFoundError:
            return None
        return {name: Sums(**sums) for name, sums in found.items()}

    def beside(self, shard: int, name: str) -> NDArray[Any]:
        with np.load(self.notes / f"{shard}.npz", allow_pickle=False) as found:
            return found[_member(name)]  # type: ignore[no-any-return]


class ShardWriter:
    """Writes any shard of the store, one after another. For one thread."""

    def __init__(self, job: Job) -> None:
        self.job, self._names = job, (*job.plan.packed, *job.plan.beside)
        arrays = job.plan.source.arrays
        self._rooms = {name: Room(job.array(name), arrays[name], job.plan.block) for name in job.plan.packed}

    def write(self, shard: int) -> int:
        """Gives the number of the shard."""
        with torch.no_grad():
            beside, sums = self._write(shard)
        if self.job.plan.beside:
            with replacing(self.job.notes / f"{shard}.npz") as partial, partial.open("wb") as file:
                np.savez(file, allow_pickle=False, **beside)
        with replacing(self.job.notes_of(shard)) as partial:
            partial.write_text(json.dumps({name: found.as_dict() for name, found in sums.items()}))
        return shard

    def read(self, shard: int) -> None:
        """What writing it begins with, alone: to see how long it takes."""
        for _ in self._blocks(shard):
            pass

    def _write(self, shard: int) -> tuple[dict[str, NDArray[Any]], dict[str, Sums]]:
        plan, sums = self.job.plan, dict.fromkeys(self._rooms, NONE)
        pieces: dict[str, list[NDArray[Any]]] = {_member(name): [] for name in plan.beside}
        with ExitStack() as files:
            add = {name: files.enter_context(room.array.writing(shard)) for name, room in self._rooms.items()}
            for start, found in self._blocks(shard):
                for name, room in self._rooms.items():
                    block = _Block(name, room, to_tensor(found.pop(name)), start)
                    encoded = block.encoded()
                    add[name](encoded)
                    sums[name] = block.compared(encoded, sums[name])
                for name in plan.beside:
                    pieces[_member(name)].append(found[name])
        for name, room in self._rooms.items():
            sums[name] = replace(sums[name], after=room.array.shard_path(shard).stat().st_size)
        return {name: np.concatenate(piece) for name, piece in pieces.items()}, sums

    def _blocks(self, shard: int) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        samples, block = self.job.plan.samples_in(shard), self.job.plan.block
        for start in range(samples.start, samples.stop, block):
            stop = min(start + block, samples.stop)
            room = {name: room.source[: stop - start] for name, room in self._rooms.items()}
            yield start, self.job.plan.source.read_into(start, stop, self._names, room)


class _Block(NamedTuple):
    """Some samples of an array."""

    name: str
    room: Room
    x: Tensor
    first: int
    """The number of the first of them."""

    def encoded(self) -> list[Encoded]:
        """What the codec cannot take is named by its number."""
        try:
            return self.room.encode(self.x)
        except DataError as error:
            self._refuse()
            for i, sample in enumerate(self.x.split(1)):
                try:
                    self.room.array.encode(sample)
                except DataError as reason:
                    raise DataError(f"'{self.name}': sample {self.first + i}: {reason}") from error
            raise

    def compared(self, encoded: list[Encoded], sums: Sums) -> Sums:
        """`sums`, and how far from these samples is what will be read."""
        return compare(self.x, self.room.decode(encoded), sums, self._refuse)

    def _refuse(self) -> None:
        codec = self.room.array.codec
        if self.x.is_floating_point() and transforms(codec):
            refuse_nan(self.x, self.name, self.first, str(codec))


def _member(name: str) -> str:
    """How a .npz calls it, apart from what `savez` calls its own arguments."""
    return f"beside.{name}"
