"""What chooses an encoder must choose well, always the same, and leave no trace but the choice."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

import laconic
from laconic import CorruptData, LaconicError, SpecError, TensorSpec
from laconic.batch import EncodedBatch
from laconic.bench.costs import data
from laconic.encoders import auto, candidates, costs
from laconic.encoders.auto import Auto
from laconic.encoders.sample import Sample
from laconic.errors import FileError
from laconic.stage import Parts

from ..backends.test_native import needs_native, run_python

COUNT = 1 << 16
KINDS = {
    "noise": data.uniform(COUNT, 1),
    "nearly all zero": data.normal(COUNT, 1, 0.2),
    "skewed": data.normal(COUNT, 1, 3.0),
    "flat": data.normal(COUNT, 1, 25.0),
    "runs": data.runs(COUNT, 1),
    "rows": data.rows(COUNT, 1),
    "rows alike": data.rows(COUNT, 1, kinds=1),
    "skewed, 16 bits": data.normal(COUNT, 2, 300.0),
    "skewed, 32 bits": data.normal(COUNT, 4, 1e5),
}
BEST_FOR = {
    "noise": {"raw"},
    "nearly all zero": {"rans"},
    "skewed": {"rans", "huffman"},
    "flat": {"rans", "huffman"},
    "runs": {"zstd"},
    "rows": {"vlz"},
    "skewed, 16 bits": {"rans", "huffman"},
}


def forget() -> None:
    for known in (costs._current, candidates.installed, auto._plan):
        known.cache_clear()


@pytest.fixture(autouse=True)
def _shipped_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever this machine was calibrated to."""
    monkeypatch.setenv(costs.VARIABLE, str(costs.BUILT_IN))
    forget()
    yield
    forget()


def chosen(codes: Tensor, prefer: str = "ratio") -> str:
    return laconic.encode(codes, f"auto:prefer={prefer}").chain[-1].stage.name


def sizes(codes: Tensor) -> dict[str, int]:
    """What each encoder makes of it, by the bytes of its parts."""
    found = {}
    for candidate in candidates.installed():
        enc = laconic.encode(codes, str(candidate.stage))
        found[candidate.name] = sum(part.nbytes for part in enc.parts.values())
    return found


@pytest.mark.parametrize("kind", BEST_FOR)
def test_codes_made_for_one_encoder_go_to_another(kind: str) -> None:
    assert chosen(KINDS[kind]) in BEST_FOR[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_bytes_are_missed_by_much(kind: str) -> None:
    found = sizes(KINDS[kind])
    assert found[chosen(KINDS[kind])] <= 1.05 * min(found.values()) + 16


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_foretells_another_size(kind: str) -> None:
    codes, found = KINDS[kind], sizes(KINDS[kind])
    for forecast in Auto("link:1").forecasts([codes], every=True):
        known_well = forecast.candidate.name in ("raw", "bitpack", "huffman", "rans")
        limit = 1.15 if known_well else 2.5
        assert found[forecast.candidate.name] / limit - 64 <= forecast.outcome.nbytes
        assert min(forecast.outcome.nbytes, codes.nbytes) <= found[forecast.candidate.name] * limit + 64


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_link_gets_more_bytes_than_a_fast_one(kind: str) -> None:
    slow, fast = (laconic.encode(KINDS[kind], f"auto:prefer=link:{link}") for link in ("1e-6", "1e6"))
    assert slow.nbytes <= 1.05 * fast.nbytes + 64


def test_speed_is_sought_where_nothing_becomes_smaller() -> None:
    assert chosen(KINDS["noise"], "speed") == "raw"
    assert chosen(KINDS["skewed"], "speed") != "raw"


@pytest.mark.parametrize("prefer", ["ratio", "speed", "link:0.1", "link:1", "link:10"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_codes_are_encoded_otherwise_the_next_time(kind: str, prefer: str) -> None:
    codec = laconic.codec(f"auto:prefer={prefer}")
    first = codec.encode(KINDS[kind])
    assert codec.encode(KINDS[kind].clone()).to_bytes() == first.to_bytes()
    assert torch.equal(codec.decode(first), KINDS[kind])


@needs_native
def test_the_body_changes_the_choice() -> None:
    code = """
        import hashlib, torch, laconic
        from laconic.bench.costs import data
        found = hashlib.sha256()
        for codes in (data.normal(5000, 1, 2.0), data.rows(9000, 1), data.runs(5000, 2), data.normal(3000, 4, 500.0)):
            for prefer in ("ratio", "speed", "link:0.1", "link:5"):
                found.update(laconic.encode(codes, f"auto:prefer={prefer}").to_bytes())
        print(found.hexdigest())
    """
    assert run_python(code) == run_python(code, LACONIC_NATIVE="0")


@pytest.mark.parametrize("prefer", ["fast", "link", "link:", "link:0", "link:-1", "link:nan", "link:inf", "link:x"])
def test_a_preference_that_is_none_is_not_explained(prefer: str) -> None:
    with pytest.raises(SpecError, match=r"prefer=ratio, prefer=speed or prefer=link:<GB/s>") as caught:
        laconic.codec(f"auto:prefer={prefer}")
    assert prefer in str(caught.value)
    laconic.codec(Auto.example)


def test_its_own_name_is_stored_and_read() -> None:
    x = torch.randn(64, 64)
    enc = laconic.encode(x, "bound:rel=1e-2|auto")
    assert [link.stage.name for link in enc.chain][-1] not in ("auto", "bound")
    assert b"auto:" not in enc.to_bytes()  # a bound's width is auto, too
    with pytest.raises(CorruptData, match="written nothing"):
        laconic.decode(laconic.codec("auto").empty(TensorSpec.of(x)))
    with pytest.raises(CorruptData):
        Auto().decode(Parts(torch.zeros(3, dtype=torch.uint8)), TensorSpec((3,), torch.int8), 1)


def test_a_codec_refuses_what_it_chose_itself() -> None:
    x = torch.randn(64, 64)
    codec = laconic.codec("bound:rel=1e-2|auto")
    assert codec.decode(laconic.encode(x, "bound:rel=1e-2|huffman")).shape == x.shape
    for other in ("bound:rel=1e-3|huffman", "bound:rel=1e-2|zstd:level=7", "huffman"):
        with pytest.raises(SpecError, match="cannot decode"):
            codec.decode(laconic.encode(x, other))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.int64])
@pytest.mark.parametrize("prefer", ["ratio", "speed", "link:0.01", "link:1"])
def test_codes_of_some_size_are_refused(dtype: torch.dtype, prefer: str) -> None:
    codes = torch.arange(5000, dtype=torch.int64).remainder(11).to(dtype).view(50, 100)
    assert torch.equal(laconic.decode(laconic.encode(codes, f"auto:prefer={prefer}")), codes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool])
