"""Every body keeps the same rows and writes the same index, gives the rows back, and refuses every other index."""

from __future__ import annotations

import contextlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import laconic
from laconic import CorruptData, SpecError, TensorSpec
from laconic.errors import DataError
from laconic.ops import rows as ops
from laconic.predictors.rows import Rows
from laconic.stage import Context, Parts

from ..backends.test_native import needs_native, run_python
from ..encoders import plain_rows
from ..lookups import DTYPES, looked_up, lookups


def keep(codes: Tensor, rows: Tensor | None = None) -> Parts:
    parts = Rows().encode(codes, Context(codes, rows=rows))
    assert all(
        spec.allows(TensorSpec.of(part))
        for spec, part in (
            (Rows().out_spec(TensorSpec.of(codes)).main, parts.main),
            (Rows().out_spec(TensorSpec.of(codes)).side["index"], parts.side["index"]),
        )
    )
    return parts


def restore(parts: Parts, spec: TensorSpec) -> Tensor:
    return Rows().decode(parts, spec, 1)


def restore_by_reference(parts: Parts, spec: TensorSpec) -> Tensor:
    out = torch.empty(spec.shape, dtype=spec.dtype)
    ops.reference_decode(parts.main, parts.side["index"], out.view(parts.main.dtype))
    return out


@given(lookups(), st.booleans())
def test_rows_change_on_the_way(sample: tuple[Tensor, Tensor], hint: bool) -> None:
    codes, indices = sample
    given_rows = indices if hint else None
    parts = keep(codes, given_rows)
    main, index = ops.reference_encode_new(codes, given_rows)
    assert torch.equal(parts.main, main)
    assert torch.equal(parts.side["index"], index)
    for body in (restore, restore_by_reference):
        assert torch.equal(body(parts, TensorSpec.of(codes)), codes)


@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (0,), (0, 5), (5, 0), (1, 9), (9, 1), (2, 0, 3), (3, 4, 5), (2, 3, 4, 1), (3, 70_000)]
)
@pytest.mark.parametrize("dtype", [*DTYPES, torch.int64, torch.float32, torch.float64, torch.bfloat16])
def test_a_shape_at_the_edge_breaks_something(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    different = torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)
    for x in (different, torch.zeros(shape, dtype=dtype), different % 2):
        parts = keep(x)
        assert torch.equal(restore(parts, TensorSpec.of(x)), x)
        assert torch.equal(restore_by_reference(parts, TensorSpec.of(x)), x)


@pytest.mark.parametrize("rows", [2, 300, 2048, 70_000, 1_000_001])
def test_rows_that_are_all_alike_are_all_kept(rows: int) -> None:
    x = torch.arange(5, dtype=torch.int8).expand(rows, 5)
    parts = keep(x)
    assert torch.equal(parts.main, x[0]) or rows == 2
    assert parts.side["index"].numel() < 50
    for body in (restore, restore_by_reference):
        assert torch.equal(body(parts, TensorSpec.of(x)), x)
    assert not agree(Parts(torch.arange(10, dtype=torch.int8), parts.side), TensorSpec.of(x)) or rows == 2


def test_rows_without_repeats_grow() -> None:
    x = torch.randint(-99, 99, (2048, 16), dtype=torch.int8)
    x[:, 0], x[:, 1] = torch.arange(2048) % 128, torch.arange(2048) // 128
    parts = keep(x)
    assert torch.equal(parts.main, x.view(-1))
    assert parts.side["index"].numel() == 0


def test_one_repeat_among_many_rows_costs_more_than_it_saves() -> None:
    x = torch.arange(2048 * 16, dtype=torch.int32).reshape(2048, 16)
    x[1500] = x[3]
    parts = keep(x)
    assert parts.main.numel() == 2047 * 16
    assert parts.side["index"].numel() < 8


def test_rows_too_short_for_an_index_get_one() -> None:
    assert keep(torch.randint(0, 9, (2048, 1), dtype=torch.int8)).side["index"].numel() == 0


