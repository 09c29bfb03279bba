"""Codes to a stream of rows that were there before and rows that were not, and back: `vlz_encode` and `vlz_decode`,
each also for given memory and for many.

    codes (int8, uint8, int16, int32) [.., columns]  -->  uint8, at most two bytes more than the codes have
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from laconic.ops import LIBRARY, load_bodies
from laconic.ops.repeats import bytes_of, check_rows
from laconic.ops.streams import check_bytes, check_codes
from laconic.ops.vlz_stream import read, write

LIBRARY.define("vlz_encode(Tensor codes, int window, int block) -> Tensor")
LIBRARY.define("vlz_encode_out(Tensor codes, int window, int block, Tensor(a!) out) -> Tensor")
LIBRARY.define("vlz_encode_many(Tensor[] batch, int window, int block) -> (Tensor, Tensor)")
LIBRARY.define("vlz_decode(Tensor stream, SymInt[] shape, ScalarType dtype) -> Tensor")
LIBRARY.define("vlz_decode_out(Tensor stream, Tensor(a!) out) -> ()")
LIBRARY.define("vlz_decode_many_out(Tensor[] streams, Tensor(a!)[] outs) -> ()")


def capacity(nbytes: int) -> int:
    """The most bytes that encoding so many gives."""
    return 2 + nbytes


# The reference: on any device, by way of the CPU.


def reference_encode(codes: Tensor, window: int, block: int, out: Tensor) -> Tensor:
    """Gives the number of bytes that were written."""
    check_codes(codes)
    check_rows(codes)
    check_bytes(out, capacity(codes.nbytes))
    stream = write(bytes_of(codes), codes.element_size(), window, block)
    out[: len(stream)].copy_(torch.from_numpy(stream))
    return torch.tensor(len(stream))


def reference_decode(stream: Tensor, out: Tensor) -> None:
    check_codes(out)
    check_bytes(stream)
    data = read(stream.cpu().numpy().tobytes(), *check_rows(out), out.element_size())
    out.view(-1).view(torch.uint8).copy_(torch.from_numpy(np.ascontiguousarray(data).reshape(-1)))


# The other operators: on top of those, for every backend that has no better ones.


def encode(codes: Tensor, window: int, block: int) -> Tensor:
    room = codes.new_empty(capacity(codes.nbytes), dtype=torch.uint8)
    return room[: int(torch.ops.laconic.vlz_encode_out.default(codes, window, block, room))].clone()


def encode_many(batch: Sequence[Tensor], window: int, block: int) -> tuple[Tensor, Tensor]:
    """All streams, one behind the other, and their sizes."""
    streams = [torch.ops.laconic.vlz_encode.default(codes, window, block) for codes in batch]
    return torch.cat(streams), torch.tensor([stream.numel() for stream in streams])


def decode(stream: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    out = stream.new_empty(list(shape), dtype=dtype)
    torch.ops.laconic.vlz_decode_out.default(stream, out)
    return out


def decode_many(streams: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
    for stream, out in zip(streams, outs, strict=True):
        torch.ops.laconic.vlz_decode_out.default(stream, out)


LIBRARY.impl("vlz_encode", encode, "CompositeExplicitAutograd")
LIBRARY.impl("vlz_encode_out", reference_encode, "CompositeExplicitAutograd")
LIBRARY.impl("vlz_encode_many", encode_many, "CompositeExplicitAutograd")
LIBRARY.impl("vlz_decode", decode, "CompositeExplicitAutograd")
LIBRARY.impl("vlz_decode_out", reference_decode, "CompositeExplicitAutograd")
LIBRARY.impl("vlz_decode_many_out", decode_many, "CompositeExplicitAutograd")


def _fake_encode(codes: Tensor, window: int, block: int) -> Tensor:
    return codes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.uint8)


def _fake_encode_out(codes: Tensor, window: int, block: int, out: Tensor) -> Tensor:
    return torch.empty((), dtype=torch.int64)


def _fake_encode_many(batch: Sequence[Tensor], window: int, block: int) -> tuple[Tensor, Tensor]:
    return _fake_encode(batch[0], window, block), torch.empty(len(batch), dtype=torch.int64)


def _fake_decode(stream: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    return stream.new_empty(list(shape), dtype=dtype)


def _fake_decode_out(stream: object, out: object) -> None:
    return None


torch.library.register_fake("laconic::vlz_encode", _fake_encode, lib=LIBRARY)
torch.library.register_fake("laconic::vlz_encode_out", _fake_encode_out, lib=LIBRARY)
torch.library.register_fake("laconic::vlz_encode_many", _fake_encode_many, lib=LIBRARY)
torch.library.register_fake("laconic::vlz_decode", _fake_decode, lib=LIBRARY)
torch.library.register_fake("laconic::vlz_decode_out", _fake_decode_out, lib=LIBRARY)
torch.library.register_fake("laconic::vlz_decode_many_out", _fake_decode_out, lib=LIBRARY)

load_bodies("vlz")