@pytest.mark.parametrize("prefer", ["ratio", "link:0.01", "link:1"])
def test_floats_and_flags_come_back_as_others(dtype: torch.dtype, prefer: str) -> None:
    x = torch.randn(40, 33).to(dtype)
    if dtype.is_floating_point:
        x[3, 4:6] = torch.tensor([torch.nan, -torch.inf])
    restored = laconic.decode(laconic.encode(x, f"auto:prefer={prefer}"))
    assert torch.equal(restored.view(torch.uint8), x.view(torch.uint8))


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (1,), (), (1, 1), (2, 3), (33,), (3, 1), (2, 0, 4)])
@pytest.mark.parametrize("prefer", ["ratio", "speed", "link:0.01", "link:1"])
def test_what_is_empty_or_tiny_cannot_be_sampled(shape: tuple[int, ...], prefer: str) -> None:
    codes = torch.arange(torch.Size(shape).numel(), dtype=torch.int16).reshape(shape)
    codec = laconic.codec(f"auto:prefer={prefer}")
    assert torch.equal(laconic.decode(codec.encode(codes)), codes)
    (restored,) = codec.decode_many(codec.encode_many([codes]))
    assert torch.equal(restored, codes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prefer", ["ratio", "link:0.1", "link:1"])
def test_room_is_too_small_for_the_choice(kind: str, prefer: str) -> None:
    codec = laconic.codec(f"auto:prefer={prefer}")
    room = codec.empty(TensorSpec.of(KINDS[kind]))
    enc = codec.encode(KINDS[kind], out=room)
    assert enc.parts["main"].data_ptr() == room.parts["main"].data_ptr()
    assert torch.equal(codec.decode(enc, out=torch.empty_like(KINDS[kind])), KINDS[kind])


def test_small_tensors_of_a_batch_are_each_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """One choice serves all of a spec, so that they share a book and are one call."""
    sampled = []
    monkeypatch.setattr(auto, "Sample", lambda *given: sampled.append(given) or Sample(*given))
    batch = [data.normal(4096, 1, 3.0).view(64, 64).roll(i) for i in range(32)]
    codec = laconic.codec("auto:prefer=link:0.1")
    encoded = codec.encode_many(batch)
    assert len(sampled) == 1
    assert len({enc.chain for enc in encoded}) == 1
    restored = codec.decode_many(EncodedBatch.from_bytes(encoded.to_bytes()))
    assert all(torch.equal(x, y) for x, y in zip(batch, restored, strict=True))


def test_large_tensors_of_a_batch_share_a_choice() -> None:
    batch = [KINDS["noise"], KINDS["runs"], KINDS["skewed"], KINDS["noise"][:100], torch.full((9,), 3).to(torch.int8)]
    codec = laconic.codec("auto")
    encoded = codec.encode_many(batch)
    assert [enc.chain[-1].stage.name for enc in encoded] == [
        *(codec.encode(x).chain[-1].stage.name for x in batch[:3]),
        *("raw", "constant"),
    ]
    assert all(torch.equal(x, y) for x, y in zip(batch, codec.decode_many(encoded), strict=True))


def test_a_shared_book_is_lost_behind_the_choice() -> None:
    batch = [data.normal(1000, 1, 9.0).roll(i) for i in range(40)]
    chosen = laconic.codec("auto").encode_many(batch)
    name = chosen[0].chain[-1].stage.name
    assert chosen.nbytes <= 1.02 * laconic.codec(name).encode_many(batch).nbytes


@pytest.mark.parametrize("module", ["zstandard", "lz4"])
def test_what_is_not_installed_is_chosen(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    forget()
    for prefer in ("ratio", "link:0.01", "link:1"):
        for codes in KINDS.values():
            assert chosen(codes, prefer) != {"zstandard": "zstd", "lz4": "lz4"}[module]


def test_time_is_guessed_for_what_was_never_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = json.loads(costs.BUILT_IN.read_text())
    model["rows"] = [row for row in model["rows"] if row["encoder"] in ("raw", "bitpack")]
    (tmp_path / "costs.json").write_text(json.dumps(model))
    monkeypatch.setenv(costs.VARIABLE, str(tmp_path / "costs.json"))
    forget()
    assert chosen(KINDS["rows"], "link:0.001") == "bitpack"
    assert chosen(KINDS["rows"], "ratio") == "vlz"


def damaged(model: str) -> dict[str, str]:
    value = json.loads(model)
    first = value["rows"][0]
    return {
        "nothing": "",
        "half of it": model[: len(model) // 2],
        "another file": json.dumps({"kind": "laconic bench blocks", "version": 1}),
        "a later version": json.dumps(value | {"version": 99}),
        "no rows": json.dumps(value | {"rows": []}),
        "sizes that fall": json.dumps(value | {"sizes": value["sizes"][::-1]}),
        "a size less": json.dumps(value | {"sizes": value["sizes"][1:]}),
        "time that runs back": json.dumps(value | {"rows": [first | {"encode": [-1.0] * len(first["encode"])}]}),
        "no number": json.dumps(value | {"rows": [first | {"decode": ["soon"] * len(first["decode"])}]}),
        "NaN": json.dumps(value | {"rows": [first | {"ratios": [float("nan")] * len(first["ratios"])}]}),
        "data of no kind": json.dumps(value | {"rows": [first | {"what": "words"}]}),
        "a list": "[1, 2]",
        "bytes": "\0\1\2",
    }


@pytest.mark.parametrize("what", damaged(costs.BUILT_IN.read_text()))
def test_a_damaged_calibration_is_believed(what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(damaged(costs.BUILT_IN.read_text())[what])
    monkeypatch.setenv(costs.VARIABLE, str(path))
    forget()
    with pytest.raises(CorruptData, match=r"mine\.json' is not what 'laconic bench calibrate' writes"):
        laconic.encode(KINDS["skewed"], "auto:prefer=link:1")


def test_a_calibration_that_is_not_there_is_another_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(costs.VARIABLE, str(tmp_path / "gone.json"))
    forget()
    with pytest.raises(FileError, match=r"gone\.json"):
        laconic.encode(KINDS["skewed"], "auto:prefer=link:1")


def test_the_calibration_of_a_user_is_not_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(costs.VARIABLE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    forget()
    assert costs.current().rows == costs.load(costs.BUILT_IN).rows
    path = costs.user_file()
    assert path == tmp_path / "laconic" / "costs.json"
    path.parent.mkdir()
    path.write_text("{}")
    forget()
    with pytest.raises(LaconicError, match=r"costs\.json"):
        costs.current()


def test_times_leave_the_line_between_what_was_measured() -> None:
    model = costs.CostModel(
        sizes=(100, 300),
        rows=(
            costs.Row("raw", 1, 1, "codes", (0.2, 0.2), (1.0, 3.0), (0.0, 0.0)),
            costs.Row("raw", 1, 1, "codes", (0.6, 0.6), (5.0, 7.0), (0.0, 0.0)),
            costs.Row("raw", 1, 1, "rows", (0.1, 0.1), (9.0, 9.0), (0.0, 0.0)),
            costs.Row("raw", 1, 4, "codes", (0.2, 0.2), (0.5, 1.5), (0.0, 0.0)),
            costs.Row("raw", 1, 4, "codes", (0.6, 0.6), (2.5, 3.5), (0.0, 0.0)),
            costs.Row("raw", 1, 4, "rows", (0.1, 0.1), (9.0, 9.0), (0.0, 0.0)),
        ),
    )

    def seconds(nbytes: int, ratio: float, threads: int = 1, rows: float = 0.0) -> float:
        curve = model.curve("raw", 8, nbytes, threads)
        assert curve is not None
        return curve.at(ratio, {"rows": rows})

    assert seconds(200, 0.4) == pytest.approx(4.0)
    assert (seconds(10, 0.2), seconds(100, 0.0), seconds(600, 1.0)) == pytest.approx((1.0, 1.0, 14.0))
    assert (seconds(100, 0.2, threads=4), seconds(100, 0.2, threads=9)) == pytest.approx((0.5, 0.5))
    assert seconds(100, 0.2, threads=2) == pytest.approx(1.0 - 0.5 * (1 - 1 / 2) / (1 - 1 / 4))
    assert seconds(100, 0.2, rows=0.25) == pytest.approx(3.0)
    assert model.curve("vlz", 1, 100, 1) is None