def test_rows_with_nans_are_never_equal() -> None:
    x = torch.full((9, 33), torch.nan)
    x[::2, 5] = -0.0
    x[1::2, 5] = 0.0
    parts = keep(x)
    assert parts.main.numel() == 2 * 33
    assert torch.equal(restore(parts, TensorSpec.of(x)).view(torch.int32), x.view(torch.int32))


def test_collisions_make_rows_equal() -> None:
    """Rows that differ in one bit anywhere, of every length at which hashing begins to work otherwise."""
    for columns in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65):
        x = torch.zeros(8 * columns + 1, columns, dtype=torch.uint8)
        for bit in range(8 * columns):
            x[bit, bit // 8] = 1 << bit % 8
        twice = torch.cat([x, x.flip(0)])
        for _ in range(2):
            assert torch.equal(restore(keep(twice), TensorSpec.of(twice)), twice)
            twice = twice.repeat(3, 1)


@pytest.mark.parametrize(
    ("rows", "different", "skew"), [(40, 12, 0), (300, 2, 0), (700, 30, 2), (500, 400, 0), (9, 9, 0)]
)
def test_the_format_page_describes_another_index(rows: int, different: int, skew: float) -> None:
    codes = looked_up(rows, 24, different, skew=skew)[0]
    parts = keep(codes)
    order = plain_rows.places(bytes(parts.side["index"].tolist()), parts.main.numel() // 24, rows)
    assert torch.equal(parts.main.view(-1, 24)[order], codes)


# Look-up indices.


def test_given_indices_change_the_rows() -> None:
    codes, indices = looked_up(2048, 64, 900, skew=1.0)
    parts = keep(codes, indices)
    assert torch.equal(parts.main, keep(codes).main)
    for dtype in (torch.int32, torch.uint8, torch.int16):
        few, which = looked_up(300, 8, 99)
        assert torch.equal(keep(few, which.to(dtype)).side["index"], keep(few, which).side["index"])
    assert torch.equal(keep(codes, indices.view(2, 1024)).main, parts.main)


@pytest.mark.parametrize("rows", [2, 300, 5000])
def test_indices_that_lie_are_believed(rows: int) -> None:
    codes = torch.arange(rows * 20, dtype=torch.int32).reshape(rows, 20)
    indices = torch.arange(rows) + 7
    indices[rows - 1] = indices[rows // 3]
    with pytest.raises(DataError, match=rf"rows {rows // 3} and {rows - 1} .* row {rows // 3 + 7} of a table"):
        keep(codes, indices)
    with pytest.raises(DataError, match=rf"rows {rows // 3} and {rows - 1} .* row {rows // 3 + 7} of a table"):
        ops.reference_encode_new(codes, indices)
    with pytest.raises(DataError, match=f"rows {rows // 3} and {rows - 1} "):
        laconic.codec("rows|zstd").encode_many([codes[:1], codes], rows=[None, indices])


def test_indices_that_are_not_looked_up_with_are_taken() -> None:
    codes, indices = looked_up(30, 8, 9)
    for wrong in (indices[:-1], indices.float(), indices > 3, torch.zeros(0, dtype=torch.int64)):
        with pytest.raises(SpecError, match="a whole number for each of 30 rows"):
            keep(codes, wrong)


def test_different_indices_of_equal_rows_lose_one() -> None:
    codes = torch.arange(20, dtype=torch.int8).expand(600, 20)
    parts = keep(codes, torch.arange(600) % 7)
    assert parts.main.numel() == 7 * 20
    assert torch.equal(restore(parts, TensorSpec.of(codes)), codes)


# Parts that are not what laconic wrote.


def samples() -> list[Tensor]:
    return [
        looked_up(40, 16, 12)[0],
        looked_up(300, 8, 2)[0],
        looked_up(700, 16, 30, torch.int16, 2.0)[0],
        looked_up(90, 12, 600, torch.int32, 0.5)[0],
    ]


def agree(parts: Parts, spec: TensorSpec) -> bool:
    """Whether these are read; both bodies must say the same."""
    found = []
    for body in (restore, restore_by_reference):
        with contextlib.suppress(CorruptData):
            found.append(body(parts, spec))
    assert len(found) in (0, 2)
    return bool(found) and torch.equal(*found)


@pytest.mark.parametrize("codes", samples(), ids=lambda codes: f"{codes.dtype}{list(codes.shape)}")
def test_an_index_cut_short_is_read(codes: Tensor) -> None:
    parts, spec = keep(codes), TensorSpec.of(codes)
    index = parts.side["index"]
    for length in range(index.numel()):
        assert not agree(Parts(parts.main, {"index": index[:length].clone()}), spec)
    assert not agree(Parts(parts.main, {"index": torch.cat([index, index[:1]])}), spec)


@pytest.mark.parametrize("codes", samples(), ids=lambda codes: f"{codes.dtype}{list(codes.shape)}")
def test_rows_that_are_too_few_or_too_many_are_read(codes: Tensor) -> None:
    parts, spec = keep(codes), TensorSpec.of(codes)
    columns = codes.shape[-1]
    for main in (parts.main[:-columns], parts.main[columns:], torch.cat([parts.main, parts.main[:columns]])):
        assert not agree(Parts(main.clone(), parts.side), spec)
    for main in (parts.main[:-1], parts.main[:0]):
        assert not agree(Parts(main.clone(), parts.side), spec)
    for rows in (0, 1, len(codes) // 2, 2 * len(codes), 10 * len(codes)):
        assert not agree(parts, TensorSpec((rows, columns), codes.dtype))


@pytest.mark.parametrize("codes", samples(), ids=lambda codes: f"{codes.dtype}{list(codes.shape)}")
def test_a_changed_byte_crashes_the_reader(codes: Tensor) -> None:
    parts, spec = keep(codes), TensorSpec.of(codes)
    for at in range(parts.side["index"].numel()):
        for change in (0x01, 0x10, 0x20, 0xFF):
            index = parts.side["index"].clone()
            index[at] ^= change
            agree(Parts(parts.main, {"index": index}), spec)


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 60))
def test_any_index_crashes_the_reader(data: bytes, count: int, kept: int) -> None:
    index = torch.tensor(list(data), dtype=torch.uint8)
    agree(Parts(torch.arange(kept * 4, dtype=torch.int16), {"index": index}), TensorSpec((count, 4), torch.int16))


def test_an_index_asks_for_more_memory_than_there_is() -> None:
    parts = keep(torch.arange(64, dtype=torch.int8).expand(2048, 64))
    for rows in (1 << 30, 1 << 50):
        with pytest.raises(laconic.LaconicError):
            restore(parts, TensorSpec((rows, 64), torch.int8))


# Many at once, and the machine.


@pytest.mark.parametrize("hint", [False, True])
def test_a_batch_keeps_other_rows_than_each_alone(hint: bool) -> None:
    found = [looked_up(64, 64, 40, skew=seed / 4, seed=seed) for seed in range(12)]
    found += [looked_up(3, 64, 40), looked_up(1000, 64, 3), looked_up(0, 64, 3)]
    batch, rows = [codes for codes, _ in found], [indices if hint else None for _, indices in found]
    contexts = [Context(codes, rows=given_rows) for codes, given_rows in zip(batch, rows, strict=True)]
    together = Rows().encode_many(batch, contexts)
    for parts, codes, ctx in zip(together, batch, contexts, strict=True):
        alone = Rows().encode(codes, ctx)
        assert torch.equal(parts.main, alone.main)
        assert torch.equal(parts.side["index"], alone.side["index"])
    restored = Rows().decode_many(together, [TensorSpec.of(codes) for codes in batch], 1)
    assert all(torch.equal(a, b) for a, b in zip(restored, batch, strict=True))
    together[4].side["index"].add_(77)
    with pytest.raises(CorruptData):
        Rows().decode_many(together, [TensorSpec.of(codes) for codes in batch], 1)


def test_a_batch_of_mixed_codes_is_refused() -> None:
    batch = [looked_up(9, 5, 3, dtype)[0] for dtype in DTYPES]
    together = Rows().encode_many(batch, [Context(codes) for codes in batch])
    restored = Rows().decode_many(together, [TensorSpec.of(codes) for codes in batch], 1)
    assert all(torch.equal(a, b) for a, b in zip(restored, batch, strict=True))


def test_the_operators_break_torchs_rules() -> None:
    codes, indices = looked_up(300, 16, 40, torch.int16)
    main, index = torch.ops.laconic.rows_encode(codes, indices)
    room = torch.empty(codes.numel(), dtype=torch.int16), torch.empty(ops.index_capacity(codes.nbytes)).byte()
    check = torch.library.opcheck
    check(torch.ops.laconic.rows_encode.default, (codes, indices))
    check(torch.ops.laconic.rows_encode_out.default, (codes, *room, indices))
    check(torch.ops.laconic.rows_encode_many.default, ([codes, codes], [None, indices]))
    check(torch.ops.laconic.rows_decode.default, (main, index, [300, 16]))
    check(torch.ops.laconic.rows_decode_out.default, (main, index, torch.empty_like(codes)))
    outs = [torch.empty_like(codes), torch.empty_like(codes)]
    check(torch.ops.laconic.rows_decode_many_out.default, ([main, main], [index, index], outs))


def test_given_room_is_overrun() -> None:
    codes, _ = looked_up(300, 16, 40, torch.int16)
    main, index = torch.ops.laconic.rows_encode(codes)
    rooms = torch.empty(codes.numel(), dtype=torch.int16), torch.empty(codes.nbytes // 4, dtype=torch.uint8)
    codes_written, bytes_written = torch.ops.laconic.rows_encode_out(codes, *rooms).tolist()
    assert torch.equal(rooms[0][:codes_written], main)
    assert torch.equal(rooms[1][:bytes_written], index)
    for short in ((rooms[0][1:], rooms[1]), (rooms[0], rooms[1][1:]), (rooms[0].int(), rooms[1])):
        with pytest.raises(SpecError, match="expected"):
            torch.ops.laconic.rows_encode_out(codes, *short)


PRINT_PARTS = """
    import hashlib, torch, laconic
    from laconic.encoders.vlz import Vlz
    from laconic.predictors.rows import Rows
    from laconic.stage import Context, Parts
    from tests.lookups import looked_up
    digest = hashlib.sha256()
    for rows, columns, different, dtype, skew in [
        (700, 64, 90, torch.int8, 0), (700, 64, 7, torch.int8, 2), (900, 3, 50, torch.int32, 1),
        (40, 17, 30, torch.int16, 0), (90_000, 16, 20_000, torch.int8, 1), (40_000, 33, 10, torch.int16, 0),
        (50_000, 40, 50_000, torch.int8, 0),
    ]:
        x, indices = looked_up(rows, columns, different, dtype, skew)
        stages = [(Rows(), None), (Rows(), indices), (Vlz(), None), (Vlz(window=32, block=2048), None)]
        for stage, given in stages:
            for threads in (1, 2, 5):
                torch.set_num_threads(threads)
                parts = stage.encode(x, Context(x, rows=given))
                assert torch.equal(stage.decode(parts, laconic.TensorSpec.of(x), 1), x)
                data = [part.numpy().tobytes() for part in (parts.main, *parts.side.values())]
                if threads == 1: first = data
                assert data == first
            for part in first: digest.update(part)
    print(digest.hexdigest())
"""


@needs_native
def test_bytes_depend_on_the_machine_or_the_threads() -> None:
    """On a machine without an instruction set the next lower one runs, and must agree too."""
    choices = [{"LACONIC_ISA": isa} for isa in ("baseline", "avx2", "avx512")]
    digests = {run_python(PRINT_PARTS, **env) for env in (*choices, {"LACONIC_NATIVE": "0"})}
    assert len(digests) == 1


@needs_native
def test_fork_after_use_hangs_the_child() -> None:
    out = run_python("""
        import os, signal, torch, laconic
        torch.set_num_threads(2)
        codec, x = laconic.codec("rows|vlz"), torch.arange(64).repeat(9000, 1).to(torch.int8)
        x[::3, 5] = torch.arange(3000).to(torch.int8)
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


def test_what_is_encoded_follows_its_input() -> None:
    for codes in (looked_up(90, 16, 30)[0], torch.arange(900, dtype=torch.int32).view(90, 10)):
        before = codes.clone()
        parts = keep(codes)
        codes.zero_()
        assert torch.equal(restore(parts, TensorSpec.of(codes)), before)
