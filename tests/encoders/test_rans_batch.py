"""Books that serve a batch: every body makes the same ones, they pay, and bytes that are none are refused."""

from __future__ import annotations

import contextlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import laconic
from laconic import CorruptData, SpecError, TensorSpec
from laconic.encoders.rans import Rans
from laconic.ops import rans as ops
from laconic.ops.rans_stream import SHARED
from laconic.stage import Context, Parts

from ..backends.test_native import needs_native, run_python
from . import plain_rans
from .test_rans import CODES, skewed


def similar(count: int, dtype: torch.dtype = torch.int8, codes: int = 300, spread: float = 9) -> list[torch.Tensor]:
    return [skewed(codes, dtype, spread, seed) for seed in range(count)]


def share(batch: list[torch.Tensor]) -> torch.Tensor:
    book = torch.ops.laconic.rans_share(batch)
    assert torch.equal(book, ops.reference_share(batch))
    return book  # type: ignore[no-any-return]


def write(codes: torch.Tensor, book: torch.Tensor) -> torch.Tensor:
    stream = torch.ops.laconic.rans_encode(codes, book)
    room = torch.empty(ops.capacity(codes), dtype=torch.uint8)
    assert torch.equal(stream, room[: int(ops.reference_encode(codes, room, book))])
    return stream  # type: ignore[no-any-return]


def agree(stream: torch.Tensor, book: torch.Tensor, spec: TensorSpec) -> bool:
    """Whether these bytes are read; both bodies must say the same."""
    found = []
    with contextlib.suppress(CorruptData):
        found.append(Rans().decode(Parts(stream, {"book": book}), spec, 1))
    with contextlib.suppress(CorruptData):
        out = torch.empty(spec.shape, dtype=spec.dtype)
        ops.reference_decode(stream, out, book)
        found.append(out)
    assert len(found) in (0, 2)
    return bool(found) and torch.equal(*found)


@given(
    dtype=st.sampled_from(CODES),
    sizes=st.lists(st.integers(0, 2000) | st.sampled_from([70_000]), min_size=1, max_size=5),
    spreads=st.lists(st.floats(0.01, 1e4), min_size=5, max_size=5),
)
def test_bodies_make_other_books_or_codes_change(dtype: torch.dtype, sizes: list[int], spreads: list[float]) -> None:
    batch = [skewed(size, dtype, spread, i) for i, (size, spread) in enumerate(zip(sizes, spreads, strict=False))]
    book = share(batch)
    for codes in batch:
        stream = write(codes, book)
        assert stream.numel() <= torch.ops.laconic.rans_encode(codes).numel()
        used = book if stream[0] & 3 == SHARED else book[:0]
        assert torch.equal(Rans().decode(Parts(stream, {"book": used}), TensorSpec.of(codes), 1), codes)
        assert agree(stream, used, TensorSpec.of(codes))


@pytest.mark.parametrize("dtype", CODES)
def test_the_format_page_describes_other_books(dtype: torch.dtype) -> None:
    batch = similar(60, dtype, 1200)
    book = share(batch)
    for codes in batch[:2]:
        stream = write(codes, book)
        assert stream[0] & 3 == SHARED
        assert len(bytes(book.tolist())) > 0
        expected = codes.view(torch.uint8) if dtype == torch.int8 else codes
        found = plain_rans.read(bytes(stream.tolist()), len(codes), dtype.itemsize, bytes(book.tolist()))
        assert found == expected.tolist()


@pytest.mark.parametrize("dtype", CODES)
def test_sharing_costs_more_than_it_saves(dtype: torch.dtype) -> None:
    batch = similar(20, dtype)
    book = share(batch)
    together = book.numel() + 8 + sum(write(codes, book).numel() for codes in batch)
    assert together < 0.95 * sum(torch.ops.laconic.rans_encode(codes).numel() for codes in batch)


@pytest.mark.parametrize(
    "batch",
    [
        [skewed(3000, torch.int8, 2), skewed(3000, torch.int8, 2, 1).mul(3)],
        [skewed(3000, torch.int8, 2)],
        [torch.zeros(50, dtype=torch.int8)] * 9,
        [torch.zeros(0, dtype=torch.int8), torch.ones(1, dtype=torch.int8)],
        [torch.arange(-128, 128).to(torch.int8)] * 2,
    ],
)
def test_books_are_shared_for_nothing(batch: list[torch.Tensor]) -> None:
    assert share(batch).numel() == 0


