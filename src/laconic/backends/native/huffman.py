"""The Huffman coder in C++: vectors where the words are written, several chunks at once where they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from laconic.backends.native import core
from laconic.backends.native.streams import aligned, cut, is_aligned, place
from laconic.errors import CorruptData, SpecError
from laconic.ops import LIBRARY
from laconic.ops.huffman import MOST_SHARED_BYTES, NO_BOOK
from laconic.ops.streams import capacity, check_batch, check_book, check_bytes, check_codes

_core: Any = core()
if _core is None:
    raise ImportError("laconic's native part is not there; ask native.available() before importing its bodies")


def share(batch: Sequence[Tensor]) -> Tensor:
    itemsize = check_batch(batch)
    sources = [aligned(codes) for codes in batch]
    book = torch.empty(MOST_SHARED_BYTES, dtype=torch.uint8)
    places = [(source.data_ptr(), source.numel()) for source in sources]
    written: int = _core.huffman_share(places, itemsize, book.data_ptr(), torch.get_num_threads())
    return cut(book, _checked(written))


def encode(codes: Tensor, out: Tensor, book: Tensor | None = None) -> Tensor:
    check_codes(codes)
    check_bytes(out, capacity(codes))
    check_book(book)
    source = aligned(codes)
    written: int = _core.huffman_encode(
        *(source.data_ptr(), source.numel(), source.element_size(), out.data_ptr()),
        *(*place(book), torch.get_num_threads()),
    )
    if written == -2:
        raise SpecError(NO_BOOK)
    return torch.tensor(_checked(written))


def encode_new(codes: Tensor, book: Tensor | None = None) -> Tensor:
    room = codes.new_empty(capacity(codes), dtype=torch.uint8)
    return cut(room, int(encode(codes, room, book)))


def decode(stream: Tensor, out: Tensor, book: Tensor | None = None) -> None:
    check_codes(out)
    check_bytes(stream)
    check_book(book)
    target = out if is_aligned(out) else torch.empty_like(out)
    if not _core.huffman_decode(
        *(*place(stream), *place(book)),
        *(target.data_ptr(), target.numel(), target.element_size(), torch.get_num_threads()),
    ):
        raise CorruptData(f"huffman: {stream.numel()} bytes are not what {out.numel()} codes of {out.dtype} give")
    if target is not out:
        out.copy_(target)


def _checked(written: int) -> int:
    if written < 0:
        raise MemoryError("huffman: no memory to count symbols in")
    return written


LIBRARY.impl("huffman_share", share, "CPU")
LIBRARY.impl("huffman_encode", encode_new, "CPU")
LIBRARY.impl("huffman_encode_out", encode, "CPU")
LIBRARY.impl("huffman_decode_out", decode, "CPU")
