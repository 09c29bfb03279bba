"""Blocks of 32 codes, each at the width its largest code needs, as bit planes. See docs/format.md.

    stream:  1 byte: 1 | length of each chunk, 4 bytes each | chunk | chunk | ..        or: 0 | the codes as they are
    chunk:   a bit per block: not all zero | widths of those that are not | their planes, lowest bit first

A plane is a 32-bit word with bit i from code i. Signed codes are zigzagged first: 0, -1, 1, -2, .. are 0, 1, 2, 3, ..
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from laconic.errors import CorruptData
from laconic.ops import LIBRARY, load_bodies

BLOCK, CHUNK = 32, 4096
RAW, PACKED = 0, 1

LIBRARY.define("bitpack_encode_out(Tensor codes, Tensor(a!) out) -> SymInt")
LIBRARY.define("bitpack_decode_out(Tensor data, Tensor(a!) out) -> ()")

Words = NDArray[np.uint32]


def capacity(count: int, itemsize: int) -> int:
    """More bytes than any stream of so many codes has, by what its writer may write ahead."""
    chunks = -(-count // CHUNK)
    return 1 + chunks * (4 + CHUNK // BLOCK // 8 + CHUNK // BLOCK + CHUNK * itemsize) + 64


def check_length(nbytes: int, count: int, itemsize: int) -> None:
    """Raises where these are too few bytes for so many codes: before memory is allocated for those."""
    least = min(1 + count * itemsize, 1 + 4 * -(-count // CHUNK) + -(-count // (8 * BLOCK)))
    if nbytes < least:
        raise CorruptData(f"bitpack: expected at least {least} bytes for {count} codes, found {nbytes}")


def reference_encode(codes: Tensor, out: Tensor) -> int:
    flat = codes.detach().cpu().contiguous().view(-1).numpy()
    z = zigzag(flat)
    chunks = [_encode_chunk(z[at : at + CHUNK], flat.itemsize) for at in range(0, len(z), CHUNK)]
    sizes = np.array([len(chunk) for chunk in chunks], "<u4")
    data = bytes([PACKED]) + sizes.tobytes() + b"".join(chunks)
    if len(data) > 1 + flat.nbytes:
        data = bytes([RAW]) + flat.tobytes()
    out[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return len(data)


def reference_decode(data: Tensor, out: Tensor) -> None:
    stream = data.detach().cpu().contiguous().numpy()
    spare = np.empty(out.numel(), _numpy_dtype(out.dtype))
    if len(stream) == 0:
        raise CorruptData("bitpack: expected a stream, found no bytes")
    if stream[0] == RAW and len(stream) == 1 + spare.nbytes:
        codes = stream[1:].view(spare.dtype)
    elif stream[0] == PACKED:
        codes = unzigzag(_decode_chunks(stream[1:], len(spare), spare.itemsize), spare.dtype)
    else:
        raise CorruptData(f"bitpack: the stream begins with {stream[0]}, and has {len(stream)} bytes")
    out.copy_(torch.from_numpy(codes.copy()).view(out.shape))


def zigzag(codes: NDArray[np.generic]) -> Words:
    """Signed codes as unsigned ones, small where those were; unsigned ones as they are."""
    if codes.dtype.kind == "u":
        return codes.astype(np.uint32)
    wide = codes.astype(np.int64)
    return np.where(wide < 0, -2 * wide - 1, 2 * wide).astype(np.uint32)


def unzigzag(z: Words, dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
    if dtype.kind == "u":
        return z.astype(dtype)
    return ((z >> 1).astype(np.int64) ^ -(z & 1).astype(np.int64)).astype(dtype)


def _encode_chunk(z: Words, itemsize: int) -> bytes:
    blocks = np.pad(z, (0, -len(z) % BLOCK)).reshape(-1, BLOCK)
    bits, places = np.arange(8 * itemsize), np.arange(BLOCK, dtype=np.uint64)
    planes = (((blocks[:, None, :] >> bits[:, None]) & 1).astype(np.uint64) << places).sum(2).astype("<u4")
    widths = np.where(planes != 0, bits + 1, 0).max(1)
    filled = widths > 0
    words: Words = planes[bits < widths[:, None]]
    flags: NDArray[np.uint8] = np.packbits(filled, bitorder="little")
    return bytes(flags) + _pack_widths(widths[filled], itemsize) + words.tobytes()


def _pack_widths(widths: NDArray[np.int64], itemsize: int) -> bytes:
    """Less one each; two to a byte, the first in the lower half, where codes have 16 bits at most."""
    less = (widths - 1).astype(np.uint8)
    if itemsize == 4:
        return less.tobytes()
    pairs = np.pad(less, (0, len(less) % 2)).reshape(-1, 2)
    return bytes((pairs[:, 0] | pairs[:, 1] << 4).tolist())


def _decode_chunks(stream: NDArray[np.uint8], count: int, itemsize: int) -> Words:
    chunks = -(-count // CHUNK)
    table = stream[: min(4 * chunks, len(stream) // 4 * 4)]
    sizes = table.view("<u4").astype(np.int64)
    if len(sizes) != chunks or 4 * chunks + sizes.sum() != len(stream):
        raise CorruptData(f"bitpack: expected {chunks} chunks in {len(stream)} bytes, found others")
    ends = 4 * chunks + np.cumsum(sizes)
    z = np.empty(count, np.uint32)
    for i, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        part = z[i * CHUNK : (i + 1) * CHUNK]
        part[:] = _decode_chunk(stream[end - size : end], len(part), itemsize)
    return z


def _decode_chunk(data: NDArray[np.uint8], count: int, itemsize: int) -> Words:
    blocks = -(-count // BLOCK)
    flags_end = -(-blocks // 8)
    flags = np.unpackbits(data[:flags_end], bitorder="little")
    filled = flags[:blocks].astype(bool)
    kept = int(filled.sum())
    widths_end = flags_end + (kept if itemsize == 4 else -(-kept // 2))
    widths = np.zeros(blocks, np.int64)
    if len(data) < widths_end or flags[blocks:].any():
        raise CorruptData("bitpack: a chunk ends before its planes")
    widths[filled] = _unpack_widths(data[flags_end:widths_end], kept, itemsize)
    words = data[widths_end:]
    if widths.max(initial=0) > 8 * itemsize or len(words) != 4 * widths.sum():
        raise CorruptData(f"bitpack: expected {4 * widths.sum()} bytes of planes in a chunk, found {len(words)}")
    bits = np.arange(8 * itemsize)
    planes = np.zeros((blocks, len(bits)), np.uint32)
    planes[bits < widths[:, None]] = np.ascontiguousarray(words).view("<u4")
    codes = (((planes[:, :, None] >> np.arange(BLOCK)) & 1) << bits[:, None]).astype(np.uint32).sum(1, dtype=np.uint32)
    return np.asarray(codes.reshape(-1)[:count], np.uint32)


def _unpack_widths(data: NDArray[np.uint8], count: int, itemsize: int) -> NDArray[np.uint8]:
    if itemsize == 4:
        return np.minimum(data, 64) + np.uint8(1)
    return np.stack([data & 15, data >> 4], 1).reshape(-1)[:count] + np.uint8(1)


def _numpy_dtype(dtype: torch.dtype) -> np.dtype[np.generic]:
    return torch.empty(0, dtype=dtype, device="cpu").numpy().dtype


def _fake_encode(codes: Tensor, out: Tensor) -> int:
    return torch.library.get_ctx().new_dynamic_size()  # type: ignore[return-value]  # a SymInt: an int yet unknown


def _fake_decode(data: Tensor, out: Tensor) -> None:
    return None


LIBRARY.impl("bitpack_encode_out", reference_encode, "CompositeExplicitAutograd")
LIBRARY.impl("bitpack_decode_out", reference_decode, "CompositeExplicitAutograd")
torch.library.register_fake("laconic::bitpack_encode_out", _fake_encode, lib=LIBRARY)
torch.library.register_fake("laconic::bitpack_decode_out", _fake_decode, lib=LIBRARY)

load_bodies("bitpack")
