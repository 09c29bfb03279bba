"""The samples of a packed array, one after another; what is damaged is named, and does not hide the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from laconic.chain import decode
from laconic.data.shard import Shard
from laconic.data.store import PackedArray
from laconic.encoded import Encoded
from laconic.errors import CorruptData, LaconicError


class Damage(NamedTuple):
    """A sample that cannot be read."""

    array: str
    shard: str
    """The file's name within the store."""
    sample: int
    reason: str

    def __str__(self) -> str:
        return f"'{self.array}': sample {self.sample}, in {self.shard}: {self.reason}"


def encoded_samples(array: PackedArray, shard: int) -> Iterator[Encoded | Damage]:
    """Those of a shard, each checked by its checksum, and by what the array says it is."""
    samples = array.samples_in(shard)
    try:
        opened = array.open_shard(shard)
    except (LaconicError, OSError) as error:
        yield from (_damage(array, shard, sample, error) for sample in samples)
        return
    for place, sample in enumerate(samples):
        try:
            yield _encoded(array, opened, place)
        except LaconicError as error:
            yield _damage(array, shard, sample, error)


def decoded_blocks(array: PackedArray, nbytes: int) -> Iterator[Tensor]:
    """All of it, in blocks of about so many bytes. Raises CorruptData for the first sample that is damaged."""
    most = max(1, nbytes // max(1, array.sample.nbytes))
    for shard in range(array.shards):
        block: list[Encoded] = []
        for found in encoded_samples(array, shard):
            if isinstance(found, Damage):
                raise CorruptData(f"{array.path.parent}: {found}. `laconic verify` lists all that is damaged")
            block.append(found)
            if len(block) == most:
                yield together(block)
                block = []
        if block:
            yield together(block)


def together(block: list[Encoded]) -> Tensor:
    return torch.cat([decode(enc) for enc in block])


def _encoded(array: PackedArray, opened: Shard, place: int) -> Encoded:
    enc = Encoded.from_bytes(opened.sample(place).data)
    if enc.spec != array.sample:
        raise CorruptData(f"expected {array.sample}, found {enc.spec}")
    return enc


def _damage(array: PackedArray, shard: int, sample: int, error: Exception) -> Damage:
    file = array.shard_path(shard).relative_to(array.path.parent)
    return Damage(array.path.name, str(file), sample, str(error))
