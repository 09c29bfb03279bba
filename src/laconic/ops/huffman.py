"""Codes to a Huffman stream and back: `huffman_encode` and `huffman_decode`, each also writing into given memory.

    codes (int8, uint8, int16, int32)  -->  uint8, at most one byte more than the codes have

The stream is exactly as long as it says: with the number of codes and their size, nothing else is needed to read it.
What writes one into `out` gives the number of its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from laconic.errors import CorruptData, SpecError
from laconic.ops import LIBRARY, load_bodies
from laconic.ops.huffman_stream import CONSTANT, MOST_LOG, RAW, WORDS, read_stream, write_stream

LIBRARY.define("huffman_encode(Tensor codes) -> Tensor")
LIBRARY.define("huffman_encode_out(Tensor codes, Tensor(a!) out) -> Tensor")
LIBRARY.define("huffman_decode(Tensor stream, SymInt[] shape, ScalarType dtype) -> Tensor")
LIBRARY.define("huffman_decode_out(Tensor stream, Tensor(a!) out) -> ()")

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32}


def capacity(codes: Tensor) -> int:
    """The most bytes that encoding gives."""
    return 1 + codes.numel() * codes.element_size()


def check_codes(codes: Tensor) -> None:
    """Raises unless these are codes as they lie in memory. Every body asks first."""
    if codes.element_size() not in INTEGERS or not codes.is_contiguous():
        raise SpecError(f"expected contiguous codes of 1, 2 or 4 bytes, got {codes.dtype} of strides {codes.stride()}")


def check_bytes(stream: Tensor, least: int = 0) -> None:
    if stream.dtype != torch.uint8 or stream.dim() != 1 or not stream.is_contiguous() or stream.numel() < least:
        raise SpecError(f"expected a contiguous row of at least {least} uint8, got {stream.dtype}{list(stream.shape)}")


def refuse_hopeless(stream: Tensor, count: int, itemsize: int) -> None:
    """CorruptData where so many codes cannot be in these bytes: before memory is asked for them."""
    least = {RAW: count * itemsize, CONSTANT: itemsize, WORDS: 2 * (count >> MOST_LOG)}
    mode = int(stream[0]) if stream.numel() else -1
    if stream.numel() - 1 < least.get(mode, 1 << 62):
        raise CorruptData(f"huffman: expected {count} codes of {itemsize} bytes, found {stream.numel()} bytes of less")


# The reference: on any device, by way of the CPU.


def reference_encode(codes: Tensor, out: Tensor) -> Tensor:
    check_codes(codes)
    check_bytes(out, capacity(codes))
    stream = write_stream(codes.cpu().reshape(-1).view(INTEGERS[codes.element_size()]).numpy())
    out[: len(stream)].copy_(torch.from_numpy(stream))
    return torch.tensor(len(stream))


def reference_decode(stream: Tensor, out: Tensor) -> None:
    check_codes(out)
    check_bytes(stream)
    codes = torch.from_numpy(read_stream(stream.cpu().numpy(), out.numel(), out.element_size()))
    out.view(-1).view(torch.uint8).copy_(codes.view(torch.uint8))


# The functional operators: the same for every backend, on top of the ones that write into `out`.


def huffman_encode(codes: Tensor) -> Tensor:
    room = codes.new_empty(capacity(codes), dtype=torch.uint8)
    return room[: int(torch.ops.laconic.huffman_encode_out.default(codes, room))].clone()


def huffman_decode(stream: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    refuse_hopeless(stream, math.prod(shape), dtype.itemsize)
    out = stream.new_empty(list(shape), dtype=dtype)
    torch.ops.laconic.huffman_decode_out.default(stream, out)
    return out


LIBRARY.impl("huffman_encode", huffman_encode, "CompositeExplicitAutograd")
LIBRARY.impl("huffman_decode", huffman_decode, "CompositeExplicitAutograd")
LIBRARY.impl("huffman_encode_out", reference_encode, "CompositeExplicitAutograd")
LIBRARY.impl("huffman_decode_out", reference_decode, "CompositeExplicitAutograd")


def _fake_encode(codes: Tensor) -> Tensor:
    return codes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.uint8)


def _fake_encode_out(codes: Tensor, out: Tensor) -> Tensor:
    return torch.empty((), dtype=torch.int64)


def _fake_decode(stream: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    return stream.new_empty(list(shape), dtype=dtype)


def _fake_decode_out(stream: Tensor, out: Tensor) -> None:
    return None


torch.library.register_fake("laconic::huffman_encode", _fake_encode, lib=LIBRARY)
torch.library.register_fake("laconic::huffman_encode_out", _fake_encode_out, lib=LIBRARY)
torch.library.register_fake("laconic::huffman_decode", _fake_decode, lib=LIBRARY)
torch.library.register_fake("laconic::huffman_decode_out", _fake_decode_out, lib=LIBRARY)

load_bodies("huffman")
