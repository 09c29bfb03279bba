"""Codes as their different rows and an index: `rows_encode` and `rows_decode`, each also for given memory and for many.

    codes [.., columns]  -->  the different rows, one behind the other, as they first occur;  an index, uint8

The index is empty where all rows are kept: because none repeats, or so few that saying where would not pay.
`rows`: the number under which each row was looked up, int64; rows of the same number are taken as equal, and checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from laconic.errors import CorruptData, SpecError
from laconic.ops import LIBRARY, load_bodies
from laconic.ops.repeats import bytes_of, check_rows, find_repeats
from laconic.ops.rows_index import make_index, read_index
from laconic.ops.streams import check_bytes

LIBRARY.define("rows_encode(Tensor codes, Tensor? rows=None) -> (Tensor, Tensor)")
LIBRARY.define("rows_encode_out(Tensor codes, Tensor(a!) out, Tensor(b!) index, Tensor? rows=None) -> Tensor")
LIBRARY.define("rows_encode_many(Tensor[] batch, Tensor?[] rows) -> (Tensor, Tensor, Tensor)")
LIBRARY.define("rows_decode(Tensor main, Tensor index, SymInt[] shape) -> Tensor")
LIBRARY.define("rows_decode_out(Tensor main, Tensor index, Tensor(a!) out) -> ()")
LIBRARY.define("rows_decode_many_out(Tensor[] mains, Tensor[] indices, Tensor(a!)[] outs) -> ()")


def index_capacity(nbytes: int) -> int:
    """The most bytes that the index of so many bytes of codes takes."""
    return nbytes // 4


def check_given(given: Tensor | None, count: int) -> None:
    if given is not None and (given.dtype != torch.int64 or given.numel() != count or not given.is_contiguous()):
        raise SpecError(f"expected {count} contiguous int64 for rows=, got {given.numel()} {given.dtype}")


def check_room(codes: Tensor, out: Tensor, index: Tensor) -> None:
    check_bytes(index, index_capacity(codes.nbytes))
    if out.dtype != codes.dtype or out.dim() != 1 or not out.is_contiguous() or out.numel() < codes.numel():
        raise SpecError(f"expected a row of {codes.numel()} {codes.dtype}, got {out.dtype}{list(out.shape)}")


def check_batch(batch: Sequence[Tensor], rows: Sequence[Tensor | None]) -> None:
    if not batch or len(rows) != len(batch) or len({codes.dtype for codes in batch}) > 1:
        raise SpecError(f"expected tensors of one dtype and rows= for each or None, got {len(batch)} and {len(rows)}")


def kept_rows(main: Tensor, out: Tensor) -> int:
    """How many rows such a main part has; CorruptData where it has no whole number of them."""
    columns = out.shape[-1] if out.dim() else 1
    if main.dtype != out.dtype or main.dim() != 1 or not (main.is_contiguous() and out.is_contiguous()):
        raise SpecError(f"expected a row of {out.dtype} and contiguous room, got {main.dtype}{list(main.shape)}")
    if main.numel() % columns if out.numel() else main.numel():
        raise CorruptData(f"rows: expected whole rows of {columns}, found {main.numel()} codes")
    return main.numel() // columns if out.numel() else 0


def no_index(index: Tensor, out: Tensor) -> CorruptData:
    return CorruptData(f"rows: {index.numel()} bytes are no index of {list(out.shape)}")


# The reference: on any device, by way of the CPU.


def reference_encode_new(codes: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
    count, _ = check_rows(codes)
    check_given(rows, count)
    data = bytes_of(codes)
    repeats = find_repeats(data, None if rows is None else rows.cpu().reshape(-1).numpy())
    index = make_index(repeats, data.shape[1])
    kept = data[repeats.back == 0] if len(index) else data.copy()
    main = torch.from_numpy(kept.reshape(-1)).view(codes.dtype)
    return main.to(codes.device), torch.from_numpy(index).to(codes.device)


def reference_decode(main: Tensor, index: Tensor, out: Tensor) -> None:
    check_bytes(index)
    kept, (count, nbytes) = kept_rows(main, out), check_rows(out)
    ids = read_index(index.cpu().numpy().tobytes(), kept, count)
    if ids is None:
        raise no_index(index, out)
    data = main.cpu().view(torch.uint8).numpy().reshape(kept, nbytes)[ids] if count else np.zeros(0, np.uint8)
    out.view(-1).view(torch.uint8).copy_(torch.from_numpy(data.reshape(-1)))


# The other operators: on top of those, for every backend that has no better ones.


def encode_out(codes: Tensor, out: Tensor, index: Tensor, rows: Tensor | None = None) -> Tensor:
    """Gives how many codes and bytes were written."""
    check_room(codes, out, index)
    main, found = torch.ops.laconic.rows_encode.default(codes, rows)
    out[: main.numel()].copy_(main)
    index[: found.numel()].copy_(found)
    return torch.tensor([main.numel(), found.numel()])


def encode_many(batch: Sequence[Tensor], rows: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, Tensor]:
    """The rows of all, their indices, and of each how many codes and bytes that is."""
    check_batch(batch, rows)
    found = [torch.ops.laconic.rows_encode.default(codes, given) for codes, given in zip(batch, rows, strict=True)]
    mains, indices = zip(*found, strict=True)
    sizes = torch.tensor([[main.numel(), index.numel()] for main, index in found])
    return torch.cat(mains), torch.cat(indices), sizes


def decode(main: Tensor, index: Tensor, shape: Sequence[int]) -> Tensor:
    out = main.new_empty(list(shape))
    torch.ops.laconic.rows_decode_out.default(main, index, out)
    return out


def decode_many(mains: Sequence[Tensor], indices: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
    for main, index, out in zip(mains, indices, outs, strict=True):
        torch.ops.laconic.rows_decode_out.default(main, index, out)


LIBRARY.impl("rows_encode", reference_encode_new, "CompositeExplicitAutograd")
LIBRARY.impl("rows_encode_out", encode_out, "CompositeExplicitAutograd")
LIBRARY.impl("rows_encode_many", encode_many, "CompositeExplicitAutograd")
LIBRARY.impl("rows_decode", decode, "CompositeExplicitAutograd")
LIBRARY.impl("rows_decode_out", reference_decode, "CompositeExplicitAutograd")
LIBRARY.impl("rows_decode_many_out", decode_many, "CompositeExplicitAutograd")


def _some(codes: Tensor, dtype: torch.dtype) -> Tensor:
    return codes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=dtype)


def _fake_encode(codes: Tensor, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
    return _some(codes, codes.dtype), _some(codes, torch.uint8)


def _fake_encode_out(codes: Tensor, out: Tensor, index: Tensor, rows: Tensor | None = None) -> Tensor:
    return torch.empty(2, dtype=torch.int64)


def _fake_encode_many(batch: Sequence[Tensor], rows: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, Tensor]:
    sizes = torch.empty((len(batch), 2), dtype=torch.int64)
    return _some(batch[0], batch[0].dtype), _some(batch[0], torch.uint8), sizes


def _fake_decode(main: Tensor, index: Tensor, shape: Sequence[int]) -> Tensor:
    return main.new_empty(list(shape))


def _fake_decode_out(main: object, index: object, out: object) -> None:
    return None


torch.library.register_fake("laconic::rows_encode", _fake_encode, lib=LIBRARY)
torch.library.register_fake("laconic::rows_encode_out", _fake_encode_out, lib=LIBRARY)
torch.library.register_fake("laconic::rows_encode_many", _fake_encode_many, lib=LIBRARY)
torch.library.register_fake("laconic::rows_decode", _fake_decode, lib=LIBRARY)
torch.library.register_fake("laconic::rows_decode_out", _fake_decode_out, lib=LIBRARY)
torch.library.register_fake("laconic::rows_decode_many_out", _fake_decode_out, lib=LIBRARY)

load_bodies("rows")
