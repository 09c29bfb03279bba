"""Codes to a Huffman stream and back: `huffman_encode` and `huffman_decode`, each also writing into given memory.

    codes (int8, uint8, int16, int32)  -->  uint8, at most one byte more than the codes have

The stream is exactly as long as it says: with the number of codes and their size, nothing else is needed to read it,
unless it is in words of the books that `huffman_share` made for a batch. What writes one into `out` gives the number
of its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from laconic.errors import CorruptData, SpecError
from laconic.ops import LIBRARY, load_bodies
from laconic.ops.huffman_book import SYMBOLS, Array
from laconic.ops.huffman_stream import CONSTANT, MOST_BOOKS, MOST_LOG, RAW, SHARED, WORDS, load_books, read_stream
from laconic.ops.huffman_write import share_books, write_stream
from laconic.ops.streams import bytes_of, capacity, check_batch, check_book, check_bytes, check_codes, row_of

LIBRARY.define("huffman_share(Tensor[] batch) -> Tensor")
LIBRARY.define("huffman_encode(Tensor codes, Tensor? book=None) -> Tensor")
LIBRARY.define("huffman_encode_out(Tensor codes, Tensor(a!) out, Tensor? book=None) -> Tensor")
LIBRARY.define("huffman_decode(Tensor stream, SymInt[] shape, ScalarType dtype, Tensor? book=None) -> Tensor")
LIBRARY.define("huffman_decode_out(Tensor stream, Tensor(a!) out, Tensor? book=None) -> ()")

MOST_SHARED_BYTES = MOST_BOOKS * SYMBOLS // 2
NO_BOOK = "huffman: expected a book that huffman_share gave for codes of this size"


def refuse_hopeless(stream: Tensor, count: int, itemsize: int) -> None:
    """CorruptData where so many codes cannot be in these bytes: before memory is asked for them."""
    least = {RAW: count * itemsize, CONSTANT: itemsize, WORDS: 2 * (count >> MOST_LOG)}
    least[SHARED] = least[WORDS]
    mode = int(stream[0]) if stream.numel() else -1
    if stream.numel() - 1 < least.get(mode, 1 << 62):
        raise CorruptData(f"huffman: expected {count} codes of {itemsize} bytes, found {stream.numel()} bytes of less")


# The reference: on any device, by way of the CPU.


def _shared_books(book: Tensor | None, itemsize: int) -> Array | None:
    check_book(book)
    try:
        return load_books(bytes_of(book), itemsize) if book is not None and book.numel() else None
    except CorruptData as error:
        raise SpecError(NO_BOOK) from error


def reference_share(batch: Sequence[Tensor]) -> Tensor:
    check_batch(batch)
    stored = np.frombuffer(share_books([row_of(codes) for codes in batch]), np.uint8)
    return torch.from_numpy(stored.copy()).to(batch[0].device)


def reference_encode(codes: Tensor, out: Tensor, book: Tensor | None = None) -> Tensor:
    check_codes(codes)
    check_bytes(out, capacity(codes))
    stream = write_stream(row_of(codes), _shared_books(book, codes.element_size()))
    out[: len(stream)].copy_(torch.from_numpy(stream))
    return torch.tensor(len(stream))


def reference_decode(stream: Tensor, out: Tensor, book: Tensor | None = None) -> None:
    check_codes(out)
    check_bytes(stream)
    check_book(book)
    codes = read_stream(bytes_of(stream), bytes_of(book), out.numel(), out.element_size())
    out.view(-1).view(torch.uint8).copy_(torch.from_numpy(codes).view(torch.uint8))


# The functional operators: the same for every backend, on top of the ones that write into `out`.


def huffman_encode(codes: Tensor, book: Tensor | None = None) -> Tensor:
    room = codes.new_empty(capacity(codes), dtype=torch.uint8)
    return room[: int(torch.ops.laconic.huffman_encode_out.default(codes, room, book))].clone()


def huffman_decode(stream: Tensor, shape: Sequence[int], dtype: torch.dtype, book: Tensor | None = None) -> Tensor:
    refuse_hopeless(stream, math.prod(shape), dtype.itemsize)
    out = stream.new_empty(list(shape), dtype=dtype)
    torch.ops.laconic.huffman_decode_out.default(stream, out, book)
    return out


LIBRARY.impl("huffman_share", reference_share, "CompositeExplicitAutograd")
LIBRARY.impl("huffman_encode", huffman_encode, "CompositeExplicitAutograd")
LIBRARY.impl("huffman_decode", huffman_decode, "CompositeExplicitAutograd")
LIBRARY.impl("huffman_encode_out", reference_encode, "CompositeExplicitAutograd")
LIBRARY.impl("huffman_decode_out", reference_decode, "CompositeExplicitAutograd")


def _fake_share(batch: Sequence[Tensor]) -> Tensor:
    return batch[0].new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.uint8)


def _fake_encode(codes: Tensor, book: Tensor | None = None) -> Tensor:
    return codes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.uint8)


def _fake_encode_out(codes: Tensor, out: Tensor, book: Tensor | None = None) -> Tensor:
    return torch.empty((), dtype=torch.int64)


def _fake_decode(stream: Tensor, shape: Sequence[int], dtype: torch.dtype, book: Tensor | None = None) -> Tensor:
    return stream.new_empty(list(shape), dtype=dtype)


def _fake_decode_out(stream: Tensor, out: Tensor, book: Tensor | None = None) -> None:
    return None


torch.library.register_fake("laconic::huffman_share", _fake_share, lib=LIBRARY)
torch.library.register_fake("laconic::huffman_encode", _fake_encode, lib=LIBRARY)
torch.library.register_fake("laconic::huffman_encode_out", _fake_encode_out, lib=LIBRARY)
torch.library.register_fake("laconic::huffman_decode", _fake_decode, lib=LIBRARY)
torch.library.register_fake("laconic::huffman_decode_out", _fake_decode_out, lib=LIBRARY)

load_bodies("huffman")
