"""The range coder in C++: vectors of lanes, and many small tensors in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from laconic.backends.native import core
from laconic.errors import CorruptData, SpecError
from laconic.ops import LIBRARY
from laconic.ops.rans import (
    MOST_SHARED_BYTES,
    NO_BOOK,
    capacity,
    check_batch,
    check_book,
    check_bytes,
    check_codes,
    check_pairs,
)

_core: Any = core()
if _core is None:
    raise ImportError("laconic's native part is not there; ask native.available() before importing its bodies")


def share(batch: Sequence[Tensor]) -> Tensor:
    itemsize = check_batch(batch)
    sources = [_aligned(codes) for codes in batch]
    book = torch.empty(MOST_SHARED_BYTES, dtype=torch.uint8)
    written: int = _core.rans_share(_places(sources), itemsize, book.data_ptr(), torch.get_num_threads())
    return _cut(book, _checked(written))


def encode(codes: Tensor, out: Tensor, book: Tensor | None = None) -> Tensor:
    check_codes(codes)
    check_bytes(out, capacity(codes))
    length = torch.empty((), dtype=torch.int64)
    _write([codes], codes.element_size(), out, length, book)
    return length


def encode_new(codes: Tensor, book: Tensor | None = None) -> Tensor:
    room = codes.new_empty(capacity(codes), dtype=torch.uint8)
    return _cut(room, int(encode(codes, room, book)))


def encode_many(batch: Sequence[Tensor], book: Tensor | None = None) -> tuple[Tensor, Tensor]:
    itemsize = check_batch(batch)
    room = torch.empty(sum(map(capacity, batch)), dtype=torch.uint8)
    lengths = torch.empty(len(batch), dtype=torch.int64)
    return _cut(room, _write(batch, itemsize, room, lengths, book)), lengths


def decode(stream: Tensor, out: Tensor, book: Tensor | None = None) -> None:
    check_codes(out)
    check_bytes(stream)
    _read([stream], [out], out.element_size(), book)


def decode_many(streams: Sequence[Tensor], outs: Sequence[Tensor], book: Tensor | None = None) -> None:
    _read(streams, outs, check_pairs(streams, outs), book)


def _write(batch: Sequence[Tensor], itemsize: int, room: Tensor, lengths: Tensor, book: Tensor | None) -> int:
    check_book(book)
    sources = [_aligned(codes) for codes in batch]
    written: int = _core.rans_encode(
        *(_places(sources), itemsize, room.data_ptr(), lengths.data_ptr(), *_place(book), torch.get_num_threads())
    )
    if written == -2:
        raise SpecError(NO_BOOK)
    return _checked(written)


def _read(streams: Sequence[Tensor], outs: Sequence[Tensor], itemsize: int, book: Tensor | None) -> None:
    check_book(book)
    targets = [out if _is_aligned(out) else torch.empty_like(out) for out in outs]
    places = [(*_place(stream), out.data_ptr(), out.numel()) for stream, out in zip(streams, targets, strict=True)]
    if not _core.rans_decode(places, itemsize, *_place(book), torch.get_num_threads()):
        what = f"{streams[0].numel()} bytes are" if len(outs) == 1 else f"one of {len(outs)} streams is"
        raise CorruptData(f"rans: {what} not what {outs[0].numel()} codes of {outs[0].dtype} give")
    for out, target in zip(outs, targets, strict=True):
        if target is not out:
            out.copy_(target)


def _place(data: Tensor | None) -> tuple[int, int]:
    return (0, 0) if data is None else (data.data_ptr(), data.numel())


def _places(batch: Sequence[Tensor]) -> list[tuple[int, int]]:
    return [(codes.data_ptr(), codes.numel()) for codes in batch]


def _cut(room: Tensor, written: int) -> Tensor:
    """A copy of what was written, without torch's threads: in a forked child they would hang."""
    return torch.from_numpy(room[:written].numpy().copy())


def _checked(written: int) -> int:
    if written < 0:
        raise MemoryError("rans: no memory to encode with")
    return written


def _is_aligned(x: Tensor) -> bool:
    """Tensors over somebody's bytes need not lie at a multiple of their element's size; C++ wants them to."""
    return x.data_ptr() % x.element_size() == 0


def _aligned(codes: Tensor) -> Tensor:
    return codes if _is_aligned(codes) else codes.clone()


LIBRARY.impl("rans_share", share, "CPU")
LIBRARY.impl("rans_encode", encode_new, "CPU")
LIBRARY.impl("rans_encode_out", encode, "CPU")
LIBRARY.impl("rans_encode_many", encode_many, "CPU")
LIBRARY.impl("rans_decode_out", decode, "CPU")
LIBRARY.impl("rans_decode_many", decode_many, "CPU")
