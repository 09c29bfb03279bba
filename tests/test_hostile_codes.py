"""Parts of variable size that are not what laconic wrote, behind the checksum: refused, or decoded to something."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import laconic
from laconic import CorruptData, Encoded, LaconicError, TensorSpec
from laconic.encoded import Link
from laconic.encoders.library import Lz4, Zstd
from laconic.ops import bitpack, bound, lorenzo  # noqa: F401  # declare the operators
from laconic.wire import HEADER

from .table import stored
from .test_hostile_bytes import resealed

CHAINS = [
    "bound:abs=0.5|bitpack",
    "bound:rel=1e-3,per=row|lorenzo|bitpack",
    "bound:abs=0.01,width=32|lorenzo:dims=1|bitpack",
    "lorenzo|bitpack",
    "bound:abs=0.01|lorenzo|zstd",
    "bound:abs=0.01|lz4",
    "bound:abs=0.01|lorenzo|huffman",
    "bound:abs=0.01|lorenzo|rans",
    "bound:abs=0.5|vlz",
    "bound:abs=0.5|rows|vlz",
    "raw",
]


def sample(spec: str, shape: tuple[int, ...] = (3, 40), dtype: torch.dtype = torch.float32) -> Encoded:
    x = (torch.arange(torch.Size(shape).numel()) * 0.1).sin().reshape(shape).to(dtype)
    x.view(-1)[5] = torch.nan
    return stored(laconic.codec(spec), x)


def with_part(enc: Encoded, name: str, part: Tensor) -> Encoded:
    specs = (*enc.specs[:-1], TensorSpec.of(part)) if name == "main" else enc.specs
    return Encoded(enc.chain, specs, {**enc.parts, name: part})


def read(enc: Encoded) -> None:
    """Decodes, or says what is wrong; nothing else."""
    with contextlib.suppress(LaconicError):
        y = laconic.decode(enc)
        assert TensorSpec.of(y) == enc.spec


@pytest.mark.parametrize("spec", CHAINS)
def test_a_stream_cut_short_is_read(spec: str) -> None:
    enc = sample(spec)
    main = enc.parts["main"]
    for length in range(main.numel()):
        with pytest.raises(CorruptData):
            laconic.decode(with_part(enc, "main", main[:length].clone()))
    with pytest.raises(CorruptData):
        laconic.decode(with_part(enc, "main", torch.cat([main, main[:1]])))


@pytest.mark.parametrize("spec", CHAINS)
def test_a_changed_bit_crashes_the_decoder(spec: str) -> None:
    enc = sample(spec)
    for at, bit in itertools.product(range(enc.parts["main"].numel()), range(8)):
        main = enc.parts["main"].clone()
        main[at] ^= 1 << bit
        read(with_part(enc, "main", main))


@given(data=st.binary(max_size=300), spec=st.sampled_from(CHAINS), packed=st.booleans())
def test_any_bytes_crash_the_decoder(data: bytes, spec: str, packed: bool) -> None:
    stream = (b"\1" if packed else b"") + data
    if stream:
        read(with_part(sample(spec), "main", torch.frombuffer(bytearray(stream), dtype=torch.uint8)))


def streams() -> Iterator[tuple[Tensor, Tensor]]:
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32):
        codes = torch.randint(0, 100, (4200,), generator=torch.Generator().manual_seed(5)).to(dtype)
        codes[1000:3000] = 0
        room = torch.empty(bitpack.capacity(codes.numel(), codes.element_size()), dtype=torch.uint8)
        yield codes, room[: torch.ops.laconic.bitpack_encode_out(codes, room)].clone()


@pytest.mark.parametrize("decode", [torch.ops.laconic.bitpack_decode_out, bitpack.reference_decode])
def test_a_damaged_chunk_is_read_by_one_body(decode: object) -> None:
    """What cannot be a stream is refused by each; any other gives the same codes."""
    for codes, stream in streams():
        for at in [*range(48), *range(48, len(stream), 97)]:
            damaged = stream.clone()
            damaged[at] ^= 0x55
            found = []
            for body in (decode, bitpack.reference_decode):
                out = torch.zeros_like(codes)
                try:
                    body(damaged, out)  # type: ignore[operator]
                    found.append(out)
                except CorruptData:
                    found.append(None)
            assert (found[0] is None) == (found[1] is None)
            assert found[0] is None or torch.equal(found[0], found[1])  # type: ignore[arg-type]
        for length in [*range(60), *range(60, len(stream), 89)]:
            with pytest.raises(CorruptData):
                decode(stream[:length].clone(), torch.zeros_like(codes))  # type: ignore[operator]


@pytest.mark.parametrize("spec", ["bound:abs=0.01", "bound:abs=0.01|bitpack", "bound:abs=0.01|lorenzo|zstd"])
@pytest.mark.parametrize(
    "index",
    [[-1], [120], [2**31 - 1], [-(2**31)], [5, -7], [0, 120], [3, 3], [9, 4], [], [1, 2, 3]],
)
def test_an_exception_lies_outside_the_tensor(spec: str, index: list[int]) -> None:
    enc = sample(spec)
    places = torch.tensor(index, dtype=torch.int32)
    values = torch.full((len(index),), 7.0)
    damaged = with_part(with_part(enc, "0.index", places), "0.values", values)
    wrong = any(not 0 <= place < 120 for place in index)
    for out in (None, torch.empty(3, 40), torch.empty(3, 80)[:, ::2], torch.empty(40, 3).t()):
        with pytest.raises(CorruptData) if wrong else contextlib.nullcontext():
            y = laconic.decode(damaged, out=out)
            assert all(y.reshape(-1)[place] == 7 for place in index)


@pytest.mark.parametrize("spec", ["bound:abs=0.01", "bound:abs=0.01|bitpack"])
@pytest.mark.parametrize("values", [0, 1, 3])
def test_exceptions_without_places_are_passed_over(spec: str, values: int) -> None:
    enc = sample(spec)
    places = enc.parts["0.index"] if values != 1 else enc.parts["0.index"][:0]
    with pytest.raises(CorruptData, match="exceptions"):
        laconic.decode(with_part(with_part(enc, "0.index", places), "0.values", torch.ones(values)))


@pytest.mark.parametrize("step", [0.0, -1.0, 1e-45, 3e38, torch.nan, torch.inf])
def test_a_step_of_nothing_crashes_the_decoder(step: float) -> None:
    for spec in ("bound:abs=0.01", "bound:abs=0.01|lorenzo|bitpack"):
        enc = sample(spec)
        assert laconic.decode(with_part(enc, "0.step", torch.tensor(step))).shape == (3, 40)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("main", torch.zeros(10, dtype=torch.int8)),
        ("main", torch.zeros(1 << 20, dtype=torch.uint8)),
        ("main", torch.zeros(2, 2, dtype=torch.uint8)),
        ("0.step", torch.ones(1)),
        ("0.step", torch.ones((), dtype=torch.float64)),
        ("0.index", torch.zeros(1, dtype=torch.int64)),
        ("0.index", torch.zeros(121, dtype=torch.int32)),
        ("0.values", torch.zeros(121)),
        ("0.values", torch.zeros(1, dtype=torch.float64)),
    ],
)
def test_a_part_of_another_kind_is_read(name: str, part: Tensor) -> None:
    with pytest.raises(CorruptData):
        laconic.decode(with_part(sample("bound:abs=0.01|bitpack"), name, part))


def sealed(description: str, *parts: bytes) -> bytes:
    """What a careful attacker sends: every length and the checksum fit."""
    text = description.encode()
    lengths = b"".join(len(part).to_bytes(8, "little") for part in parts)
    head = HEADER.pack(b"\x89laconic", 1, len(parts), len(text), 0, 0)
    return resealed(head + text + lengths + b"".join(parts))


BOUND = "bound:abs=0.5,per=tensor,width=auto@1"
HUGE = "4194304,1048576"  # 2^42 elements


@pytest.mark.parametrize(
    ("description", "parts"),
    [
        (f"{BOUND}|bitpack@1;float32[{HUGE}];int8[{HUGE}];uint8[5]", (b"\1\0\0\0\0", bytes(4), b"", b"")),
        (f"bitpack@1;float32[{HUGE}];uint8[5]", (b"\1\0\0\0\0",)),
        (
            f"zstd:level=3@1;int8[{HUGE}];uint8[14]",
            (b"\x28\xb5\x2f\xfd\xe0" + (1 << 42).to_bytes(8, "little") + b"\1",),
        ),
        (f"lz4:level=0@1;int8[{HUGE}];uint8[4]", (b"\0\0\0\0",)),
        ("lz4:level=0@1;int8[2000000000];uint8[4]", (b"\0\0\0\0",)),
        ("constant@1;float32[1048576,1048576,1048576];", (bytes(4),)),
        ("constant@1;float32[1048576,1048576,1048576]", (bytes(4),)),
    ],
)
def test_a_few_bytes_claim_all_memory(description: str, parts: tuple[bytes, ...]) -> None:
    with pytest.raises(CorruptData):
        laconic.decode(Encoded.from_bytes(sealed(description, *parts)))


@pytest.mark.parametrize("claimed", [0, 1, 479, 481, 1 << 40])
@pytest.mark.parametrize("stage", [Zstd(), Lz4()])
def test_a_frame_of_another_size_is_read(stage: Zstd | Lz4, claimed: int) -> None:
    data = stage.compress(bytes(480))
    main = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    spec = TensorSpec((claimed,), torch.uint8)
    with pytest.raises(LaconicError):
        laconic.decode(Encoded((Link(stage, 1),), (spec, TensorSpec.of(main)), {"main": main}))


@pytest.mark.parametrize(("spec", "module"), [("zstd", "zstandard"), ("lz4", "lz4.block")])
def test_a_missing_library_is_not_named(spec: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    enc = laconic.encode(torch.zeros(30, 40).index_fill(1, torch.tensor([3]), 1.0), spec)
    assert str(enc.chain[0].stage) == spec
    monkeypatch.setitem(sys.modules, module, None)
    for use in (lambda: laconic.encode(torch.rand(30, 40), spec), lambda: laconic.decode(enc)):
        with pytest.raises(laconic.LaconicError, match=rf"pip install 'laconic\[{spec}\]'"):
            use()
