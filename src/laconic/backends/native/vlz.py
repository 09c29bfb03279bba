"""Vector-based LZ in C++: all tensors of a batch in one call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.backends.native import core
from laconic.errors import CorruptData
from laconic.ops import LIBRARY
from laconic.ops.repeats import check_rows
from laconic.ops.streams import check_bytes, check_codes
from laconic.ops.vlz import capacity

_core: Any = core()
if _core is None:
    raise ImportError("laconic's native part is not there; ask native.available() before importing its bodies")


def encode_out(codes: Tensor, window: int, block: int, out: Tensor) -> Tensor:
    check_bytes(out, capacity(codes.nbytes))
    return torch.tensor(_encode((codes,), window, block, (out.data_ptr(),))[0])


def encode(codes: Tensor, window: int, block: int) -> Tensor:
    room = torch.empty(capacity(codes.nbytes), dtype=torch.uint8)
    (size,) = _encode((codes,), window, block, (room.data_ptr(),))
    return torch.from_numpy(room[:size].numpy().copy())  # not by torch, whose threads hang a child after `fork`


def encode_many(batch: Sequence[Tensor], window: int, block: int) -> tuple[Tensor, Tensor]:
    ends = list(accumulate((capacity(codes.nbytes) for codes in batch), initial=0))
    room = torch.empty(ends[-1], dtype=torch.uint8)
    sizes = _encode(batch, window, block, [room.data_ptr() + end for end in ends[:-1]])
    data = room.numpy()
    streams = [data[end : end + size] for end, size in zip(ends, sizes, strict=False)]
    return torch.from_numpy(np.concatenate(streams)), torch.tensor(sizes)


def _encode(batch: Sequence[Tensor], window: int, block: int, rooms: Sequence[int]) -> list[int]:
    items = []
    for given, room in zip(batch, rooms, strict=True):
        check_codes(given)
        codes = _aligned(given)
        items.append((codes.data_ptr(), *check_rows(codes), room, codes.element_size()))
    sizes: list[int] = _core.vlz_encode(items, window, block, torch.get_num_threads())
    return sizes


def decode(stream: Tensor, out: Tensor) -> None:
    decode_many((stream,), (out,))


def decode_many(streams: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
    targets = [_aligned(out) for out in outs]
    batch = []
    for stream, out in zip(streams, targets, strict=True):
        check_codes(out)
        check_bytes(stream)
        batch.append((out.data_ptr(), *check_rows(out), stream.data_ptr(), stream.numel(), out.element_size()))
    wrong = _core.vlz_decode(batch, torch.get_num_threads())
    if wrong >= 0:
        count = f"{outs[wrong].numel()} codes of {outs[wrong].dtype}"
        raise CorruptData(f"vlz: {streams[wrong].numel()} bytes are not what {count} give")
    for out, target in zip(outs, targets, strict=True):
        if target is not out:
            out.copy_(target)


def _aligned(codes: Tensor) -> Tensor:
    """Tensors over somebody's bytes need not lie at a multiple of their element's size; C++ wants them to."""
    return codes if codes.data_ptr() % codes.element_size() == 0 else codes.clone()


LIBRARY.impl("vlz_encode", encode, "CPU")
LIBRARY.impl("vlz_encode_out", encode_out, "CPU")
LIBRARY.impl("vlz_encode_many", encode_many, "CPU")
LIBRARY.impl("vlz_decode_out", decode, "CPU")
LIBRARY.impl("vlz_decode_many_out", decode_many, "CPU")
