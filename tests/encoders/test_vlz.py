"""Every body finds the same matches and writes the same bytes, reads them back, and refuses all others."""

from __future__ import annotations

import contextlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import laconic
from laconic import CorruptData, SpecError, TensorSpec
from laconic.encoders.vlz import Vlz
from laconic.ops import vlz as ops
from laconic.ops.repeats import MOST_ROWS
from laconic.ops.streams import INTEGERS
from laconic.stage import Context, Parts

from ..lookups import DTYPES, looked_up, lookups
from . import plain_rows


def write(codes: Tensor, window: int = MOST_ROWS, block: int = 65536) -> Tensor:
    stream = torch.ops.laconic.vlz_encode(codes, window, block)
    assert stream.numel() <= ops.capacity(codes.nbytes)
    return stream  # type: ignore[no-any-return]


def write_by_reference(codes: Tensor, window: int = MOST_ROWS, block: int = 65536) -> Tensor:
    room = torch.empty(ops.capacity(codes.nbytes), dtype=torch.uint8)
    return room[: int(ops.reference_encode(codes, window, block, room))]


def read(stream: Tensor, spec: TensorSpec) -> Tensor:
    return Vlz().decode(Parts(stream), spec, 1)


def read_by_reference(stream: Tensor, spec: TensorSpec) -> Tensor:
    out = torch.empty(spec.shape, dtype=spec.dtype)
    ops.reference_decode(stream, out.view(INTEGERS[out.element_size()]))
    return out


def repeated(rows: int, columns: int, period: int, dtype: torch.dtype = torch.int8) -> Tensor:
    """Runs of rows that come again as a whole."""
    table = torch.randperm(period * columns, generator=torch.Generator().manual_seed(1)).view(period, columns)
    return (table % 120).to(dtype).repeat(-(-rows // period), 1)[:rows].clone()


@given(lookups(), st.sampled_from([1, 2, 32, MOST_ROWS]), st.sampled_from([1, 2, 100, 65536]))
def test_codes_change_on_the_way(sample: tuple[Tensor, Tensor], window: int, block: int) -> None:
    codes = sample[0]
    stream = write(codes, window, block)
    assert torch.equal(stream, write_by_reference(codes, window, block))
    for body in (read, read_by_reference):
        assert torch.equal(body(stream, TensorSpec.of(codes)), codes)


@given(st.integers(1, 40), st.integers(2, 600), st.sampled_from(DTYPES))
def test_a_match_that_repeats_its_own_rows_is_copied_wrongly(period: int, rows: int, dtype: torch.dtype) -> None:
    codes = repeated(rows, 24, period, dtype)
    codes[rows // 2, 3] ^= 1
    stream = write(codes)
    assert torch.equal(stream, write_by_reference(codes))
    assert torch.equal(read(stream, TensorSpec.of(codes)), codes)


@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (0,), (0, 5), (5, 0), (1, 9), (9, 1), (2, 0, 3), (3, 4, 5), (2, 3, 4, 1), (3, 70_000)]
)
@pytest.mark.parametrize("dtype", [*DTYPES, torch.float32, torch.bfloat16])
def test_a_shape_at_the_edge_breaks_something(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    different = torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)
    for x in (different, torch.zeros(shape, dtype=dtype), different % 2):
        for stage in (Vlz(), Vlz(window=1, block=1), Vlz(window=3, block=2)):
            stream = stage.encode(x, Context(x)).main
            assert torch.equal(stage.decode(Parts(stream), TensorSpec.of(x), 1), x)
            assert torch.equal(read_by_reference(stream, TensorSpec.of(x)), x)


@pytest.mark.parametrize("codes", [looked_up(300, 12, 40)[0], repeated(99, 5, 7, torch.int32), repeated(9, 9, 9)])
def test_the_format_page_describes_another_stream(codes: Tensor) -> None:
    stream = bytes(write(codes, 20, 64).tolist())
    found = plain_rows.read_vlz(stream, len(codes), codes.shape[1] * codes.element_size(), codes.element_size())
    assert found == codes.numpy().tobytes()


def test_rows_that_are_all_alike_are_written_again() -> None:
    assert write(torch.arange(64, dtype=torch.int8).expand(4096, 64).contiguous()).numel() < 100


def test_rows_without_repeats_grow() -> None:
    x = torch.randint(-9, 9, (2048, 64), dtype=torch.int8)
    x[:, 0], x[:, 1] = torch.arange(2048) % 128, torch.arange(2048) // 128
    assert torch.equal(write(x)[1:], torch.ops.laconic.huffman_encode(x))


def test_a_match_reaches_beyond_its_window_or_its_block() -> None:
    codes = repeated(64, 32, 8)
    assert write(codes, window=8)[0] == 1
    assert write(codes, window=7)[0] == 0
    assert write(codes, block=9)[0] == 1
    assert write(codes, block=8)[0] == 0
    assert write(codes).numel() < write(codes, block=16).numel()


@pytest.mark.parametrize("options", ["window=0", "window=-1", "block=0", f"block={2**31}", "window=a"])
def test_a_window_without_rows_is_taken(options: str) -> None:
    with pytest.raises(SpecError, match="expected"):
        laconic.codec(f"vlz:{options}")


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool, torch.complex64])
def test_elements_without_a_code_are_taken(dtype: torch.dtype) -> None:
    with pytest.raises(SpecError, match="at most 4 bytes"):
        Vlz().out_spec(TensorSpec((8, 8), dtype))


# Bytes that are not what laconic wrote.


