"""Codes to a stream of interleaved range coders (rANS) and back: `rans_encode`, `rans_decode`, and many at once.

    codes (int8, uint8, int16, int32)  -->  uint8, at most one byte more than the codes have

With the number of codes and their size, a stream is all that is needed to read it, unless it is in words of the book
that `rans_share` made for a batch. What writes one into `out` gives the number of its bytes; `rans_encode_many` gives
the streams of a batch one after another, and the number of bytes of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.errors import CorruptData, SpecError
from laconic.ops import LIBRARY, load_bodies
from laconic.ops.rans_book import Book, most_stored
from laconic.ops.rans_stream import CONSTANT, RAW, SHARED, WORDS, chunk_length, read_stream, shared_book
from laconic.ops.rans_write import share_book, write_stream
from laconic.ops.streams import bytes_of, capacity, check_batch, check_book, check_bytes, check_codes, row_of

LIBRARY.define("rans_share(Tensor[] batch) -> Tensor")
LIBRARY.define("rans_encode(Tensor codes, Tensor? book=None) -> Tensor")
LIBRARY.define("rans_encode_out(Tensor codes, Tensor(a!) out, Tensor? book=None) -> Tensor")
LIBRARY.define("rans_encode_many(Tensor[] batch, Tensor? book=None) -> (Tensor, Tensor)")
LIBRARY.define("rans_decode(Tensor stream, SymInt[] shape, ScalarType dtype, Tensor? book=None) -> Tensor")
LIBRARY.define("rans_decode_out(Tensor stream, Tensor(a!) out, Tensor? book=None) -> ()")
LIBRARY.define("rans_decode_many(Tensor[] streams, Tensor(a!)[] outs, Tensor? book=None) -> ()")

MOST_SHARED_BYTES = most_stored(itemsize=4)
NO_BOOK = "rans: expected a book that rans_share gave for codes of this size"


def check_pairs(streams: Sequence[Tensor], outs: Sequence[Tensor]) -> int:
    """The size of all codes to be read; raises unless there is a stream for each tensor."""
    if len(streams) != len(outs):
        raise SpecError(f"expected a stream for each tensor, got {len(streams)} for {len(outs)}")
    for stream in streams:
        check_bytes(stream)
    return check_batch(outs)


def refuse_hopeless(stream: Tensor, count: int, itemsize: int) -> None:
    """CorruptData where so many codes cannot be in these bytes: before memory is asked for them."""
    least = {RAW: count * itemsize, CONSTANT: itemsize, WORDS: count // chunk_length(count) if count else 0}
    least[SHARED] = least[WORDS]
    mode = int(stream[0]) & 3 if stream.numel() else -1
    if stream.numel() - 1 < least.get(mode, 1 << 62):
        raise CorruptData(f"rans: expected {count} codes of {itemsize} bytes, found {stream.numel()} bytes of less")


# The reference: on any device, by way of the CPU.


def _shared_book(book: Tensor | None, itemsize: int) -> Book | None:
    check_book(book)
    try:
        return shared_book(bytes_of(book), itemsize) if book is not None and book.numel() else None
    except CorruptData as error:
        raise SpecError(NO_BOOK) from error


def reference_share(batch: Sequence[Tensor]) -> Tensor:
    check_batch(batch)
    stored = np.frombuffer(share_book([row_of(codes) for codes in batch]), np.uint8)
    return torch.from_numpy(stored.copy()).to(batch[0].device)


def reference_encode(codes: Tensor, out: Tensor, book: Tensor | None = None) -> Tensor:
    check_codes(codes)
    check_bytes(out, capacity(codes))
    stream = write_stream(row_of(codes), _shared_book(book, codes.element_size()))
    out[: len(stream)].copy_(torch.from_numpy(stream.copy()))
    return torch.tensor(len(stream))


def reference_encode_many(batch: Sequence[Tensor], book: Tensor | None = None) -> tuple[Tensor, Tensor]:
    shared = _shared_book(book, check_batch(batch))
    streams = [write_stream(row_of(codes), shared) for codes in batch]
    lengths = torch.tensor([len(stream) for stream in streams])
    return torch.from_numpy(np.concatenate(streams)).to(batch[0].device), lengths


def reference_decode(stream: Tensor, out: Tensor, book: Tensor | None = None) -> None:
    check_codes(out)
    check_bytes(stream)
    check_book(book)
    codes = read_stream(bytes_of(stream), bytes_of(book), out.numel(), out.element_size())
    if out.numel():  # what is empty may have strides that cannot be viewed
        out.view(-1).view(torch.uint8).copy_(torch.from_numpy(codes).view(torch.uint8))


def reference_decode_many(streams: Sequence[Tensor], outs: Sequence[Tensor], book: Tensor | None = None) -> None:
    check_pairs(streams, outs)
    for stream, out in zip(streams, outs, strict=True):
        reference_decode(stream, out, book)


# The functional operators: the same for every backend, on top of the ones that write into `out`.


def rans_encode(codes: Tensor, book: Tensor | None = None) -> Tensor:
    room = codes.new_empty(capacity(codes), dtype=torch.uint8)
    return room[: int(torch.ops.laconic.rans_encode_out.default(codes, room, book))].clone()


def rans_decode(stream: Tensor, shape: Sequence[int], dtype: torch.dtype, book: Tensor | None = None) -> Tensor:
    refuse_hopeless(stream, math.prod(shape), dtype.itemsize)
    out = stream.new_empty(list(shape), dtype=dtype)
    torch.ops.laconic.rans_decode_out.default(stream, out, book)
    return out


BODIES: dict[str, Callable[..., Any]] = {
    "rans_share": reference_share,
    "rans_encode": rans_encode,
    "rans_encode_out": reference_encode,
    "rans_encode_many": reference_encode_many,
    "rans_decode": rans_decode,
    "rans_decode_out": reference_decode,
    "rans_decode_many": reference_decode_many,
}
for _name, _body in BODIES.items():
    LIBRARY.impl(_name, _body, "CompositeExplicitAutograd")


def _some_bytes(like: Tensor) -> Tensor:
    return like.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.uint8)


def _fake_share(batch: Sequence[Tensor]) -> Tensor:
    return _some_bytes(batch[0])


def _fake_encode(codes: Tensor, book: Tensor | None = None) -> Tensor:
    return _some_bytes(codes)


def _fake_encode_out(codes: Tensor, out: Tensor, book: Tensor | None = None) -> Tensor:
    return torch.empty((), dtype=torch.int64)


def _fake_encode_many(batch: Sequence[Tensor], book: Tensor | None = None) -> tuple[Tensor, Tensor]:
    return _some_bytes(batch[0]), torch.empty(len(batch), dtype=torch.int64)


def _fake_decode(stream: Tensor, shape: Sequence[int], dtype: torch.dtype, book: Tensor | None = None) -> Tensor:
    return stream.new_empty(list(shape), dtype=dtype)


def _fake_decode_out(stream: Tensor, out: Tensor, book: Tensor | None = None) -> None:
    return None


def _fake_decode_many(streams: Sequence[Tensor], outs: Sequence[Tensor], book: Tensor | None = None) -> None:
    return None


FAKES: dict[str, Callable[..., Any]] = {
    "rans_share": _fake_share,
    "rans_encode": _fake_encode,
    "rans_encode_out": _fake_encode_out,
    "rans_encode_many": _fake_encode_many,
    "rans_decode": _fake_decode,
    "rans_decode_out": _fake_decode_out,
    "rans_decode_many": _fake_decode_many,
}
for _name, _fake in FAKES.items():
    torch.library.register_fake(f"laconic::{_name}", _fake, lib=LIBRARY)

load_bodies("rans")
