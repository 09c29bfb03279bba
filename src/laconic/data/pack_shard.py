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
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from laconic.data.pack_plan import Plan, transforms
from laconic.data.pack_quality import NONE, Edges, Sums, compare, edges_of, refuse_nan
from laconic.data.store import PackedArray
from laconic.data.zarr_codec import to_tensor
from laconic.encoded import Encoded
from laconic.errors import DataError
from laconic.files import replacing

NOTES = ".pack"


@dataclass(frozen=True)
class Job:
    """What a worker is given: it can write any shard of the store, in any process."""

    plan: Plan
    partial: Path

    @property
    def notes(self) -> Path:
        return self.partial / NOTES

    def array(self, name: str) -> PackedArray:
        return PackedArray(self.partial / name, self.plan.codec, self.plan.spec(name), self.plan.per_shard)

    def done(self, shard: int) -> dict[str, Sums] | None:
        """What its notes say; None where there are none."""
        try:
            found = json.loads((self.notes / f"{shard}.json").read_text())
        except FileNotFoundError:
            return None
        return {name: Sums(**sums) for name, sums in found.items()}

    def write(self, shard: int) -> int:
        """Gives the number of the shard."""
        with torch.no_grad():
            beside, sums = self._write(shard)
        if self.plan.beside:
            with replacing(self.notes / f"{shard}.npz") as partial, partial.open("wb") as file:
                np.savez(file, allow_pickle=False, **beside)
        with replacing(self.notes / f"{shard}.json") as partial:
            partial.write_text(json.dumps({name: found.as_dict() for name, found in sums.items()}))
        return shard

    def beside(self, shard: int, name: str) -> NDArray[Any]:
        with np.load(self.notes / f"{shard}.npz", allow_pickle=False) as found:
            return found[_member(name)]  # type: ignore[no-any-return]

    def _write(self, shard: int) -> tuple[dict[str, NDArray[Any]], dict[str, Sums]]:
        plan, sums = self.plan, dict.fromkeys(self.plan.packed, NONE)
        arrays = {name: self.array(name) for name in plan.packed}
        pieces: dict[str, list[NDArray[Any]]] = {_member(name): [] for name in plan.beside}
        room: dict[str, Tensor] = {}
        with ExitStack() as files:
            add = {name: files.enter_context(array.writing(shard)) for name, array in arrays.items()}
            for start, found in self._blocks(shard):
                for name, array in arrays.items():
                    x = to_tensor(found.pop(name))
                    edges = edges_of(x)
                    encoded = _encoded(array, name, x, edges, start)
                    add[name](encoded)
                    sums[name] = compare(x, _restored(array, encoded, x, room), sums[name], edges)
                for name in plan.beside:
                    pieces[_member(name)].append(found[name])
        sums = {
            name: replace(sums[name], after=array.shard_path(shard).stat().st_size) for name, array in arrays.items()
        }
        return {name: np.concatenate(piece) for name, piece in pieces.items()}, sums

    def _blocks(self, shard: int) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        plan = self.plan
        samples = plan.samples_in(shard)
        for start in range(samples.start, samples.stop, plan.block):
            stop = min(start + plan.block, samples.stop)
            yield start, plan.source.read(start, stop, (*plan.packed, *plan.beside))


def _encoded(array: PackedArray, name: str, x: Tensor, edges: Edges, first: int) -> list[Encoded]:
    """Those samples, of which the first is `first`. What the codec cannot take is named by its number."""
    if x.is_floating_point() and transforms(array.codec):
        refuse_nan(x, edges, name, first, str(array.codec))
    try:
        return array.encode(x)
    except DataError as error:
        for i, sample in enumerate(x.split(1)):
            try:
                array.encode(sample)
            except DataError as reason:
                raise DataError(f"'{name}': sample {first + i}: {reason}") from error
        raise


def _restored(array: PackedArray, encoded: list[Encoded], x: Tensor, room: dict[str, Tensor]) -> Tensor:
    """What will be read; in the memory that it was in before: new memory costs more than decoding."""
    name = array.path.name
    if name not in room or len(room[name]) < len(x):
        room[name] = torch.empty_like(x)
    out, at = room[name][: len(x)], 0
    for enc in encoded:
        array.codec.decode(enc, out[at : at + len(enc)])
        at += len(enc)
    return out


def _member(name: str) -> str:
    """How a .npz calls it, apart from what `savez` calls its own arguments."""
    return f"beside.{name}"