def test_what_shares_no_book_spoils_it() -> None:
    """A tensor unlike the others, or of one value, leaves them what they save."""
    batch = similar(20)
    extra = [torch.zeros(100_000, dtype=torch.int8), torch.arange(5, dtype=torch.int8)]
    both = laconic.codec("rans").encode_many(batch + extra)
    assert sum(enc.parts["main"][0] & 3 == SHARED for enc in both) > 15


def test_codes_of_two_sizes_share_a_book() -> None:
    batch = [*similar(20, torch.int8), *similar(20, torch.int16), skewed(40, torch.int32, 5)]
    encoded = laconic.codec("rans").encode_many(batch)
    books = [enc.parts["0.book"] for enc in encoded if enc.parts["0.book"].numel()]
    assert len({book.data_ptr() for book in books}) == 2
    for codes, found in zip(batch, laconic.codec("rans").decode_many(encoded), strict=True):
        assert torch.equal(codes, found)


def test_small_tensors_are_kept_raw_for_the_sake_of_the_book() -> None:
    """What is shared is nobody's own: a tensor smaller than the book still gains by it."""
    codec, batch = laconic.codec("rans"), similar(40, torch.int8, 60, 4)
    encoded = codec.encode_many(batch)
    assert any(enc.parts["main"].nbytes + enc.parts["0.book"].nbytes > 60 for enc in encoded if "0.book" in enc.parts)
    for codes, enc in zip(batch, encoded, strict=True):
        own = [part for name, part in enc.parts.items() if name != "0.book"]
        assert sum(part.nbytes for part in own) <= sum(part.nbytes for part in codec.encode(codes).parts.values())
    assert encoded.nbytes < laconic.batch.EncodedBatch.of([codec.encode(codes) for codes in batch]).nbytes


def sample() -> tuple[torch.Tensor, torch.Tensor, TensorSpec]:
    batch = similar(300)
    book = share(batch)
    stream = write(batch[0], book)
    assert stream[0] & 3 == SHARED
    assert book.numel() > 0
    return stream, book, TensorSpec.of(batch[0])


SAMPLE = sample()


def test_a_cut_or_longer_book_is_read() -> None:
    stream, book, spec = SAMPLE
    assert agree(stream, book, spec)
    for length in range(book.numel()):
        assert not agree(stream, book[:length].clone(), spec)
    for more in (book[:1], book, torch.zeros(1, dtype=torch.uint8), torch.full((600,), 0x88, dtype=torch.uint8)):
        assert not agree(stream, torch.cat([book, more]), spec)


def test_a_changed_book_crashes_the_reader() -> None:
    stream, book, spec = SAMPLE
    refused = 0
    for at in range(book.numel()):
        for change in (0x01, 0x10, 0xFF):
            damaged = book.clone()
            damaged[at] ^= change
            refused += not agree(stream, damaged, spec)
    assert refused > 0


def test_a_book_is_believed_beside_a_stream_of_its_own() -> None:
    _, book, spec = SAMPLE
    codes = similar(1)[0]
    for other in (torch.ops.laconic.rans_encode(codes), torch.tensor([1, 5], dtype=torch.uint8)):
        assert agree(other, book[:0], spec)
        assert not agree(other, book, spec)
    assert not agree(torch.cat([torch.zeros(1, dtype=torch.uint8), codes.view(torch.uint8)]), book, spec)


def test_a_missing_book_crashes_the_reader() -> None:
    enc = next(enc for enc in laconic.codec("rans").encode_many(similar(40)) if enc.parts["0.book"].numel())
    for parts in ({"main": enc.parts["main"]}, enc.parts | {"0.book": enc.parts["0.book"][:0]}):  # type: ignore[operator]
        with pytest.raises(CorruptData):
            laconic.decode(laconic.Encoded(enc.chain, enc.specs, parts))
    with pytest.raises(CorruptData):
        Rans().decode(Parts(enc.parts["main"]), enc.spec, 1)


