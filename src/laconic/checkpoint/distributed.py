"""torch.distributed.checkpoint with a codec for each tensor: a storage writer and reader, on PyTorch's own extension
points for them.

    .metadata              PyTorch's, as its FileSystemWriter writes it: what is where, and in which piece
    __RANK_0.laconic       pieces one after another, each what Encoded.to_bytes() gives, checksum and all: of a tensor;
                           or of bytes, where something is no tensor, or of a dtype that no description names
"""

from __future__ import annotations

import io
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from laconic.chain import Codec, codec, decode
from laconic.checkpoint.rules import Rules
from laconic.description import DTYPES
from laconic.encoded import Encoded
from laconic.errors import CorruptData, SpecError
from laconic.files import file_errors, replacing
from laconic.wire import copied, raw_bytes

_DTYPES = frozenset(DTYPES.values())
_RAW = codec("raw")


@dataclass(frozen=True)
class Piece:
    """Where a rank put what it wrote. PyTorch's own reader finds the fields it expects, and a codec it has not."""

    relative_path: str
    offset: int
    length: int
    saved: bool = False
    """Whether it is the bytes that torch.save gave."""
    transform_descriptors: tuple[str, ...] = ("laconic/1",)


class DistributedWriter(FileSystemWriter):
    """For `torch.distributed.checkpoint.save(state, storage_writer=DistributedWriter(path, rules))`, on any number of
    ranks, or in one process without them.

    `rules` is a codec, or codecs by patterns of names, of which the first that fits decides; a nested state dict's
    names are joined by dots, as PyTorch does it. A rank compresses its own shard: ranges, scales and bounds are those
    of the shard. What no rule names, or its codec cannot take, is kept; every tensor has a checksum. Give each
    checkpoint a folder of its own, as with PyTorch's writer: one that is overwritten, and not finished, mixes two.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        rules: Rules | Mapping[str, str | Codec | None] | str | Codec,
        *,
        overwrite: bool = True,
    ) -> None:
        super().__init__(path, overwrite=overwrite)
        self.rules = Rules.of(rules)

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes what this rank was asked to: one file, replaced whole or not at all."""
        name = f"{plan.storage_data.prefix}0.laconic"
        with replacing(Path(self.path) / name) as temporary, temporary.open("wb") as file:
            results = [self._write(file, name, item, planner) for item in plan.items]
            file.flush()
            os.fsync(file.fileno())
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def _write(self, file: BinaryIO, name: str, item: WriteItem, planner: SavePlanner) -> WriteResult:
        value = planner.resolve_data(item)
        enc, saved = self._encode(item.index.fqn, value) if isinstance(value, Tensor) else (_of_bytes(value), False)
        piece = Piece(name, file.tell(), file.write(enc.to_bytes()), saved)
        return WriteResult(index=item.index, size_in_bytes=piece.length, storage_data=piece)

    def _encode(self, name: str, x: Tensor) -> tuple[Encoded, bool]:
        plain = x.detach().cpu().resolve_conj().resolve_neg()
        if plain.layout is not torch.strided or plain.dtype not in _DTYPES:
            buffer = io.BytesIO()
            torch.save(plain, buffer)
            return _of_bytes(buffer), True
        item = self.rules.encode(name, plain).item
        return item if isinstance(item, Encoded) else _RAW.encode(item), False


class DistributedReader(FileSystemReader):
    """For `torch.distributed.checkpoint.load(state, storage_reader=DistributedReader(path))`: what DistributedWriter
    wrote, into a state dict that may be sharded in another way, or not at all."""

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads each piece once, and copies what was asked of it."""
        wanted: dict[Piece, list[ReadItem]] = defaultdict(list)
        for item in plan.items:
            piece = self.storage_data[item.storage_index]
            if not isinstance(piece, Piece):
                return super().read_data(plan, planner)  # PyTorch's own writer wrote this
            wanted[piece].append(item)
        for piece, items in wanted.items():
            x = self._read(piece, items[0].storage_index.fqn)
            for item in items:
                if item.type == LoadItemType.BYTE_IO:
                    planner.load_bytes(item, io.BytesIO(raw_bytes(x)))
                else:
                    _fill(x, item, planner)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _read(self, piece: Piece, name: str) -> Tensor:
        path = Path(self.path) / piece.relative_path
        with file_errors(path, "read"), path.open("rb") as file:
            file.seek(piece.offset)
            data = file.read(piece.length)
        try:
            x = decode(Encoded.from_bytes(data))
        except CorruptData as error:
            raise CorruptData(f"'{path}', '{name}': {error}") from error
        return torch.load(io.BytesIO(raw_bytes(x)), weights_only=True) if piece.saved else x


def _fill(x: Tensor, item: ReadItem, planner: LoadPlanner) -> None:
    """Copies the part of a piece that is asked for to where it belongs."""
    for dim, (start, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
        x = x.narrow(dim, start, length)
    target = planner.resolve_tensor(item).detach()
    if x.shape != target.shape:
        raise SpecError(f"'{item.dest_index.fqn}': expected {list(target.shape)}, found {list(x.shape)}")
    target.copy_(x)
    planner.commit_tensor(item, target)


def _of_bytes(buffer: io.BytesIO) -> Encoded:
    return _RAW.encode(copied(buffer.getbuffer()))
