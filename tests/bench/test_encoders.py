"""The encoders study: what is counted, what is never timed, and who may be called the best."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import laconic
from laconic.bench.encoders import analysis, floors, measure, model, peers, plan, trials
from laconic.bench.encoders.analysis import Rule, analyze
from laconic.bench.encoders.data import Dump, Load, distinct_rows, entropy
from laconic.bench.encoders.plan import Plan, parse_bound
from laconic.bench.encoders.study import KIND, OURS, PEER, Case, EncodersStudy, Row, load
from laconic.bench.encoders.tables import PADDED, tables
from laconic.bench.measure import Effort, WrongResult
from laconic.bench.plot import draw
from laconic.encoders.peers.child import CHILD
from laconic.errors import CorruptData, MissingExtra, SpecError
from laconic.schedule import EbSchedule, TableBounds

ENCODERS = ("raw", "huffman", "zstd:level=1")


def look_ups(table, distinct, rows=96, width=8, iteration=None):
    """Rows of a table in which some are popular."""
    generator = torch.Generator().manual_seed(len(table) + distinct)
    values = torch.randn(distinct, width, generator=generator)
    picked = (torch.rand(rows, generator=generator) ** 2 * distinct).long()
    return Dump(table, iteration, values[picked])


def a_plan(*dumps, **options):
    dumps = dumps or (look_ups("table_1", 60), look_ups("table_5", 2))
    defaults = {"sources": ("a.npz",), "bounds": TableBounds(), "rows": (96, 16), "quick": True}
    return Plan(dumps, **defaults | options)


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "ENCODERS", ENCODERS)
        patch.setattr(Plan, "effort", Effort(seconds=0, rounds=3))
        patch.setattr("laconic.bench.measure.SETTLE_SECONDS", 0)
        patch.setattr("laconic.bench.measure.SLICE_SECONDS", 1e-4)
        patch.setattr(floors, "QUICK_ROWS", 500)
        patch.setattr("laconic.bench.encoders.data.CALL_ROWS", 64)
        yield


@pytest.fixture(scope="module")
def study(tiny):
    found = measure.measure(a_plan(pads=(1, 3), encoders=("lorenzo|huffman",)), lambda what: None)
    CHILD.stop()
    return found


def test_every_encoder_is_measured_on_every_table_cut_in_every_way(study):
    assert study.cuts() == [(96, 1), (96, 3), (16, 1)]
    assert [case.name for case in study.cases] == [
        "table_1, 96 rows",
        "table_5, 96 rows",
        "table_1, 96 rows x 3",
        "table_5, 96 rows x 3",
        "table_1, 16 rows",
        "table_5, 16 rows",
    ]
    for case in study.cases:
        rows = {row.name: row for row in study.rows_of(case)}
        assert {*ENCODERS, "lorenzo|huffman"} <= set(rows)
        assert {"zstd library", "pcodec", "blosc2", "lz4 library"} <= set(rows)
        for row in rows.values():
            assert row.over_bound <= 1
            assert 0 < row.encode_q1 <= row.encode_seconds <= row.encode_q3
            assert 0 < row.decode_q1 <= row.decode_seconds <= row.decode_q3
            assert row.nbytes == 96 * case.pad * 8 * 4
            assert row.included


def test_a_ratio_leaves_bytes_out(study):
    x = look_ups("table_1", 60).x
    whole = next(row for row in study.rows if (row.case, row.name) == ("table_1, 96 rows", "huffman"))
    assert whole.encoded_bytes == len(laconic.encode(x, "bound:rel=0.03|huffman").to_bytes())
    sliced = next(row for row in study.rows if (row.case, row.name) == ("table_1, 16 rows", "huffman"))
    codec = laconic.codec("bound:rel=0.03|huffman")
    calls = [codec.encode_many(x[i : i + 64].split(16)) for i in (0, 64)]
    assert sliced.encoded_bytes == sum(len(batch.to_bytes()) for batch in calls)
    assert "encode_many and decode_many of 4 slices" in sliced.included


def test_a_peer_gets_the_quantiser_for_nothing(study):
    for case in study.cases:
        rows = {row.name: row for row in study.rows_of(case)}
        own = [row.encoded_bytes for row in rows.values() if not row.is_ours]
        assert min(own) > 4 * case.slices, "each slice has a step"
        assert "laconic's quantiser" in rows["pcodec"].included
        assert "in a process of its own" in rows["blosc2"].included


def test_a_case_says_what_it_is(study):
    whole, padded, sliced = (study.cases_of(cut)[1] for cut in study.cuts())
    assert (whole.unique_before, whole.unique_after) == (2 / 96, 2 / 96)
    assert padded.unique_before == 2 / 96 / 3
    assert 2 / 96 < sliced.unique_before <= 12 / 96
    assert (whole.slices, sliced.slices, sliced.slices_in_a_call) == (1, 6, 4)
    assert (whole.code_bits, whole.entropy > 1) == (8, True)
    text = " ".join(f"{table.title} {table.caption}" for table in tables(study))
    assert "unique rows 2.1% before, 2.1% after" in text


def test_padding_is_hidden(study, tmp_path):
    captions = [str(table.caption) for table in tables(study)]
    assert sum(PADDED.format(3) in caption for caption in captions) == 2 + 1
    assert not any("x 3" in verdict.name for verdict in study.verdicts)
    study.save(tmp_path / "e.json")
    draw(tmp_path / "e.json", tmp_path)
    for name in ("time", "ratio"):
        assert "repeated 3 times" in (tmp_path / f"encoders-{name}-96x3.svg").read_text()


def test_distinct_rows_are_those_that_differ_in_some_bit():
    nan = math.nan
    assert distinct_rows(torch.tensor([[1.0, nan], [1.0, nan], [0.0, 1.0], [-0.0, 1.0]])) == 3
    assert distinct_rows(torch.zeros(5, 3, dtype=torch.int8)) == 1
    assert distinct_rows(torch.tensor([[300], [44]], dtype=torch.int16)) == 2


def test_the_entropy_is_another():
    assert entropy([torch.tensor([-128, 127, 0, 0], dtype=torch.int8)]) == pytest.approx(1.5)
    assert entropy([torch.zeros(9, dtype=torch.int16), torch.zeros(2, dtype=torch.int8)]) == 0


@pytest.mark.parametrize(
    "x",
    [
        torch.full((20, 3), 2.5),
        torch.zeros(5, 1),
        torch.randn(1, 7),
        torch.tensor([[math.nan, 1.0], [math.inf, -2.0], [0.5, 0.25]]).repeat(9, 1),
        torch.full((6, 2), math.nan),
    ],
    ids=["constant", "zeros", "one row", "not finite", "nothing finite"],
)
@pytest.mark.parametrize("kind", ["abs", "rel", "rms"])
def test_a_table_of_a_kind_of_its_own_ends_the_study(x, kind, tiny, monkeypatch):
    monkeypatch.setattr(peers, "ENTRIES", peers.ENTRIES[-2:])
    found = measure.measure(a_plan(Dump("odd", None, x), rows=(64, 2), kind=kind), lambda what: None)
    assert {row.name for row in found.rows} == {*ENCODERS, *(entry.label for entry in peers.installed()[0])}
    assert all(row.over_bound <= 1 for row in found.rows)
    json.dumps(found.to_json(), allow_nan=False)


def test_a_wrong_value_is_timed(tiny):
    (whole, *_) = a_plan().loads()
    expected = trials.quantised_only(whole)
    expected[0][3, 3] += 1
    with pytest.raises(WrongResult, match="other values than its quantiser keeps"):
        trials.ours("huffman", whole, expected, 1)


def test_a_broken_bound_is_timed(tiny):
    (whole, *_) = a_plan().loads()
    with pytest.raises(WrongResult, match="breaks its bound"):
        trials.quantised_only(replace(whole, bound=0.01))


def test_a_peer_that_fails_ends_the_study_or_is_left_out_in_silence(tiny, monkeypatch):
    monkeypatch.setattr("laconic.encoders.peers.general.Zstd.decompress", lambda *_: torch.zeros(3).numpy())
    monkeypatch.setattr(peers, "ENTRIES", peers.ENTRIES[-2:])
    found = measure.measure(a_plan(rows=(96,)), lambda what: None)
    assert {(refusal.case, refusal.name) for refusal in found.refused} == {
        ("table_1, 96 rows", "zstd library"),
        ("table_5, 96 rows", "zstd library"),
    }
    assert any("Not measured" in str(table.title) for table in tables(found))


def test_a_library_that_is_missing_ends_the_study(tiny, monkeypatch):
    def missing(*_):
        raise MissingExtra("zstandard", "zstd", "The stage 'zstd'")

    monkeypatch.setattr("laconic.encoders.library._library", missing)
    encoders, refused = a_plan().able()
    assert encoders == ["raw", "huffman"]
    assert [(refusal.case, refusal.name) for refusal in refused] == [("", "zstd:level=1")]
    assert "pip install" in refused[0].reason


def test_an_encoder_that_there_is_not_yet_ends_the_study(monkeypatch):
    monkeypatch.setattr(plan, "ENCODERS", ("raw", "from_the_future", "rows_of_tomorrow|huffman"))
    assert a_plan().able() == (["raw"], [])


def test_the_progress_bar_ends_early_or_never(tiny, monkeypatch):
    monkeypatch.setattr(peers, "ENTRIES", ())
    begun = []
    small = a_plan(look_ups("table_1", 4), pads=(1, 2))
    measure.measure(small, begun.append)
    assert len(begun) == measure.steps(small)


# Bounds of tables and stages


def bound_of(dump, **options):
    return a_plan(dump, **options).bound(dump)


def test_a_table_is_measured_at_the_bound_of_another():
    bounds = TableBounds(0.03, loosen=0.05, classes={5: "loosen"}, schedule=EbSchedule("linear", 2, 1000))
    late, early = look_ups("table_5", 2), look_ups("table_5", 2, iteration=500)
    assert bound_of(late, bounds=bounds) == 0.05
    assert bound_of(early, bounds=bounds) == pytest.approx(0.075)
    assert bound_of(late, bounds=bounds, stage=0) == 0.1
    assert bound_of(late, bounds=bounds, stage=5) == pytest.approx(0.075)
    assert bound_of(early, bounds=bounds, stage=0) == pytest.approx(0.075), "its name knows better"
    assert bound_of(look_ups("table_1", 2), stage=5) == pytest.approx(0.045), "step, from 2 to 1"
    (one,) = a_plan(early, bounds=bounds, rows=(96,)).loads()
    assert (one.table_class, one.quantiser) == ("loosen", f"bound:rel={one.bound!r}")


def test_codes_are_of_another_width(tiny):
    (one,) = a_plan(look_ups("t", 5), codes="16", rows=(96,)).loads()
    assert one.case().code_bits == 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stage": 11}, "stage: expected"),
        ({"codes": "12"}, "--codes 12: expected auto, 8, 16, 32"),
        ({"rows": (0,)}, "--rows: expected numbers above 0"),
        ({"pads": ()}, "--pad: expected numbers above 0"),
        ({"links": (math.nan,)}, "--link: expected numbers above 0"),
        ({"encoders": ("huffmann",)}, "no stage 'huffmann'"),
        ({"encoders": ("dct:chop=4",)}, "cannot follow"),
    ],
)
def test_a_plan_that_cannot_run_is_found_after_minutes(options, message):
    with pytest.raises(SpecError, match=message):
        a_plan(**options)


@pytest.mark.parametrize("text", ["", "0.03", "rel", "rel=", "rel=0", "rel=-1", "rel=nan", "rel=inf", "big=1"])
def test_a_bound_that_means_nothing_is_measured(text):
    with pytest.raises(SpecError, match="--bound"):
        parse_bound(text)


# The model, and who is best

CASE = Case("a", "a", None, "base", "rel", 0.03, "bound:rel=0.03", [10, 10], 10, 1, 1, 1, 8, 1, 1, 8, 10**9)
ROW = Row("a", "", "", "", OURS, 1, 10**9, 1, 1, 1, 1, 1, 1, 1, 1, 3, "")


def row(case, name, ratio, encode, decode, group=OURS):
    seconds = {"encode_seconds": 1 / encode, "decode_seconds": 1 / decode}
    return replace(ROW, case=case, name=name, encoded_bytes=round(10**9 / ratio), group=group, **seconds)


def made_up(*rows, links=(1.0, 10.0)):
    cases = (CASE, replace(CASE, name="b", table="b"))
    return EncodersStudy("", 0, {}, {}, links, (), cases, rows, ())


@given(*[st.floats(0.1, 1000)] * 4)
def test_a_speed_up_is_another_than_the_formula_says(ratio, encode, decode, link):
    one = model.Mean("", True, ratio, encode, decode)
    assert model.speed_up(one, link) == pytest.approx(1 / (1 / ratio + link * (1 / encode + 1 / decode)))
    assert sum(model.shares(one, link)) == pytest.approx(1 / model.speed_up(one, link))


def test_a_mean_is_another_than_harmonic():
    found = made_up(row("a", "x", 2, 1, 4), row("b", "x", 6, 3, 4), row("a", "only on a", 9, 9, 9))
    (mean,) = model.means(found, (10, 1))
    assert (mean.ratio, mean.encode_gb_per_s, mean.decode_gb_per_s) == pytest.approx((3, 1.5, 4))
    speed_ups = [model.speed_up(one, 1) for one in found.rows[:2]]
    assert model.speed_up(mean, 1) == pytest.approx(2 / sum(1 / s for s in speed_ups)), "of the speed-ups, too"


def test_the_smallest_is_called_the_best():
    rows = [
        *(row("a", "small", 50, 0.5, 0.5), row("a", "fast", 5, 10, 20), row("a", "peer", 50, 50, 50, PEER)),
        *(row("b", "small", 900, 9, 30), row("b", "fast", 2, 10, 20), row("b", "peer", 50, 50, 50, PEER)),
    ]
    slow_link, fast_link = model.choices(made_up(*rows, links=(0.01, 1)))
    assert slow_link.single == "small"
    assert slow_link.per_table == {"a": "small", "b": "small"}
    assert fast_link.single == "fast"
    assert fast_link.per_table == {"a": "fast", "b": "small"}
    assert fast_link.per_table_speed_up > fast_link.single_speed_up
    assert (fast_link.peer, fast_link.peer_speed_up) == ("peer", pytest.approx(1 / (1 / 50 + 2 / 50)))


def test_no_encoder_at_all_ends_the_summary():
    assert model.choices(made_up(row("a", "p", 2, 1, 1, PEER), row("b", "p", 2, 1, 1, PEER)))[:] == []
    assert model.choices(made_up(row("a", "only on a", 2, 1, 1))) == []


# Floors


def test_floors_are_held_against_the_wrong_rows():
    cases = [CASE, replace(CASE, name="s", rows=64, slices=32), replace(CASE, name="p", pad=32)]
    rows = [
        row("a", "zstd:level=1", 20, 2, 5),
        row("a", "smaller, slower", 90, 1.9, 9),
        row("a", "rows|rans", 30, 2, 5),
        row("a", "peer", 99, 9, 9, PEER),
        *(row("s", "zstd:level=1", 10, 2, 5), row("s", "rows|huffman", 11, 3, 6)),
        *(row("p", "zstd:level=1", 10, 2, 5), row("p", "rows|huffman", 99, 3, 6)),
    ]
    found = {v.name: (pytest.approx(v.measured, rel=1e-6), v.floor, v.met) for v in floors.verdicts(cases, rows)}
    over = "ratio over zstd:level=1 at its speed both ways"
    assert found == {f"a, rows|rans: {over}": (1.5, 1.3, True), f"s, rows|huffman: {over}": (1.1, 1.2, False)}
    assert not list(floors.verdicts([], []))
    assert not list(floors.verdicts([CASE], [row("a", "rows|rans", 30, 2, 5)]))


def test_floors_of_their_own_cannot_be_measured(tiny, monkeypatch):
    """Whatever is not there yet stands in by another."""
    assert list(floors.without_repeats(a_plan(), ENCODERS)) == []
    assert list(floors.repeats(a_plan(), ENCODERS)) == []
    codec = floors.chain.codec
    stand_in = {"rans": "huffman", "vlz": "zstd"}
    monkeypatch.setattr(floors.chain, "codec", lambda text: codec(stand_in.get(text, text)))
    names = ["huffman", "rans", "vlz"]
    verdicts = [v for special in floors.RACES.values() for v in special(a_plan(), names)]
    assert [v.name for v in verdicts] == [
        "rans alone, encode: speed of codes",
        "rans alone, decode: speed of codes",
        "rans alone: size over the entropy",
        "vlz without repeats, encode: speed over huffman",
        "vlz without repeats, decode: speed over huffman",
        "table_1, 96 rows, vlz alone: speed of decode over encode",
        "table_5, 96 rows, vlz alone: speed of decode over encode",
    ]
    assert 1 <= verdicts[2].measured < 1.5


def test_the_codes_without_repeats_have_some():
    codes = floors.normal_codes(20000)
    assert distinct_rows(codes) == 20000
    assert torch.equal(codes, floors.normal_codes(20000))
    assert entropy([codes]) == pytest.approx(math.log2(floors.SIGMA * math.sqrt(2 * math.pi * math.e)), abs=0.01)


# The file, and what is drawn from it


def test_what_is_saved_is_what_is_read(study, tmp_path):
    study.save(tmp_path / "encoders.json")
    assert load(tmp_path / "encoders.json") == study
    value = json.loads((tmp_path / "encoders.json").read_text())
    assert value["kind"] == KIND
    options = "--bound rel=0.03 --rows 96,16 --pad 1,3 --link 4,12.5 --encoders 'lorenzo|huffman' --threads 1 --quick"
    assert value["command"] == f"laconic bench encoders a.npz {options}"
    assert {"cpu", "cores", "torch", "commit", "date"} <= set(value["machine"])
    assert all(one["ratio"] > 0 and one["encode_gb_per_s"] > 0 for one in value["rows"])
    assert {(mean["rows"], mean["pad"], mean["name"]) for mean in value["means"]} >= {(96, 3, "huffman")}
    assert len(value["choices"]) == 3 * 2


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"kind": "laconic bench encoders", "version": 1}', b"\xff"])
def test_another_file_is_taken_for_a_study(content, tmp_path):
    (tmp_path / "other.json").write_bytes(content)
    for read in (load, lambda path: draw(path, tmp_path)):
        with pytest.raises(CorruptData, match="is not what 'laconic bench"):
            read(tmp_path / "other.json")


def test_figures_are_measured_again(study, tmp_path, monkeypatch):
    study.save(tmp_path / "encoders.json")
    monkeypatch.setattr(measure, "measure", None)
    first, second = (draw(tmp_path / "encoders.json", tmp_path / name) for name in "ab")
    cuts = ("96", "96x3", "16")
    names = [f"encoders-{what}-{cut}" for cut in cuts for what in ("time", "ratio")]
    assert [path.stem for path in first] == ["encoders-floors"] * bool(study.verdicts) + names
    for path, again in zip(first, second, strict=True):
        assert path.read_bytes() == again.read_bytes()
        text = " ".join(ET.parse(path).getroot().itertext())
        assert "laconic 0" in text
        if "floors" not in path.stem:
            assert {"huffman", "pcodec"} <= set(text.split())


# Classes


def smooth_or_rough():
    """Three tables: far apart in all directions, close together, and mostly alike but for one that is far out."""
    generator = torch.Generator().manual_seed(0)
    rough = torch.randn(50, 8, generator=generator)
    close = rough.clone()
    close[:25] = close[25:] + torch.rand(25, 8, generator=generator) * 1e-3
    peaked = rough * 1e-3
    peaked[0, 0] = 100
    return [Dump("rough", None, rough), Dump("close", None, close), Dump("peaked", None, peaked)]


def test_a_table_lands_in_the_wrong_class():
    found = analyze(smooth_or_rough(), TableBounds(0.03, 0.01, 0.05), (0.02,), Rule(), "", lambda what: None)
    assert dict(found.bounds.classes) == {"rough": "loosen", "close": "tighten", "peaked": "tighten"}
    rough, close, _ = found.facts
    assert (rough.unique, close.unique) == (50, 50)
    assert list(rough.unique_at) == [0.01, 0.02, 0.03, 0.05]
    assert close.merged(0.03) > 0.1
    strict = analyze(smooth_or_rough(), TableBounds(0.03, 0.01, 0.05), (), Rule(1, 0, 1000), "", lambda what: None)
    assert strict.bounds.class_of("close") == "base"


def test_a_constant_table_has_no_class():
    found = analyze([Dump("c", None, torch.ones(4, 2))], TableBounds(), (), Rule(), "", lambda what: None)
    assert found.bounds.class_of("c") == "base"
    assert found.facts[0].sigma_over_range is None
    assert found.table().row_count == 1


def test_dumps_of_one_table_get_several_classes():
    dumps = [look_ups("table_1", 30, iteration=i) for i in (1, 2)]
    begun = []
    (facts,) = analyze(dumps, TableBounds(), (), Rule(), "", begun.append).facts
    assert begun == ["table_1"]
    assert (facts.dumps, facts.rows, facts.unique) == (2, 192, 2 * distinct_rows(dumps[0].x))


@pytest.mark.parametrize("options", [{"merged": -1}, {"kept": 0.2}, {"smooth": 0}, {"merged": math.nan}])
def test_a_rule_that_contradicts_itself_is_used(options):
    with pytest.raises(SpecError, match="expected 0 <= kept <= merged <= 1"):
        Rule(**options)


def test_an_analysis_is_no_class_file(tmp_path):
    found = analyze(smooth_or_rough(), TableBounds(0.03, 0.01, 0.05), (), Rule(), "as typed", lambda what: None)
    path = tmp_path / "classes.json"
    path.write_text(json.dumps(found.to_json(), allow_nan=False))
    assert TableBounds.from_json(path) == found.bounds
    assert json.loads(path.read_text())["analysis"]["command"] == "as typed"
    assert analysis.Facts.__doc__


def test_known_rows_are_others():
    one = Load(look_ups("t", 7, rows=100), "base", "bound:rel=0.1", 0.1, "rel", rows=30, pad=2)
    for call, hints in zip(one.calls, one.hints, strict=True):
        for x, known in zip(call, hints, strict=True):
            assert torch.equal(known[:, None] == known, (x[:, None] == x).all(-1))
    assert trials.chain_of("huffman (rows known)", "bound:rel=0.1") == laconic.codec("bound:rel=0.1|huffman")


def test_hints_are_for_those_that_have_a_use_for_them(tiny):
    (whole, *_) = a_plan().loads()
    with pytest.raises(SpecError, match="has no use for rows="):
        trials.ours("huffman (rows known)", whole, trials.quantised_only(whole), 1)


def test_a_load_is_cut_elsewhere():
    one = Load(look_ups("t", 7, rows=100), "base", "bound:rel=0.1", 0.1, "rel", rows=30, pad=2)
    assert [len(x) for x in one.slices] == [30, 30, 30, 10]
    assert [x.shape[0] for x in one.tensors] == [60, 60, 60, 20]
    assert one.spec.shape == (200, 8)
    assert torch.equal(one.tensors[3], one.dump.x[90:].repeat(2, 1))
