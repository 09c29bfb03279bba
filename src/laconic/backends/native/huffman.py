"""The Huffman coder in C++: vectors where the words are written, several chunks at once where they are read."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from laconic.backends.native import core
from laconic.errors import CorruptData
from laconic.ops import LIBRARY
from laconic.ops.huffman import capacity, check_bytes, check_codes

_core: Any = core()
if _core is None:
    raise ImportError("laconic's native part is not there; ask native.available() before importing its bodies")


def encode(codes: Tensor, out: Tensor) -> Tensor:
    check_codes(codes)
    check_bytes(out, capacity(codes))
    source = codes if _aligned(codes) else codes.clone()
    written: int = _core.huffman_encode(
        source.data_ptr(), source.numel(), source.element_size(), out.data_ptr(), torch.get_num_threads()
    )
    if written < 0:
        raise MemoryError("huffman: no memory to count symbols in")
    return torch.tensor(written)


def encode_new(codes: Tensor) -> Tensor:
    """Copies what was written without torch's threads: in a forked child they would hang."""
    room = codes.new_empty(capacity(codes), dtype=torch.uint8)
    return torch.from_numpy(room[: int(encode(codes, room))].numpy().copy())


def decode(stream: Tensor, out: Tensor) -> None:
    check_codes(out)
    check_bytes(stream)
    target = out if _aligned(out) else torch.empty_like(out)
    if not _core.huffman_decode(
        *(stream.data_ptr(), stream.numel()),
        *(target.data_ptr(), target.numel(), target.element_size(), torch.get_num_threads()),
    ):
        raise CorruptData(f"huffman: {stream.numel()} bytes are not what {out.numel()} codes of {out.dtype} give")
    if target is not out:
        out.copy_(target)


def _aligned(x: Tensor) -> bool:
    """Tensors over somebody's bytes need not lie at a multiple of their element's size; C++ wants them to."""
    return x.data_ptr() % x.element_size() == 0


LIBRARY.impl("huffman_encode", encode_new, "CPU")
LIBRARY.impl("huffman_encode_out", encode, "CPU")
LIBRARY.impl("huffman_decode_out", decode, "CPU")