@given(st.binary(max_size=300), st.binary(max_size=520), st.integers(0, 5000), st.sampled_from(CODES))
def test_any_bytes_crash_the_reader(data: bytes, book: bytes, count: int, dtype: torch.dtype) -> None:
    parts = [torch.tensor(list(piece), dtype=torch.uint8) for piece in (b"\x03" + data, book)]
    agree(*parts, TensorSpec((count,), dtype))  # type: ignore[call-arg]


@given(data=st.data())
def test_damage_crashes_the_reader(data: st.DataObject) -> None:
    stream, book, spec = SAMPLE
    stream, book = stream.clone(), book.clone()
    for _ in range(data.draw(st.integers(1, 6))):
        piece = data.draw(st.sampled_from([stream, book]))
        piece[data.draw(st.integers(0, piece.numel() - 1))] = data.draw(st.integers(0, 255))
    agree(stream, book, TensorSpec((data.draw(st.sampled_from([spec.numel, 0, 1, 9_000])),), spec.dtype))


def test_a_book_that_is_none_is_written_with() -> None:
    codes, wide = skewed(300, torch.int16, 9), share(similar(300, torch.uint8, 300, 90))
    room = torch.empty(ops.capacity(codes), dtype=torch.uint8)
    for book in (torch.zeros(9, dtype=torch.uint8), torch.cat([wide] * 5), wide):
        with pytest.raises(SpecError, match="rans_share"):
            torch.ops.laconic.rans_encode(codes, book)
        with pytest.raises(SpecError, match="rans_share"):
            ops.reference_encode(codes, room, book)


def test_batches_of_several_sizes_are_shared_by_the_operator() -> None:
    for batch in ([], [torch.zeros(3, dtype=torch.int8), torch.zeros(3, dtype=torch.int16)]):
        with pytest.raises(SpecError, match="one size"):
            ops.check_batch(batch)


def test_the_operators_break_torchs_rules() -> None:
    batch = similar(40, torch.int16)
    book = share(batch)
    stream = write(batch[0], book)
    room = torch.empty(ops.capacity(batch[0]), dtype=torch.uint8)
    torch.library.opcheck(torch.ops.laconic.rans_share.default, (batch,))
    torch.library.opcheck(torch.ops.laconic.rans_encode.default, (batch[0], book))
    torch.library.opcheck(torch.ops.laconic.rans_encode_out.default, (batch[0], room, book))
    torch.library.opcheck(torch.ops.laconic.rans_decode.default, (stream, [300], torch.int16, book))
    torch.library.opcheck(torch.ops.laconic.rans_decode_out.default, (stream, torch.empty_like(batch[0]), book))


def test_what_is_encoded_follows_its_input() -> None:
    batch = similar(40)
    shared = Rans().share(batch)
    before = batch[0].clone()
    parts = Rans().encode(batch[0], Context(batch[0], shared))
    assert parts.side["book"] is shared["1"]
    batch[0].zero_()
    assert torch.equal(Rans().decode(parts, TensorSpec.of(before), 1), before)


PRINT_BATCHES = """
    import hashlib, os, numpy as np, torch, laconic
    all_threads = (1, 2, 5) if os.environ.get("LACONIC_NATIVE") != "0" else (1,)
    digest = hashlib.sha256()
    rng = np.random.default_rng(3)
    for dtype, spread in [("int8", 9), ("uint8", 30), ("int16", 60), ("int32", 1e5), ("int32", 2)]:
        for counts in ([300] * 20, [5000, 70_001, 400, 20_000, 1] * 2, [270_000, 90]):
            limits = np.iinfo(dtype)
            batch = [torch.from_numpy(rng.laplace(0, spread, count).round().clip(limits.min, limits.max).astype(dtype))
                     for count in counts]
            written = set()
            for threads in all_threads:
                torch.set_num_threads(threads)
                encoded = laconic.codec("rans").encode_many(batch)
                assert all(map(torch.equal, laconic.codec("rans").decode_many(encoded), batch))
                written.add(encoded.to_bytes())
            (data,) = written
            digest.update(data)
    print(digest.hexdigest())
"""


@needs_native
def test_bytes_depend_on_the_machine_or_the_threads() -> None:
    choices = [{"LACONIC_ISA": isa} for isa in ("baseline", "avx2", "avx512")]
    digests = {run_python(PRINT_BATCHES, **env) for env in (*choices, {"LACONIC_NATIVE": "0"})}
    assert len(digests) == 1
