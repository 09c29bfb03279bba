"""Whether a store is as it was written; and, beside its source, whether it is as good as it says."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from laconic.chain import Codec
from laconic.data.pack_finish import report_of
from laconic.data.pack_quality import NONE, compare
from laconic.data.reading import Damage, encoded_samples, together
from laconic.data.sources import Source, check_names, open_source
from laconic.data.store import PackedArray, packed_arrays
from laconic.data.zarr_codec import to_tensor
from laconic.encoded import Encoded
from laconic.errors import SpecError
from laconic.quantisers.bound import Bound

_BLOCK = 8 << 20
_LOSS = 0.01
"""dB by which machines may differ."""
Progress = Callable[[int, int], None]


def verify(
    store: str | os.PathLike[str],
    against: str | os.PathLike[str] | None = None,
    progress: Progress = lambda done, of: None,
) -> dict[str, Any]:
    """What is wrong, in `damaged` (samples) and `wrong` (all else): sound if both are empty.

    Reads every sample's checksum and all that travels beside. With its source, too, checks that bounds hold, that the
    quality is what the attributes say, and that what travels beside is the same to the bit.
    """
    path = Path(store)
    arrays, about = packed_arrays(path), report_of(path)
    source = open_source(os.fspath(against)) if against is not None else None
    every = sum(array.spec.nbytes for array in arrays.values())
    found: dict[str, Any] = {"store": str(path), "samples": about["samples"], "damaged": [], "wrong": [], "arrays": {}}
    done = 0
    for name, array in arrays.items():
        if source is not None:
            check_source(source, name, array)
        measured = _Measured(array, source, name)
        for shard in range(array.shards):
            found["damaged"] += [_as_dict(damage) for damage in measured.shard(shard)]
            done += len(array.samples_in(shard)) * array.sample.nbytes
            progress(done, every)
        if source is not None:
            found["arrays"][name] = measured.report()
            found["wrong"] += measured.complaints(about["arrays"][name])
    for name in about.get("beside", ()):
        found["wrong"] += _beside(path, name, about["samples"], source)
    return found


def check_source(source: Source, name: str, array: PackedArray) -> None:
    check_names(source, [name])
    shape = source.arrays[name].shape
    if shape != array.spec.shape:
        raise SpecError(
            f"'{source.path}' is not what was packed: '{name}' has {shape}; the store's has {array.spec.shape}"
        )


class _Measured:
    """An array beside its source, as far as it was read."""

    def __init__(self, array: PackedArray, source: Source | None, name: str) -> None:
        self.array, self.source, self.name = array, source, name
        self.sums, self.broken, self.first_broken, self.damaged = NONE, 0, -1, False

    def shard(self, shard: int) -> Iterator[Damage]:
        """What is damaged; the rest is compared, in blocks."""
        samples, block = self.array.samples_in(shard), list[Encoded]()
        most = max(1, _BLOCK // max(1, self.array.sample.nbytes))
        for sample, found in zip(samples, encoded_samples(self.array, shard), strict=True):
            if isinstance(found, Damage):
                self._compare(sample, block)
                self.damaged = True
                yield found
                continue
            block.append(found)
            if len(block) == most:
                self._compare(sample + 1, block)
        self._compare(samples.stop, block)

    def _compare(self, stop: int, block: list[Encoded]) -> None:
        """Those before `stop`; the block is empty then."""
        encoded, first = block[:], stop - len(block)
        block.clear()
        if self.source is None or not encoded:
            return
        x = to_tensor(self.source.read(first, stop, [self.name])[self.name])
        restored = together(encoded)
        self.sums = compare(x, restored, self.sums)
        for i, good in enumerate(within_bound(self.array.codec, x, restored)):
            if not good:
                self.first_broken = self.first_broken if self.broken else first + i
                self.broken += 1

    def report(self) -> dict[str, Any]:
        found = self.sums.report(self.array.spec.dtype)
        return {key: found[key] for key in ("psnr", "max_error")}

    def complaints(self, recorded: dict[str, Any]) -> list[str]:
        found = []
        if self.broken:
            found.append(
                f"'{self.name}': {self.broken} samples are not within the bound; the first is {self.first_broken}"
            )
        psnr = self.sums.psnr(self.array.spec.dtype)
        if not self.damaged and psnr < (recorded["psnr"] or math.inf) - _LOSS:
            was = recorded["psnr"]
            found.append(
                f"'{self.name}': PSNR is {psnr:.2f} dB, and was {was or math.inf:.2f} when packed: another source?"
            )
        return found


def within_bound(codec: Codec, x: Tensor, restored: Tensor) -> list[bool]:
    """Of each sample, whether it keeps what the codec's `bound` promises; what promises nothing keeps it."""
    first = codec.stages[0]
    if not isinstance(first, Bound):
        return [True] * len(x)
    return [_within(first, a, b) for a, b in zip(x.split(1), restored.split(1), strict=True)]


def _within(stage: Bound, x: Tensor, restored: Tensor) -> bool:
    bound = stage.grid(x.contiguous()).bound.double()
    a, b = (tensor.double().reshape(len(bound), -1) for tensor in (x, restored))
    same = (a == b) | (a.isnan() & b.isnan())
    return bool((same | ((a - b).abs() <= bound[:, None])).all())


def _beside(path: Path, name: str, samples: int, source: Source | None) -> list[str]:
    import zarr

    try:
        array = zarr.open_array(path / name, mode="r")
        rows = max(1, _BLOCK * array.chunks[0] // max(1, array.nbytes // max(1, samples) * array.chunks[0]))
        for start in range(0, samples, rows):
            block = np.asarray(array[start : start + rows])
            if source is not None and not _same(source, name, start, block):
                return [f"'{name}', which travels beside, differs from the source from sample {start} on"]
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        return [f"'{name}', which travels beside, cannot be read: {error}"]
    return []


def _same(source: Source, name: str, start: int, block: Any) -> bool:
    if name not in source.arrays:
        return False
    theirs = source.read(start, start + len(block), [name])[name]
    return (
        np.ascontiguousarray(theirs).astype(block.dtype, copy=False).tobytes() == np.ascontiguousarray(block).tobytes()
    )


def _as_dict(damage: Damage) -> dict[str, Any]:
    return damage._asdict()
