"""Many tensors in one call: what they share is stored once, each decodes alone, and damage is found."""

from __future__ import annotations

import contextlib
import pickle
import struct
import zlib
from collections.abc import Callable

import pytest
import torch
import torch.utils._pytree as pytree
from hypothesis import given
from hypothesis import strategies as st

import laconic
from laconic import CorruptData, Encoded, LaconicError, SpecError, batch
from laconic.batch import EncodedBatch
from laconic.wire import HEADER

from .backends.test_native import needs_native, run_python
from .table import ramp

SPEC = "bound:rel=1e-2|huffman"
CHAINS = [
    SPEC,
    "bound:rel=1e-2|lorenzo|huffman",
    "bound:abs=0.01|bitpack",
    "dct:chop=4",
    "affine|huffman",
    "bound:abs=0.01|rans",
]


def noise(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def tables(count: int = 12) -> list[torch.Tensor]:
    """So small that a code book for each is much of it."""
    return [noise(seed, 8, 24) for seed in range(count)]


def mixed() -> list[torch.Tensor]:
    return [
        *tables(),
        noise(50, 3, 5, 7, dtype=torch.float64),
        noise(51, 40, 40, dtype=torch.bfloat16),
        noise(52, 300, dtype=torch.float16),
        torch.full((30, 3), 2.5),
        torch.zeros(0, 4),
        torch.tensor(3.0),
        noise(53, 1),
        noise(54, 16, 16).t()[::2],
        torch.tensor([1.0, float("nan"), float("inf")] * 40),
    ]


def assert_same(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for a, b in zip(found, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert torch.equal(a.nan_to_num(7), b.nan_to_num(7))


def decoded(batch: EncodedBatch) -> list[torch.Tensor]:
    return [laconic.decode(enc) for enc in batch]


@pytest.mark.parametrize("spec", [chain for chain in CHAINS if not chain.startswith(("dct", "affine"))])
def test_a_batch_decodes_to_something_else_than_its_tensors(spec: str) -> None:
    codec = laconic.codec(spec)
    batch = codec.encode_many(mixed())
    expected = [laconic.decode(codec.encode(x)) for x in mixed()]
    assert_same(codec.decode_many(batch), expected)
    assert_same(decoded(batch), expected)
    assert_same(decoded(EncodedBatch.from_bytes(batch.to_bytes())), expected)
    assert_same([laconic.decode(Encoded.from_bytes(enc.to_bytes())) for enc in batch], expected)


def wild(count: int) -> list[torch.Tensor]:
    """Tensors of one spec: some with exceptions, some so spread out that their codes need more bits, some constant."""
    tensors = [noise(seed, 6, 40) * 10.0**seed for seed in range(count)]
    tensors[1][2, 3] = torch.nan
    tensors[2][:, 7] = -torch.inf
    tensors[4].fill_(0.3)
    return tensors


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    "bound", ["rel=1e-2", "abs=0.05", "rel=1e-2,per=row", "rms=1e-3,per=channel", "rel=1e-4,width=16"]
)
def test_a_small_tensor_becomes_another_in_company(bound: str, dtype: torch.dtype) -> None:
    """What is one call for all of them gives the parts that a call for each gives."""
    for chain in (f"bound:{bound}", f"bound:{bound}|lorenzo:dims=1|zstd"):
        codec, tensors = laconic.codec(chain), [x.to(dtype) for x in wild(6)] + [noise(9, 3, 40).to(dtype)]
        batch = codec.encode_many(tensors)
        for enc, x in zip(batch, tensors, strict=True):
            alone = codec.encode(x)
            assert (enc.chain, enc.specs) == (alone.chain, alone.specs)
            assert enc.to_bytes() == alone.to_bytes()
        assert_same(codec.decode_many(batch), [laconic.decode(enc) for enc in batch])


def test_what_is_decoded_together_hangs_together() -> None:
    codec = laconic.codec("bound:rel=1e-2")
    first, second = codec.decode_many(codec.encode_many([noise(1, 8, 8), noise(2, 8, 8)]))
    weight = torch.ones(8, 8, requires_grad=True)
    product = (weight * first).sum()
    second.zero_()
    product.backward()
    assert torch.equal(weight.grad, first)  # type: ignore[arg-type]
    first.mul_(weight)


def test_a_hint_that_nothing_uses_is_taken_in_silence() -> None:
    with pytest.raises(SpecError, match="no use for rows="):
        laconic.codec(SPEC).encode(ramp((8, 8)), rows=torch.arange(8))
    with pytest.raises(SpecError, match="expected one for each of 2"):
        laconic.codec(SPEC).encode_many([ramp((8, 8))] * 2, rows=[torch.arange(8)])


@pytest.mark.parametrize("spec", CHAINS)
def test_the_wire_loses_something(spec: str) -> None:
    batch = laconic.codec(spec).encode_many(ramp((n, 9, 16)) for n in (3, 1, 3, 5))
    data = batch.to_bytes()
    assert len(data) == batch.nbytes
    assert EncodedBatch.from_bytes(bytearray(data)).to_bytes() == data
    assert EncodedBatch.from_bytes(data)[1:3].to_bytes() == batch[1:3].to_bytes()
    assert_same(decoded(EncodedBatch.from_bytes(data)), decoded(batch))


@pytest.mark.parametrize("count", [0, 1])
def test_few_tensors_are_no_batch(count: int) -> None:
    codec = laconic.codec(SPEC)
    batch = EncodedBatch.from_bytes(codec.encode_many(tables(count)).to_bytes())
    assert len(batch) == len(decoded(batch)) == count


def test_parts_lie_all_over_memory() -> None:
    batch = laconic.codec(SPEC).encode_many(mixed())
    parts = [part for enc in batch for part in enc.parts.values() if part.numel()]
    assert len({part.untyped_storage().data_ptr() for part in parts}) == 1
    distinct = {part.data_ptr(): part.nbytes for part in parts}
    assert parts[0].untyped_storage().nbytes() <= sum(distinct.values()) + 16 * len(distinct)


def books(batch: EncodedBatch) -> list[torch.Tensor]:
    found = [enc.parts["1.book"] for enc in batch if "1.book" in enc.parts]
    return [book for book in found if book.numel()]


def one_book_in(batch: EncodedBatch) -> bool:
    return len(books(batch)) > 3 and len({book.data_ptr() for book in books(batch)}) == 1


def alone(codec: laconic.Codec, tensors: list[torch.Tensor]) -> EncodedBatch:
    return EncodedBatch.of([codec.encode(x) for x in tensors])


def test_what_is_shared_is_stored_twice() -> None:
    codec = laconic.codec(SPEC)
    batch = codec.encode_many(tables())
    assert one_book_in(batch)
    assert batch.to_bytes().count(bytes(books(batch)[0].tolist())) == 1
    assert batch.nbytes < alone(codec, tables()).nbytes
    assert batch.nbytes < sum(enc.nbytes for enc in batch)


@pytest.mark.parametrize(
    "travel",
    [
        lambda batch: EncodedBatch.from_bytes(batch.to_bytes()),
        lambda batch: pickle.loads(pickle.dumps(batch)),
        lambda batch: batch.to("cpu"),
        lambda batch: batch[:],
        lambda batch: pytree.tree_unflatten(*reversed(pytree.tree_flatten(batch))),
    ],
)
def test_what_is_shared_comes_apart_on_the_way(travel: Callable[[EncodedBatch], EncodedBatch]) -> None:
    batch = laconic.codec(SPEC).encode_many(tables())
    other = travel(batch)
    assert isinstance(other, EncodedBatch)
    assert one_book_in(other)
    assert other.to_bytes() == batch.to_bytes()


def test_a_copy_by_pytree_loses_something() -> None:
    batch = laconic.codec(SPEC).encode_many(mixed())
    assert_same(decoded(pytree.tree_map(torch.clone, batch)), decoded(batch))


def test_sharing_makes_a_batch_larger() -> None:
    codec = laconic.codec(SPEC)
    batches = [tables(2), mixed(), [noise(1, 64, 64), noise(2, 64, 64) ** 3], [*tables(5), noise(3, 300, 300)]]
    for tensors in batches:
        assert codec.encode_many(tensors).nbytes <= alone(codec, tensors).nbytes


def test_a_batch_grows_beyond_its_tensors() -> None:
    """Bytes that nothing can shorten, and as many of their own book as they please."""
    batch = [torch.randint(-128, 128, (n,), dtype=torch.int8) for n in (5, 40, 300, 5000)]
    for enc, x in zip(laconic.codec("huffman").encode_many(batch), batch, strict=True):
        assert sum(part.nbytes for part in enc.parts.values()) <= x.nbytes


def test_what_cannot_be_encoded_is_half_done() -> None:
    with pytest.raises(SpecError):
        laconic.codec("dct:chop=4").encode_many([ramp((8, 8)), torch.zeros(0, 8)])
    with pytest.raises(SpecError, match=r"torch\.Tensor"):
        laconic.codec(SPEC).encode_many([ramp((8, 8)), [1.0]])  # type: ignore[list-item]
    with pytest.raises(SpecError, match="expected bytes"):
        EncodedBatch.from_bytes("text")  # type: ignore[arg-type]


def small() -> EncodedBatch:
    batch = laconic.codec(SPEC).encode_many([*tables(5), torch.ones(4)])
    assert one_book_in(batch)
    return batch


def resealed(data: bytes) -> bytes:
    """The same bytes with a length and a checksum that fit."""
    data = data[:12] + struct.pack("<Q", len(data)) + b"\0\0\0\0" + data[24:]
    return data[:20] + struct.pack("<I", zlib.crc32(data[24:], zlib.crc32(data[:20]))) + data[24:]


def test_a_buffer_with_one_changed_byte_is_read() -> None:
    data = small().to_bytes()
    for at in range(len(data)):
        for change in (0x01, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= change
            with pytest.raises(CorruptData):
                EncodedBatch.from_bytes(damaged)


def test_a_truncated_or_longer_buffer_is_read() -> None:
    data = small().to_bytes()
    for length in range(len(data)):
        for cut in (data[:length], resealed(data[:length]) if length >= HEADER.size else b""):
            with pytest.raises(CorruptData):
                EncodedBatch.from_bytes(cut)
    for longer in (data + b"\0", resealed(data + b"\0")):
        with pytest.raises(CorruptData):
            EncodedBatch.from_bytes(longer)


def test_the_wire_of_one_is_read_as_that_of_many() -> None:
    batch = small()
    with pytest.raises(CorruptData):
        EncodedBatch.from_bytes(batch[0].to_bytes())
    with pytest.raises(CorruptData):
        Encoded.from_bytes(batch.to_bytes())


SMALL = small().to_bytes()


@given(st.data())
def test_sealed_nonsense_crashes_the_reader(data: st.DataObject) -> None:
    good = bytearray(SMALL)
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(HEADER.size, len(good) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(LaconicError):
        decoded(EncodedBatch.from_bytes(resealed(bytes(good))))


@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
def test_a_sealed_lie_crashes_the_reader(change: int) -> None:
    """At every place before the pieces: counts, descriptions, lengths, numbers."""
    for at in range(HEADER.size, len(SMALL)):
        good = bytearray(SMALL)
        good[at] ^= change
        with contextlib.suppress(LaconicError):
            decoded(EncodedBatch.from_bytes(resealed(bytes(good))))


@given(st.binary(max_size=200))
def test_any_bytes_crash_the_reader(data: bytes) -> None:
    with pytest.raises(CorruptData):
        EncodedBatch.from_bytes(data)
    sealed = resealed(b"\x89lacmany\x01" + bytes(15) + data)
    with contextlib.suppress(LaconicError):
        decoded(EncodedBatch.from_bytes(sealed))


def test_one_piece_that_many_claim_is_copied_for_each() -> None:
    """A short buffer must not ask for the square of its length."""
    shapes = [f"{10**6 // n},{n}" for n in (1, 2, 4, 5, 8, 10)]
    texts = [f"cast:dtype=float16@1;float16[{shape}]".encode() for shape in shapes]
    before = bytes([len(texts), len(texts), 1])
    before += b"".join(bytes([len(text)]) + text for text in texts) + b"\x80\x89\x7a"  # 2 * 10**6
    rows = b"".join(bytes([i, 0]) for i in range(len(texts)))
    data = resealed(b"\x89lacmany\x01" + bytes(15) + before + rows + bytes(2 * 10**6))
    batch = EncodedBatch.from_bytes(data)
    assert len({enc.parts["main"].data_ptr() for enc in batch}) == 1


def test_the_header_of_a_small_table_is_as_large_as_the_table() -> None:
    """What every item adds beside its own parts: an outline's number, sizes, and the numbers of its pieces."""
    few, many = (laconic.codec(SPEC).encode_many([noise(seed, 64, 64) for seed in range(n)]) for n in (2, 34))
    own = [sum({p.data_ptr(): p.nbytes for enc in batch for p in enc.parts.values()}.values()) for batch in (few, many)]
    assert (many.nbytes - own[1]) - (few.nbytes - own[0]) <= 32 * 20


def test_a_number_without_end_is_read() -> None:
    with pytest.raises(CorruptData, match="bits"):
        EncodedBatch.from_bytes(resealed(b"\x89lacmany\x01" + bytes(15) + b"\xff" * 12))


@needs_native
def test_bytes_depend_on_the_threads_or_the_body() -> None:
    code = """
        import hashlib, torch
        import laconic
        from laconic import batch
        from tests.test_batch import mixed
        written = set()
        for threads, worth_one in ((1, 0), (2, 0), (5, 0), (2, 1 << 30)):
            torch.set_num_threads(threads)
            batch._WORTH_A_THREAD = worth_one
            written.add(laconic.codec("bound:rel=1e-2|lorenzo|huffman").encode_many(mixed()).to_bytes())
        (data,) = written
        print(hashlib.sha256(data).hexdigest())
    """
    assert len({run_python(code, LACONIC_NATIVE=native) for native in "01"}) == 1


def test_threads_lose_the_callers_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_WORTH_A_THREAD", 0)
    weights = [x.requires_grad_() for x in tables()]
    assert_same(laconic.codec(SPEC).decode_many(laconic.codec(SPEC).encode_many(weights)), decoded_alone(weights))


def decoded_alone(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [laconic.decode(laconic.encode(x, SPEC)) for x in tensors]
