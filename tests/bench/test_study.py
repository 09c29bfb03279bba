from __future__ import annotations

import json
from dataclasses import replace

import pytest

from laconic.bench import floors
from laconic.bench.study import Verdict, by_race, load
from laconic.bench.tables import SECTIONS, tables
from laconic.errors import CorruptData, FileError


def test_what_is_saved_is_what_is_read(study, tmp_path):
    study.save(tmp_path / "blocks.json")
    assert load(tmp_path / "blocks.json") == study


@pytest.mark.parametrize("section", ["floors", "resolution", "batch", "serial", "triangle", "portable", "training"])
def test_every_section_is_measured_and_has_a_table(study, section):
    assert study.section(section)
    titles = [str(table.title) for table in tables(study)]
    assert any(title.startswith(SECTIONS[section].title) for title in titles)


def test_every_table_names_the_hardware(study):
    assert all(str(study.machine["cpu"]) in str(table.caption) for table in tables(study))


def test_numbers_are_positive_ordered_and_of_enough_rounds(study):
    for row in study.rows:
        assert 0 < row.q1 <= row.seconds <= row.q3
        assert row.rounds >= 3
        assert row.gb_per_s == pytest.approx(row.nbytes / row.seconds / 1e9)
        assert row.included


def test_a_ratio_never_crosses_runs(study):
    """Each verdict's two sides stand in one race, under one name each."""
    for section in SECTIONS:
        rows = study.section(section)
        assert sum(map(len, by_race(rows).values())) == len(rows)
    race = by_race(study.section("floors"))[floors.title(floors.SHAPE, 4)]
    ratio = race["dense", "encode"].seconds / race["square", "encode"].seconds
    assert ratio == next(v.measured for v in study.verdicts if v.name == "chop=4 encode: speed over dense")


def test_every_floor_has_its_verdict(study):
    """One thread has no speed-up: that floor is held where there are two."""
    rows = list(study.rows)
    for row in study.section("floors"):
        if row.name == "square":
            rows += [replace(row, name="1 thread", seconds=2 * row.seconds), replace(row, name="2 threads")]
    verdicts = {verdict.name: verdict for verdict in floors.verdicts(rows)}
    assert len(study.verdicts) == 3 * 2 * 4 + 4
    assert len(verdicts) == 3 * 2 * 5 + 4
    assert verdicts["chop=7 decode: speed of 2 threads over 1"].measured == 2


@pytest.mark.parametrize(("measured", "at_least", "met"), [(2, True, True), (1, True, False), (1, False, True)])
def test_a_floor_on_speed_is_least_and_one_on_time_is_most(measured, at_least, met):
    verdict = Verdict("speed", measured, floor=1.5, aim=None, at_least=at_least, unit="x")
    assert verdict.met is met
    assert verdict.aim_met is None
    assert replace(verdict, aim=measured).aim_met is True


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"[]", b"{}", b"3", b'{"kind": "laconic bench blocks", "version": 1}', b'{"kind": "rate"}'],
)
def test_another_file_is_refused_in_one_clear_line(content, tmp_path):
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(CorruptData, match="is not what 'laconic bench blocks --out' writes") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_row_without_its_seconds_is_refused(study, tmp_path):
    broken = study.to_json()
    del broken["rows"][0]["seconds"]
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    with pytest.raises(CorruptData, match="seconds"):
        load(tmp_path / "broken.json")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileError, match=r"nowhere\.json"):
        load(tmp_path / "nowhere.json")