def samples() -> list[Tensor]:
    return [
        looked_up(90, 16, 20)[0],
        looked_up(300, 8, 3, torch.int16)[0],
        repeated(80, 9, 11, torch.int32),
        torch.arange(90, dtype=torch.int8).view(9, 10),
    ]


def agree(stream: Tensor, spec: TensorSpec) -> bool:
    """Whether these bytes are read; both bodies must say the same."""
    found = []
    for body in (read, read_by_reference):
        with contextlib.suppress(CorruptData):
            found.append(body(stream, spec))
    assert len(found) in (0, 2)
    return bool(found) and torch.equal(*found)


@pytest.mark.parametrize("codes", samples(), ids=lambda codes: f"{codes.dtype}{list(codes.shape)}")
def test_a_cut_stream_is_read(codes: Tensor) -> None:
    stream, spec = write(codes), TensorSpec.of(codes)
    for length in range(stream.numel()):
        assert not agree(stream[:length].clone(), spec)
    assert not agree(torch.cat([stream, stream[:1]]), spec)
    for rows in (0, 1, len(codes) - 1, len(codes) + 1, 9 * len(codes)):
        assert not agree(stream, TensorSpec((rows, codes.shape[1]), codes.dtype))


@pytest.mark.parametrize("codes", samples(), ids=lambda codes: f"{codes.dtype}{list(codes.shape)}")
def test_a_changed_byte_crashes_the_reader(codes: Tensor) -> None:
    stream, spec = write(codes), TensorSpec.of(codes)
    for at in range(stream.numel()):
        for change in (0x01, 0x10, 0xFF):
            damaged = stream.clone()
            damaged[at] ^= change
            agree(damaged, spec)


@given(data=st.data(), codes=st.sampled_from(samples()))
def test_damage_crashes_the_reader(data: st.DataObject, codes: Tensor) -> None:
    stream = write(codes)
    for _ in range(data.draw(st.integers(1, 6))):
        stream[data.draw(st.integers(0, min(60, stream.numel() - 1)))] = data.draw(st.integers(0, 255))
    agree(stream, TensorSpec.of(codes))


@given(st.integers(0, 1), st.binary(max_size=200), st.integers(0, 400), st.integers(0, 9), st.sampled_from(DTYPES))
def test_any_bytes_crash_the_reader(mode: int, data: bytes, rows: int, columns: int, dtype: torch.dtype) -> None:
    agree(torch.tensor([mode, *data], dtype=torch.uint8), TensorSpec((rows, columns), dtype))


def test_a_stream_asks_for_more_memory_than_there_is() -> None:
    stream = write(looked_up(90, 16, 20)[0])
    for rows in (1 << 30, 1 << 50):
        with pytest.raises(laconic.LaconicError):
            read(stream, TensorSpec((rows, 16), torch.int8))


# Many at once.


def test_a_batch_is_written_otherwise_than_each_alone() -> None:
    batch = [looked_up(64, 64, 40, dtype, seed=seed)[0] for seed in range(4) for dtype in DTYPES]
    batch += [looked_up(3, 64, 40)[0], looked_up(1000, 64, 3)[0], looked_up(0, 64, 3)[0]]
    contexts, specs = [Context(codes) for codes in batch], [TensorSpec.of(codes) for codes in batch]
    together = Vlz().encode_many(batch, contexts)
    for parts, codes, ctx in zip(together, batch, contexts, strict=True):
        assert torch.equal(parts.main, Vlz().encode(codes, ctx).main)
    assert all(torch.equal(a, b) for a, b in zip(Vlz().decode_many(together, specs, 1), batch, strict=True))
    together[4].main[0] = 7
    with pytest.raises(CorruptData):
        Vlz().decode_many(together, specs, 1)


def test_the_operators_break_torchs_rules() -> None:
    codes = looked_up(300, 16, 40, torch.int16)[0]
    stream, room = write(codes), torch.empty(ops.capacity(codes.nbytes), dtype=torch.uint8)
    check = torch.library.opcheck
    check(torch.ops.laconic.vlz_encode.default, (codes, 32, 2048))
    check(torch.ops.laconic.vlz_encode_out.default, (codes, 32, 2048, room))
    check(torch.ops.laconic.vlz_encode_many.default, ([codes, codes], 32, 2048))
    check(torch.ops.laconic.vlz_decode.default, (stream, [300, 16], torch.int16))
    check(torch.ops.laconic.vlz_decode_out.default, (stream, torch.empty_like(codes)))
    check(torch.ops.laconic.vlz_decode_many_out.default, ([stream], [torch.empty_like(codes)]))


def test_given_room_is_overrun() -> None:
    codes = looked_up(300, 16, 40, torch.int16)[0]
    room = torch.empty(ops.capacity(codes.nbytes), dtype=torch.uint8)
    assert torch.equal(room[: torch.ops.laconic.vlz_encode_out(codes, 32, 99, room)], write(codes, 32, 99))
    with pytest.raises(SpecError, match="expected"):
        torch.ops.laconic.vlz_encode_out(codes, 32, 99, room[1:])


def test_what_is_read_at_odd_addresses_crashes_the_kernels() -> None:
    codes = looked_up(500, 10, 60, torch.int32)[0]
    memory = torch.empty(codes.nbytes + 8, dtype=torch.uint8)
    odd = torch.frombuffer(memory.numpy(), dtype=torch.int32, offset=1, count=5000).view(500, 10)
    odd.copy_(codes)
    assert torch.equal(write(odd), write(codes))
    odd.zero_()
    Vlz().decode(Parts(write(codes)), TensorSpec.of(codes), 1, odd)
    assert torch.equal(odd, codes)
