"""Samples of one packed array, in any order: shards are opened when they are needed, checksums looked at once.

Where every sample has parts of its own, of a size known before, a batch is gathered without decoding: the bytes of
each part are copied from fixed places of each sample into one tensor, and decoded all at once, or not here at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from laconic.chain import decode
from laconic.data.layout import Bytes, Layout, buffer
from laconic.data.memory import Recycled
from laconic.data.store import PackedArray
from laconic.encoded import Encoded, boundary_specs
from laconic.errors import CorruptData, FileError, SpecError, VersionError
from laconic.run import decode_all
from laconic.stage import TensorSpec

_OPEN_SHARDS = 128  # each keeps a file open
_LARGE_SAMPLE = 64 << 10  # bytes


class SampleReader:
    """Reads one packed array. For one process: others make their own."""

    def __init__(self, name: str, array: PackedArray) -> None:
        self.name, self.array = name, array
        self._sound = np.zeros(len(array), bool)
        self._layout: Layout | None = None
        self._memory = Recycled()
        self._shard = lru_cache(_OPEN_SHARDS)(array.open_shard)

    def gather(self, indices: Sequence[int]) -> Encoded:
        """These samples as one Encoded, for arrays that split by sample."""
        if not indices:
            raise SpecError("a compressed batch needs at least one sample, got none")
        self._expect(indices)
        layout = self._layout_by(indices)
        spec = _many(self.array.sample, len(indices))
        parts = {name: self._memory.tensor(_many(place.spec, len(indices))) for name, place in layout.parts.items()}
        self._copy(layout, indices, [_as_bytes(part) for part in parts.values()])
        return Encoded(layout.chain, boundary_specs(layout.chain, spec), parts)

    def decoded(self, indices: Sequence[int]) -> Tensor:
        """These samples as they went in, as nearly as the codec kept them."""
        out = self._memory.tensor(_many(self.array.sample, len(indices)))
        if self.array.splits and indices:
            decode(self.gather(indices), out)
        elif indices:
            self._decode_each(indices, out)
        return out

    def _decode_each(self, indices: Sequence[int], out: Tensor) -> None:
        """Small samples a stage for all at once; large ones where they belong, without memory of their own."""
        items = [self.encoded(index) for index in indices]
        if self.array.sample.nbytes < _LARGE_SAMPLE:
            torch.cat(decode_all(items), out=out)
            return
        for row, item in zip(out.split(1), items, strict=True):
            decode(item, row)

    def encoded(self, index: int) -> Encoded:
        """One sample, with its first dimension of 1."""
        with self._naming(index):
            enc = Encoded.from_bytes(buffer(self._bytes(index)))
            if enc.spec != self.array.sample:
                raise CorruptData(f"expected {self.array.sample}, found {enc.spec}")
            return enc

    def _copy(self, layout: Layout, indices: Sequence[int], parts: Sequence[Bytes]) -> None:
        """Of each sample the bytes of each part, to a row of it."""
        places = [slice(place.start, place.end) for place in layout.parts.values()]
        for row, index in enumerate(indices):
            with self._naming(index):
                sample = self._bytes(index)
                if len(sample) != layout.length:
                    raise CorruptData(f"expected {layout.length} bytes, found {len(sample)}")
                for part, place in zip(parts, places, strict=True):
                    part[row] = sample[place]
                if not self._sound[index]:
                    layout.check(sample, [part[row] for part in parts])
                    self._sound[index] = True

    def _expect(self, indices: Sequence[int]) -> None:
        """Of what this process has not read yet, the disk may bring several samples at once."""
        for index in indices:
            if not self._sound[index]:
                with self._naming(index):
                    shard, place = divmod(index, self.array.per_shard)
                    self._shard(shard).expect(place)

    def _layout_by(self, indices: Sequence[int]) -> Layout:
        """That of all samples, learnt from the first that is read."""
        if self._layout is None:
            with self._naming(indices[0]):
                layout = Layout.of(self._bytes(indices[0]))
                if (layout.stages, layout.spec) != (self.array.codec.stages, self.array.sample):
                    raise CorruptData(f"expected '{self.array.codec}' of {self.array.sample}, found another")
                self._layout = layout
        return self._layout

    def _bytes(self, index: int) -> Bytes:
        shard, place = divmod(index, self.array.per_shard)
        return self._shard(shard).sample(place)

    @contextmanager
    def _naming(self, index: int) -> Iterator[None]:
        """Says of an error which sample it is about."""
        try:
            yield
        except (CorruptData, VersionError, OSError) as error:
            file = self.array.shard_path(index // self.array.per_shard)
            where = (
                f"{self.array.path.parent}: array '{self.name}', sample {index} in {file.relative_to(self.array.path)}"
            )
            if isinstance(error, FileNotFoundError):
                raise CorruptData(f"{where}: this file is missing") from error
            kind = type(error) if isinstance(error, CorruptData | VersionError) else FileError
            raise kind(f"{where}: {error}") from error


def _many(spec: TensorSpec, count: int) -> TensorSpec:
    return TensorSpec((count, *spec.shape[1:]), spec.dtype)


def _as_bytes(part: Tensor) -> Bytes:
    """A row for each sample."""
    return part.reshape(-1).view(torch.uint8).numpy().reshape(len(part), -1)
