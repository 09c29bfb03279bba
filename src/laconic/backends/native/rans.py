"""The range coder in C++: vectors of lanes, and many small tensors in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from laconic.backends.native import core
from laconic.backends.native.streams import aligned, cut, is_aligned, place
from laconic.errors import CorruptData, SpecError
from laconic.ops import LIBRARY
from laconic.ops.rans import MOST_SHARED_BYTES, NO_BOOK, check_pairs
from laconic.ops.streams import capacity, check_batch, check_book, check_bytes, check_codes

_core: Any = core()
if _core is None:
    raise ImportError("laconic's native part is not there; ask native.available() before importing its bodies")


def share(batch: Sequence[Tensor]) -> Tensor:
    itemsize = check_batch(batch)
    sources = [aligned(codes) for codes in batch]
    book = torch.empty(MOST_SHARED_BYTES, dtype=torch.uint8)
    written: int = _core.rans_share(
        [place(codes) for codes in sources], itemsize, book.data_ptr(), torch.get_num_threads()
    )
    return cut(book, _checked(written))


def encode(codes: Tensor, out: Tensor, book: Tensor | None = None) -> Tensor:
    check_codes(codes)
    check_bytes(out, capacity(codes))
    length = torch.empty((), dtype=torch.int64)
    _write([codes], codes.element_size(), out, length, book)
    return length


def encode_new(codes: Tensor, book: Tensor | None = None) -> Tensor:
    room = codes.new_empty(capacity(codes), dtype=torch.uint8)
    return cut(room, int(encode(codes, room, book)))


def encode_many(batch: Sequence[Tensor], book: Tensor | None = None) -> tuple[Tensor, Tensor]:
    itemsize = check_batch(batch)
    room = torch.empty(sum(map(capacity, batch)), dtype=torch.uint8)
    lengths = torch.empty(len(batch), dtype=torch.int64)
    return cut(room, _write(batch, itemsize, room, lengths, book)), lengths


def decode(stream: Tensor, out: Tensor, book: Tensor | None = None) -> None:
    check_codes(out)
    check_bytes(stream)
    _read([stream], [out], out.element_size(), book)


def decode_many(streams: Sequence[Tensor], outs: Sequence[Tensor], book: Tensor | None = None) -> None:
    _read(streams, outs, check_pairs(streams, outs), book)


def _write(batch: Sequence[Tensor], itemsize: int, room: Tensor, lengths: Tensor, book: Tensor | None) -> int:
    check_book(book)
    sources = [aligned(codes) for codes in batch]
    written: int = _core.rans_encode(
        *(
            [place(codes) for codes in sources],
            itemsize,
            room.data_ptr(),
            lengths.data_ptr(),
            *place(book),
            torch.get_num_threads(),
        )
    )
    if written == -2:
        raise SpecError(NO_BOOK)
    return _checked(written)


def _read(streams: Sequence[Tensor], outs: Sequence[Tensor], itemsize: int, book: Tensor | None) -> None:
    check_book(book)
    targets = [out if is_aligned(out) else torch.empty_like(out) for out in outs]
    places = [(*place(stream), out.data_ptr(), out.numel()) for stream, out in zip(streams, targets, strict=True)]
    if not _core.rans_decode(places, itemsize, *place(book), torch.get_num_threads()):
        what = f"{streams[0].numel()} bytes are" if len(outs) == 1 else f"one of {len(outs)} streams is"
        raise CorruptData(f"rans: {what} not what {outs[0].numel()} codes of {outs[0].dtype} give")
    for out, target in zip(outs, targets, strict=True):
        if target is not out:
            out.copy_(target)


def _checked(written: int) -> int:
    if written < 0:
        raise MemoryError("rans: no memory to encode with")
    return written


LIBRARY.impl("rans_share", share, "CPU")
LIBRARY.impl("rans_encode", encode_new, "CPU")
LIBRARY.impl("rans_encode_out", encode, "CPU")
LIBRARY.impl("rans_encode_many", encode_many, "CPU")
LIBRARY.impl("rans_decode_out", decode, "CPU")
LIBRARY.impl("rans_decode_many", decode_many, "CPU")
