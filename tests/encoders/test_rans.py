"""Every body writes the same bytes, reads them back, and refuses all others."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import laconic
from laconic import CorruptData, SpecError, TensorSpec
from laconic.encoders.rans import Rans
from laconic.ops import rans as ops
from laconic.ops import rans_book as books
from laconic.stage import Context, Parts

from ..backends.test_native import needs_native, run_python
from ..table import FLOATS, SHAPES, VARIABLE_SIZE, ramp
from . import plain_rans

CODES = [torch.int8, torch.uint8, torch.int16, torch.int32]


def write(codes: torch.Tensor) -> torch.Tensor:
    stream = torch.ops.laconic.rans_encode(codes)
    assert stream.numel() <= ops.capacity(codes)
    return stream  # type: ignore[no-any-return]


def write_by_reference(codes: torch.Tensor) -> torch.Tensor:
    room = torch.empty(ops.capacity(codes), dtype=torch.uint8)
    return room[: int(ops.reference_encode(codes, room))]


def read(stream: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    return Rans().decode(Parts(stream), spec, 1)


def read_by_reference(stream: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    out = torch.empty(spec.shape, dtype=spec.dtype)
    ops.reference_decode(stream, out)
    return out


def skewed(count: int, dtype: torch.dtype, spread: float, seed: int = 0) -> torch.Tensor:
    """Laplacian codes, as predictors leave them."""
    limits = torch.iinfo(dtype)
    values = np.random.default_rng(seed).laplace(0, spread, count).round().clip(limits.min, limits.max)
    return torch.from_numpy(values).to(dtype)


def entropy(codes: torch.Tensor) -> float:
    """Of order 0, in bits for a code."""
    p = codes.unique(return_counts=True)[1].double() / codes.numel()
    return float(-(p * p.log2()).sum())


@given(
    dtype=st.sampled_from(CODES),
    count=st.integers(0, 3000) | st.sampled_from([1023, 1024, 1025, 8191, 8193, 65535, 65537, 70_000]),
    spread=st.floats(0.01, 1e5),
    outliers=st.integers(0, 5),
    seed=st.integers(0, 99),
)
def test_codes_change_on_the_way(dtype: torch.dtype, count: int, spread: float, outliers: int, seed: int) -> None:
    codes = skewed(count, dtype, spread, seed)
    extremes = [torch.iinfo(dtype).min, torch.iinfo(dtype).max, -1 if dtype.is_signed else 1]
    for i in range(min(outliers, count)):
        codes[i * 7919 % count] = extremes[i % 3]
    stream = write(codes)
    assert torch.equal(read(stream, TensorSpec.of(codes)), codes)
    assert torch.equal(stream, write_by_reference(codes))
    assert torch.equal(read_by_reference(stream, TensorSpec.of(codes)), codes)


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("spread", [0.05, 1, 30, 5000])
@pytest.mark.parametrize("count", [0, 1, 2, 700, 20_000])
def test_the_format_page_describes_another_stream(dtype: torch.dtype, spread: float, count: int) -> None:
    codes = skewed(count, dtype, spread)
    stream = bytes(write(codes).tolist())
    expected = codes.view(torch.uint8) if dtype == torch.int8 else codes
    assert plain_rans.read(stream, count, dtype.itemsize) == expected.tolist()


@pytest.mark.parametrize("spec", VARIABLE_SIZE)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_chain_loses_what_it_was_given(spec: str, shape: tuple[int, ...]) -> None:
    codec = laconic.codec(spec)
    for dtype in FLOATS:
        x = ramp(shape, dtype)
        enc = laconic.Encoded.from_bytes(codec.encode(x).to_bytes())
        expected = x if enc.chain[0].stage.name == "raw" else codec.roundtrip(x)  # where so few codes would grow
        assert torch.equal(laconic.decode(enc), expected)
        assert torch.equal(laconic.decode(enc, out=torch.empty_like(x)), expected)
        into = torch.empty(*shape[:-1], 2 * shape[-1], dtype=dtype)[..., ::2]
        assert torch.equal(laconic.decode(enc, out=into), expected)


@pytest.mark.parametrize("spec", VARIABLE_SIZE)
def test_out_is_ignored_or_allocated_anew(spec: str) -> None:
    codec, x = laconic.codec(spec), ramp((2, 3, 64, 64)).round(decimals=1)
    room = codec.empty(TensorSpec.of(x))
    enc = codec.encode(x, out=room)
    assert enc.parts["main"].data_ptr() == room.parts["main"].data_ptr()
    assert enc.to_bytes() == codec.encode(x).to_bytes()


def test_more_is_kept_in_memory_than_was_written() -> None:
    main = laconic.encode(ramp((3, 64, 64)), "affine:bits=2|rans").parts["main"]
    assert main.untyped_storage().nbytes() == main.nbytes


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool, torch.complex64])
def test_elements_without_a_code_are_taken(dtype: torch.dtype) -> None:
    with pytest.raises(SpecError, match="at most 4 bytes"):
        Rans().out_spec(TensorSpec((8,), dtype))


@pytest.mark.parametrize("dtype", CODES)
def test_noise_grows(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    codes = torch.randint(limits.min, limits.max, (100_000,), dtype=dtype)
    assert write(codes).numel() <= 1 + codes.nbytes


def test_codes_of_two_values_carry_a_large_book() -> None:
    for values in ([0, -1], [5, 60], [0, -64]):
        codes = torch.tensor(values * 4, dtype=torch.int32).repeat(100)
        assert write(codes).numel() < 800 / 8 + 16
    assert write(torch.zeros(10_000_000, dtype=torch.int8)).numel() == 2
    nearly = torch.zeros(1 << 20, dtype=torch.int16)
    nearly[77777] = 1
    assert write(nearly).numel() < 100


@pytest.mark.parametrize("spread", [0.3, 0.5, 1, 2, 4, 8, 16, 30])
@pytest.mark.parametrize("count", [1 << 16, 1 << 17, (1 << 17) + 1, 1 << 20])
def test_size_strays_from_the_entropy(spread: float, count: int) -> None:
    codes = torch.from_numpy(np.random.default_rng(0).normal(0, spread, count).round().clip(-128, 127)).to(torch.int8)
    assert 8 * write(codes).numel() / codes.numel() < 1.01 * entropy(codes)


def test_wide_codes_stray_from_the_entropy() -> None:
    for spread in (0.4, 5, 60, 400):
        codes = skewed(1 << 20, torch.int32, spread)
        assert 8 * write(codes).numel() / codes.numel() < 1.01 * entropy(codes)


def test_one_code_more_frequent_than_all_others_takes_a_bit() -> None:
    codes = torch.zeros(1 << 17, dtype=torch.uint8)
    codes[::50] = 7
    assert 8 * write(codes).numel() / codes.numel() < 1.02 * entropy(codes)


@pytest.mark.parametrize(("count", "most"), [(64, 20), (300, 22), (2000, 35), (4096, 50)])
def test_small_tensors_are_mostly_header(count: int, most: int) -> None:
    """Beyond their entropy they have a head of a byte, a book, and states."""
    codes = torch.from_numpy(np.random.default_rng(0).normal(0, 3, count).round()).to(torch.int8)
    assert write(codes).numel() - entropy(codes) * count / 8 < most


COUNTS = st.lists(st.integers(0, 3), min_size=256, max_size=256) | st.lists(
    st.integers(0, 2**40), min_size=256, max_size=256
)


@given(COUNTS, st.sampled_from([10, 12, 15]))
def test_slots_are_left_over_or_missing(counts: list[int], bits: int) -> None:
    book = books.make_book(np.array(counts), 0)
    assert sum(count > 0 for count in counts) <= (book.frequencies > 0).sum()
    loaded = books.load_book(book.stored + b"\xff", 1)
    assert loaded.stored == book.stored
    assert (loaded.frequencies == book.frequencies).all()
    frequencies = books.to_frequencies(books.to_levels(np.array(counts) + 1), bits)
    assert frequencies.sum() == 1 << bits
    assert frequencies.min() > 0


def samples() -> list[torch.Tensor]:
    return [
        skewed(1500, torch.int8, 2),
        skewed(300, torch.int16, 90),
        skewed(200, torch.int32, 1e4),
        torch.arange(5, dtype=torch.int8),
        torch.full((9,), 7, dtype=torch.int16),
        torch.cat([torch.zeros(1024, dtype=torch.int8), skewed(300, torch.int8, 2)]),
    ]


def agree(stream: torch.Tensor, spec: TensorSpec) -> bool:
    """Whether these bytes are read; both bodies must say the same."""
    found = []
    for body in (read, read_by_reference):
        with contextlib.suppress(CorruptData):
            found.append(body(stream, spec))
    assert len(found) in (0, 2)
    return bool(found) and torch.equal(*found)


@pytest.mark.parametrize("codes", samples(), ids=lambda codes: f"{codes.dtype}[{codes.numel()}]")
def test_a_cut_stream_is_read(codes: torch.Tensor) -> None:
    stream, spec = write(codes), TensorSpec.of(codes)
    for length in range(stream.numel()):
        assert not agree(stream[:length].clone(), spec)
    assert not agree(torch.cat([stream, stream[:1]]), spec)


@pytest.mark.parametrize("codes", samples(), ids=lambda codes: f"{codes.dtype}[{codes.numel()}]")
def test_a_changed_byte_crashes_the_reader(codes: torch.Tensor) -> None:
    stream, spec = write(codes), TensorSpec.of(codes)
    refused = 0
    for at in range(stream.numel()):
        for change in (0x01, 0x10, 0xFF):
            damaged = stream.clone()
            damaged[at] ^= change
            refused += not agree(damaged, spec)
    assert refused > 0 or codes.numel() < 10


@given(data=st.data(), codes=st.sampled_from(samples()))
def test_damage_crashes_the_reader(data: st.DataObject, codes: torch.Tensor) -> None:
    stream = write(codes)
    for _ in range(data.draw(st.integers(1, 6))):
        stream[data.draw(st.integers(0, stream.numel() - 1))] = data.draw(st.integers(0, 255))
    count = data.draw(st.sampled_from([codes.numel(), 0, 1, 300, 10_000]))
    agree(stream, TensorSpec((count,), codes.dtype))


@given(st.binary(max_size=300), st.integers(0, 5000), st.sampled_from(CODES))
def test_any_bytes_crash_the_reader(data: bytes, count: int, dtype: torch.dtype) -> None:
    agree(torch.tensor(list(data), dtype=torch.uint8), TensorSpec((count,), dtype))


def test_a_stream_asks_for_more_memory_than_there_is() -> None:
    stream = write(skewed(2000, torch.int8, 2))
    with pytest.raises(CorruptData):
        Rans().decode(Parts(stream), TensorSpec((1 << 50,), torch.int8), 1)


def as_bytes(bits: str) -> list[int]:
    """The first of these bits is the lowest of a byte."""
    return list(int(bits[::-1], 2).to_bytes(-(-len(bits) // 8), "little"))


def golomb(value: int, order: int = 0) -> str:
    shifted = value + (1 << order)
    e = shifted.bit_length() - 1
    return "0" * (e - order) + "1" + f"{shifted - (1 << e):0{e}b}"[::-1] * (e > 0)


END = golomb(1) + golomb(0, 1)  # behind a level of 1
BROKEN = {
    "no symbol": golomb(0) + golomb(0, 1),
    "one symbol": golomb(2) + END,
    "a level too high": golomb(2 * 145) + golomb(0) + golomb(2 * 145 - 1) + golomb(0, 1),
    "a level below 0": golomb(2) + golomb(3) + golomb(1) + END,
    "a run too long": golomb(2) + golomb(0) + golomb(1) + golomb(255, 1),
    "a number too long": golomb(2) + "0" * 13 + "1" + "0" * 13,
    "bits behind it": golomb(2) + golomb(0) + END + "1",
    "its end missing": golomb(2) + golomb(0),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("bits", range(8))
def test_a_book_that_is_none_is_used(name: str, bits: int) -> None:
    book = f"{bits:03b}"[::-1] + "00" + BROKEN[name]
    stream = torch.tensor([2, *as_bytes(book), 1, 0, 0, 0], dtype=torch.uint8)
    assert not agree(stream, TensorSpec((16,), torch.int8))
    assert not agree(stream[:-4].clone(), TensorSpec((16,), torch.int8))


def test_no_book_would_be_read() -> None:
    """What the broken ones are held against: two symbols alike, and a state that two of the second one leave."""
    book = "000" + "00" + golomb(2) + golomb(0) + END
    stream = torch.tensor([2, *as_bytes(book), *(1023).to_bytes(2, "little")], dtype=torch.uint8)
    assert agree(stream, TensorSpec((2,), torch.int8))
    assert read(stream, TensorSpec((2,), torch.int8)).tolist() == [1, 1]


@pytest.mark.parametrize("direct", [0, 1, 2, 12, 15])
@pytest.mark.parametrize("dtype", [torch.int16, torch.int32])
def test_an_alphabet_that_such_codes_have_not_is_read(dtype: torch.dtype, direct: int) -> None:
    book = "000" + "00" + f"{direct:04b}"[::-1] + golomb(2) + golomb(0) + END
    assert not agree(torch.tensor([2, *as_bytes(book), 1], dtype=torch.uint8), TensorSpec((16,), dtype))


def test_more_symbols_than_slots_are_read() -> None:
    book = "000" + "00" + golomb(2) + golomb(0) * 255
    assert not agree(torch.tensor([2, *as_bytes(book), 1], dtype=torch.uint8), TensorSpec((16,), torch.int8))


@pytest.mark.parametrize("lanes_log", [6, 7, 63])
def test_lanes_without_states_are_read(lanes_log: int) -> None:
    stream = write(skewed(3000, torch.int8, 2))
    stream[0] = 2 | lanes_log << 2
    assert not agree(stream, TensorSpec((3000,), torch.int8))


def test_what_is_read_at_odd_addresses_crashes_the_kernels() -> None:
    codes = skewed(5000, torch.int32, 300)
    memory = torch.empty(codes.nbytes + 8, dtype=torch.uint8)
    odd = torch.frombuffer(memory.numpy(), dtype=torch.int32, offset=1, count=5000)
    odd.copy_(codes)
    assert torch.equal(write(odd), write(codes))
    odd.zero_()
    Rans().decode(Parts(write(codes)), TensorSpec.of(codes), 1, odd)
    assert torch.equal(odd, codes)


def test_the_operators_break_torchs_rules() -> None:
    codes = skewed(5000, torch.int16, 20)
    stream = write(codes)
    room = torch.empty(ops.capacity(codes), dtype=torch.uint8)
    torch.library.opcheck(torch.ops.laconic.rans_encode.default, (codes,))
    torch.library.opcheck(torch.ops.laconic.rans_encode_out.default, (codes, room))
    torch.library.opcheck(torch.ops.laconic.rans_encode_many.default, ([codes, codes[:50]],))
    torch.library.opcheck(torch.ops.laconic.rans_decode_many.default, ([stream], [torch.empty_like(codes)]))
    torch.library.opcheck(torch.ops.laconic.rans_decode.default, (stream, [5000], torch.int16))
    torch.library.opcheck(torch.ops.laconic.rans_decode_out.default, (stream, torch.empty_like(codes)))


PRINT_STREAMS = """
    import hashlib, os, numpy as np, torch, laconic
    from laconic.encoders.rans import Rans
    from laconic.stage import Context, Parts
    digest = hashlib.sha256()
    all_threads = (1, 2, 5) if os.environ.get("LACONIC_NATIVE") != "0" else (1,)
    rng = np.random.default_rng(3)
    for dtype, spread in [("int8", 1.5), ("uint8", 9), ("int16", 3), ("int16", 200), ("int32", 1e6), ("int8", 0.01)]:
        for count in (2, 999, 1100, 9_001, 270_001):
            limits = np.iinfo(dtype)
            values = rng.laplace(0, spread, count) * (1 + np.arange(count) // 99_999)
            x = torch.from_numpy(values.round().clip(limits.min, limits.max).astype(dtype))
            for threads in all_threads:
                torch.set_num_threads(threads)
                main = Rans().encode(x, Context(x)).main
                assert torch.equal(Rans().decode(Parts(main), laconic.TensorSpec.of(x), 1), x)
                digest.update(main.numpy().tobytes() if threads == 1 else b"")
                if threads == 1: first = main
                assert torch.equal(main, first)
    print(digest.hexdigest())
"""


@needs_native
def test_bytes_depend_on_the_machine_or_the_threads() -> None:
    """On a machine without an instruction set the next lower one runs, and must agree too."""
    choices = [{"LACONIC_ISA": isa} for isa in ("baseline", "avx2", "avx512")]
    digests = {run_python(PRINT_STREAMS, **env) for env in (*choices, {"LACONIC_NATIVE": "0"})}
    assert len(digests) == 1


@needs_native
def test_fork_after_use_hangs_the_child() -> None:
    out = run_python("""
        import os, signal, torch, laconic
        torch.set_num_threads(2)
        codec, x = laconic.codec("rans"), torch.randn(1 << 20).mul(3).to(torch.int8)
        before = codec.encode(x).to_bytes()
        child = os.fork()
        signal.alarm(30)
        if child == 0:
            assert codec.encode(x).to_bytes() == before
            laconic.decode(laconic.Encoded.from_bytes(before))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print("both")
    """)
    assert out.strip() == "both"


def test_the_stage_is_not_in_the_format_page() -> None:
    page = Path(__file__).parents[2] / "docs" / "format.md"
    assert f"### `rans`, version {Rans.version}" in page.read_text()


def test_what_is_encoded_follows_its_input() -> None:
    codes = skewed(3000, torch.int8, 2)
    before = codes.clone()
    parts = Rans().encode(codes, Context(codes))
    codes.zero_()
    assert torch.equal(Rans().decode(parts, TensorSpec.of(codes), 1), before)
