"""What `laconic pack` is about to do: which arrays, how many samples a shard, how many at a time.

shard   by `shard=` alone, so that a store's bytes depend on nothing else
block   by `memory=`: what a process reads, encodes and compares at once
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.chain import Codec
from laconic.chain import codec as to_codec
from laconic.data.sources import ArrayInfo, Source, check_names
from laconic.data.zarr_codec import torch_dtype
from laconic.errors import SpecError
from laconic.stage import Kind, TensorSpec

SHARD = "64MiB"
MEMORY = "1GiB"
_BLOCK = 3 << 20
"""Bytes. Fewer, and calls take as long as what they do; more, and they have left the cache before the next step."""
COPIES = 6
"""Of a block: what is read, encoded, written, decoded, and how they differ."""
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30, "t": 10**12, "ti": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(|k|m|g|t|ki|mi|gi|ti)b?", re.IGNORECASE)
_KINDS = "biufcSU"


@dataclass(frozen=True)
class Plan:
    """All that the writing of a shard needs to know."""

    source: Source
    codec: Codec
    samples: int
    packed: tuple[str, ...]
    beside: tuple[str, ...]
    left: tuple[str, ...]
    """Arrays of another length, which stay behind."""
    per_shard: int
    block: int

    @property
    def shards(self) -> int:
        return -(-self.samples // self.per_shard)

    def samples_in(self, shard: int) -> range:
        return range(shard * self.per_shard, min(self.samples, (shard + 1) * self.per_shard))

    def bytes_of(self, shard: int) -> int:
        """As they are in the source's arrays."""
        arrays = self.source.arrays
        return len(self.samples_in(shard)) * sum(arrays[name].sample_bytes for name in (*self.packed, *self.beside))

    @property
    def total_bytes(self) -> int:
        return sum(map(self.bytes_of, range(self.shards)))

    def spec(self, name: str) -> TensorSpec:
        info = self.source.arrays[name]
        return TensorSpec(info.shape, torch_dtype(info.dtype))

    def identity(self) -> dict[str, Any]:
        """What must be the same to go on where another left off."""
        return {
            **self.source.identity(),
            "codec": str(self.codec),
            "version": [link.version for link in self.codec.links],
            "packed": list(self.packed),
            "beside": list(self.beside),
            "per_shard": self.per_shard,
        }


def plan(
    source: Source,
    codec: str | Codec,
    *,
    arrays: Sequence[str] = (),
    without: Sequence[str] = (),
    memory: int | str = MEMORY,
    shard: int | str = SHARD,
    workers: int = 1,
) -> Plan:
    """Raises SpecError for what cannot work, before anything is written."""
    chain = to_codec(codec)
    check_names(source, [*arrays, *without])
    packed = tuple(dict.fromkeys(arrays)) or (_largest(source, chain, without),)
    samples = _length(source, packed)
    for name in packed:
        _check(source, chain, name)
    others = [name for name in source.arrays if name not in packed and name not in without]
    beside = tuple(name for name in others if source.arrays[name].shape[:1] == (samples,))
    left = tuple(name for name in others if name not in beside)
    for name in beside:
        _check_beside(source, name)
    sample = sum(source.arrays[name].sample_bytes for name in (*packed, *beside))
    per_shard = _per_shard(shard, sample, source.step, samples)
    block = _block(parse_size(memory, "--memory"), workers, sample, source.step, per_shard)
    return Plan(source, chain, samples, packed, beside, left, per_shard, block)


def parse_size(value: int | str, option: str) -> int:
    """Bytes as a person writes them.

    >>> parse_size("512MiB", "--memory"), parse_size("2 GB", "--memory")
    (536870912, 2000000000)
    """
    found = _SIZE.fullmatch(str(value).strip())
    size = int(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if size <= 0:
        raise SpecError(f"{option} {value}: expected a size, such as 512MiB or 1GiB")
    return size


def _per_shard(shard: int | str, sample: int, step: int, samples: int) -> int:
    """As many as asked for; or those of so many bytes, in whole chunks of the source."""
    if str(shard).isdecimal():
        count = int(shard)
        if count < 1:
            raise SpecError("--shard 0: expected samples, such as 500, or a size, such as 64MiB")
        return min(count, samples)
    count = max(1, parse_size(shard, "--shard") // max(1, sample))
    return min(samples, count // step * step if count > step else count)


def _block(memory: int, workers: int, sample: int, step: int, per_shard: int) -> int:
    """Samples at a time. In whole chunks of the source as far as memory goes."""
    most = memory // (workers * COPIES * max(1, sample))
    if most < 1:
        least = workers * COPIES * sample / 2**20
        raise SpecError(
            f"--memory: a sample has {sample / 2**20:.3g} MiB, so that {workers} worker(s) need "
            f"{least:.0f}MiB at least. Give more, or fewer --workers"
        )
    wanted = max(1, _BLOCK // max(1, sample))
    if step > 1:
        wanted = -(-wanted // step) * step
    return min(wanted, most, per_shard)


def _largest(source: Source, codec: Codec, without: Sequence[str]) -> str:
    """The name of the array with the most bytes among floats and uint8 that the codec takes."""
    ordered = sorted(
        source.arrays, key=lambda name: -source.arrays[name].sample_bytes * (source.arrays[name].shape or (0,))[0]
    )
    numeric = [name for name in ordered if name not in without and _is_numeric(source.arrays[name])]
    reasons = []
    for name in numeric:
        try:
            _check(source, codec, name)
            return name
        except SpecError as error:
            reasons.append(str(error))
    has = ", ".join(f"'{name}' {info}" for name, info in source.arrays.items()) or "nothing"
    raise SpecError(reasons[0] if reasons else f"'{source.path}': expected an array of floats or uint8, found {has}")


def _is_numeric(info: ArrayInfo) -> bool:
    return (info.dtype.kind == "f" or info.dtype == np.uint8) and len(info.shape) > 1


def _length(source: Source, names: Sequence[str]) -> int:
    lengths = {name: (source.arrays[name].shape or (0,))[0] for name in names}
    if len(set(lengths.values())) > 1:
        raise SpecError(f"'{source.path}': packed arrays have to be of one length, these are not: {lengths}")
    return lengths[names[0]]


def _check(source: Source, codec: Codec, name: str) -> None:
    info = source.arrays[name]
    if not info.shape or info.shape[0] == 0:
        raise SpecError(f"'{source.path}': '{name}', {info}, has no samples")
    if len(info.sample) < 2 and transforms(codec):
        raise SpecError(f"'{source.path}': '{name}', {info}: '{codec}' expects samples of [H, W] or [channels, H, W]")
    try:
        codec.out_spec(TensorSpec((1, *info.sample), torch_dtype(info.dtype)))
    except (SpecError, TypeError) as error:
        raise SpecError(f"'{source.path}': '{name}', {info}, a sample at a time: {error}") from error


def transforms(codec: Codec) -> bool:
    """Whether a value comes to depend on those around it."""
    return any(stage.kind is Kind.transform and stage.name != "cast" for stage in codec.stages)


def _check_beside(source: Source, name: str) -> None:
    info = source.arrays[name]
    if info.dtype.kind not in _KINDS:
        raise SpecError(
            f"'{source.path}': '{name}' is of {info.dtype}, which cannot travel beside: expected numbers or text of "
            f"fixed length. Leave it out by --without {name}"
        )
