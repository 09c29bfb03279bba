"""A packed store: a Zarr v3 group of arrays whose first dimension counts samples.

    OUT.zarr/zarr.json                  attributes: {"laconic": {"format": 1, "packed": ["images"], ..}}
    OUT.zarr/images/zarr.json           shape [N, ..], chunks of one sample, shards of many, serializer laconic
    OUT.zarr/images/c/K/0/0/0           shard K, see shard.py
    OUT.zarr/labels/..                  what travels beside, as Zarr keeps it by default

While it is being written it is called OUT.zarr.partial: what has the name is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.chain import Codec
from laconic.chain import codec as to_codec
from laconic.data.layout import Layout, buffer
from laconic.data.shard import Shard, index_bytes, index_size, write_pieces
from laconic.data.zarr_codec import ZarrCodec, torch_dtype
from laconic.encoded import Encoded, has_fixed_size, promised_parts, split_parts
from laconic.errors import CorruptData, SpecError, VersionError
from laconic.files import replacing
from laconic.stage import Stage, TensorSpec

FORMAT = 1
KEY = "laconic"


@dataclass(frozen=True)
class PackedArray:
    """One packed array of a store, opened."""

    path: Path
    codec: Codec
    spec: TensorSpec
    """Of all of it."""
    per_shard: int

    @classmethod
    def open(cls, path: Path) -> PackedArray:
        import zarr

        array = zarr.open_array(path, mode="r")
        codec = next((c for c in _codecs(getattr(array.metadata, "codecs", ())) if isinstance(c, ZarrCodec)), None)
        sizes = (array.chunks, array.shards)
        if codec is None or sizes[1] is None or sizes[0] != (1, *array.shape[1:]) or sizes[1][1:] != array.shape[1:]:
            raise SpecError(f"{path} was not packed by laconic: expected shards of single samples. Try `laconic pack`")
        spec = TensorSpec(array.shape, torch_dtype(array.dtype))
        return cls(path, to_codec(codec.codec), spec, sizes[1][0])

    @classmethod
    def create(
        cls, path: Path, spec: TensorSpec, codec: Codec, per_shard: int, dimensions: tuple[str, ...] | None = None
    ) -> PackedArray:
        """Room for samples of which none is there yet."""
        import zarr

        sample = spec.shape[1:]
        zarr.create_array(
            path,
            shape=spec.shape,
            dtype=str(spec.dtype).removeprefix("torch."),
            chunks=(1, *sample),
            shards=(per_shard, *sample),
            serializer=ZarrCodec(codec),
            compressors=None,
            dimension_names=dimensions,
        )
        return cls(path, codec, spec, per_shard)

    def __len__(self) -> int:
        return self.spec.shape[0]

    @property
    def sample(self) -> TensorSpec:
        """Of one, with its first dimension of 1."""
        return TensorSpec((1, *self.spec.shape[1:]), self.spec.dtype)

    @cached_property
    def fixed(self) -> bool:
        """Whether every sample takes the same bytes."""
        return has_fixed_size(self.codec.links, self.sample)

    @cached_property
    def splits(self) -> bool:
        """Whether each sample has parts of its own, so that samples can be gathered without decoding them."""
        if not self.fixed:
            return False
        try:
            whole, split = split_parts(self.codec.links, self.sample)
        except SpecError:
            return False
        return set(whole) == split

    @property
    def shards(self) -> int:
        return -(-len(self) // self.per_shard)

    def samples_in(self, shard: int) -> range:
        """Those that a shard holds, counted from the first of all."""
        return range(shard * self.per_shard, min(len(self), (shard + 1) * self.per_shard))

    def shard_path(self, shard: int) -> Path:
        return self.path.joinpath("c", str(shard), *["0"] * (len(self.spec.shape) - 1))

    def write(self, shard: int, samples: Tensor) -> int:
        """Encodes all samples of a shard; it is there whole, or not at all. The bytes it takes."""
        with self.writing(shard) as add:
            return add(samples) + index_size(self.per_shard)

    @contextmanager
    def writing(self, shard: int) -> Iterator[Callable[[Tensor | Sequence[Encoded]], int]]:
        """For a shard's samples some at a time: what it gives is called with them in order, or with what `encode`
        made of them, and says what they take. The file takes its place when the block ends well."""
        target = self.shard_path(shard)
        target.parent.mkdir(parents=True, exist_ok=True)
        lengths: list[int] = []
        with replacing(target) as partial, partial.open("ab") as file:

            def add(samples: Tensor | Sequence[Encoded]) -> int:
                encoded = self.encode(samples) if isinstance(samples, Tensor) else samples
                pieces = [piece for enc in encoded for piece in self._sealed(enc)]
                write_pieces(file, [part for piece in pieces for part in piece])
                sizes = [sum(map(len, piece)) for piece in pieces]
                lengths.extend(sizes)
                return sum(sizes)

            yield add
            write_pieces(file, [index_bytes(lengths, self.per_shard)])

    def encode(self, samples: Tensor, out: Encoded | None = None) -> list[Encoded]:
        """Each as it is alone, whatever its neighbours are; all in one where that makes no difference, in the memory
        of `out` if given."""
        if self.splits:
            return [self.codec.encode(samples, out)]
        if type(self.codec.stages[-1]).share is Stage.share:
            return list(self.codec.encode_many(samples.split(1)))
        return [self.codec.encode(sample) for sample in samples.split(1)]  # together they would share a code book

    def _sealed(self, enc: Encoded) -> Iterator[Sequence[bytes | memoryview]]:
        """The bytes of each sample, in pieces."""
        if not self.splits:
            yield from ([sample.to_bytes()] for sample in _one_by_one(enc))
            return
        names = promised_parts(enc.chain, enc.specs)
        for parts in zip(*(_rows(enc.parts[name]) for name in names), strict=True):
            yield [self._layout.sealed(parts), *parts]

    @cached_property
    def _layout(self) -> Layout:
        """Of what is written now, where every sample has the same: they differ in their values alone."""
        sample = self.codec.encode(torch.zeros(self.sample.shape, dtype=self.sample.dtype))
        return Layout.of(np.frombuffer(sample.to_bytes(), np.uint8))

    def open_shard(self, shard: int) -> Shard:
        return Shard(self.shard_path(shard), self.per_shard)


def packed_arrays(path: Path | str) -> dict[str, PackedArray]:
    """Those of a complete store, by name."""
    import zarr

    path = Path(path)
    if not path.exists() or path.suffix == ".partial":
        whole = path.with_suffix("") if path.suffix == ".partial" else path
        waiting = whole.with_name(whole.name + ".partial")
        hint = f"; it was begun: finish it with `laconic pack SOURCE {whole} --resume`" if waiting.exists() else ""
        raise SpecError(f"{whole}: expected a packed store, there is none{hint}")
    if not (path / "zarr.json").is_file():
        raise SpecError(f"{path}: expected a packed store, a directory with a zarr.json; this is none")
    group = zarr.open_group(path, mode="r")
    about: Any = group.attrs.get(KEY)
    if not isinstance(about, dict) or not isinstance(about.get("packed"), list):
        raise CorruptData(f"{path}: expected attributes of '{KEY}', found {sorted(group.attrs)}")
    if about.get("format", 0) > FORMAT:
        raise VersionError(f"{path} was packed in format {about['format']}; this laconic reads up to {FORMAT}. Upgrade")
    return {name: PackedArray.open(path / name) for name in about["packed"]}


def _one_by_one(enc: Encoded) -> list[Encoded]:
    return [enc] if len(enc) == 1 else [enc[i : i + 1] for i in range(len(enc))]


def _rows(part: Tensor) -> list[memoryview]:
    """The bytes of each sample."""
    rows = part.contiguous().reshape(len(part), -1).view(torch.uint8).numpy()
    return [buffer(row) for row in rows]


def _codecs(codecs: Any) -> list[Any]:
    """Those of an array, and of its shards."""
    return [inner for codec in codecs for inner in (codec, *getattr(codec, "codecs", ()))]
