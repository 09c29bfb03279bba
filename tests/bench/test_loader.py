"""The loader study: who is timed, from where samples come, and what is said about both."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

pytest.importorskip("zarr")
pytest.importorskip("skimage")
pytest.importorskip("PIL")

from laconic.bench.loader import datasets, files, floors, measure, plan
from laconic.bench.loader.datasets import COMPRESSED, DECODED, RAW, RAW_BATCHED, Entry, RawMemmap
from laconic.bench.loader.epochs import Runner
from laconic.bench.loader.plan import COLD, SHAPE, WARM, Plan
from laconic.bench.loader.study import LoaderStudy, Row, load
from laconic.bench.loader.tables import tables
from laconic.bench.measure import WrongResult
from laconic.bench.plot import draw
from laconic.cli.bench import app
from laconic.errors import CorruptData, SpecError

CODECS = ("dct:chop=4", "bound:rel=1e-3|zstd:level=1")
CHOP = "dct:chop=4"


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "CODECS", CODECS)
        patch.setattr(Plan, "rounds", 2)
        yield


@pytest.fixture(scope="module")
def measured(tiny, tmp_path_factory):
    """What the command printed, the file it wrote, and the folder it worked in."""
    folder, out = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("out") / "loader.json"
    options = ["--samples", "10", "--batch", "4", "--workers", "0,1", "--folder", folder, "--json", "--out", out]
    result = CliRunner().invoke(app, ["loader", *map(str, options)])
    assert result.exit_code == 0, result.output
    return result, out, folder


@pytest.fixture(scope="module")
def study(measured):
    return load(measured[1])


def test_stdout_is_the_json_that_the_file_holds_and_nothing_else(measured):
    result, out, folder = measured
    assert json.loads(result.stdout) == json.loads(out.read_text())
    assert str(folder) not in result.stdout, "no path of this machine"
    assert not list(folder.iterdir()), "all files are gone"


def test_somebody_is_left_out(study):
    names = {(RAW, DECODED), (RAW_BATCHED, DECODED), ("Zarr", DECODED), ("JPEG", DECODED)}
    names |= {(CHOP, DECODED), (CHOP, COMPRESSED), (CODECS[1], DECODED)}
    assert {str(setting) for setting in study.settings} == {
        *("cold, 0 workers", "cold, 1 workers", "warm, 0 workers", "warm, 1 workers")
    }
    for setting in study.settings:
        assert study.race(setting).keys() == names
    for row in study.rows:
        assert 0 < row.q1 <= row.seconds <= row.q3
        assert (row.samples, row.batch, row.rounds, row.shape) == (10, 4, 2, list(SHAPE))
        assert row.included


def test_losses_and_bytes_are_hidden(study):
    race = study.race(study.settings[0])
    assert {name for (name, _), row in race.items() if row.psnr is None} == {RAW, RAW_BATCHED, "Zarr"}
    assert "lossy, 8 bits" in race["JPEG", DECODED].included
    assert 20 < race[CHOP, DECODED].psnr < 60
    assert race[RAW, DECODED].ratio == pytest.approx(1, abs=0.01)
    assert 3.9 < race[CHOP, DECODED].ratio < 4
    assert race[CHOP, DECODED].ratio == race[CHOP, COMPRESSED].ratio
    assert "posix_fadvise" in study.cold_by


def test_cold_samples_come_from_the_cache(study):
    """Where the system says what it read from disk, and keeps temporary files on one."""
    cold, warm = (study.race(s)[RAW, DECODED] for s in study.settings if s.workers == 0)
    if cold.disk_bytes:
        assert cold.disk_bytes >= cold.nbytes * 0.9
    assert not warm.disk_bytes or warm.disk_bytes < warm.nbytes * 0.1


def test_what_was_written_is_read_as_something_else(study, measured):
    assert isinstance(study, LoaderStudy)
    assert study.to_json() == json.loads(measured[1].read_text())


def test_figures_or_tables_are_empty(study, measured, tmp_path):
    pytest.importorskip("matplotlib")
    paths = draw(measured[1], tmp_path)
    assert {path.name for path in paths} == {"loader-floors.svg", "loader-speed.svg"}
    for path in paths:
        text = "".join(ET.parse(path).getroot().itertext())
        assert "cores" in text, "the hardware is named"
        assert CHOP in text
    cells = [cell for table in tables(study) for column in table.columns for cell in column.cells]
    assert {CHOP, RAW, RAW_BATCHED, "JPEG", "lossless"} <= set(cells)


BLANK = Row("", DECODED, None, WARM, 0, 100, 32, [3, 4, 4], "float32", 1.0, 1, 1, 3, 1600, 1600, None, None, "")


def row(name, speed, **other):
    codec = name if "=" in name else None
    return replace(BLANK, name=name, codec=codec, seconds=100 / speed, **other)


def test_floors_are_held_against_the_wrong_rows():
    rows = [
        row(RAW, 1000),
        row(RAW_BATCHED, 9000),
        row(CHOP, 790, stored_bytes=400),
        row(CHOP, 2000, deliver=COMPRESSED, stored_bytes=400),
        row(RAW, 100, cache=COLD),
        row(CHOP, 190, cache=COLD, stored_bytes=400),
        row(CHOP, 210, cache=COLD, deliver=COMPRESSED, stored_bytes=400),
        row("bound:rel=1e-3|zstd", 1, cache=COLD, stored_bytes=400),
        row(RAW, 1, workers=2),
        row(CHOP, 99, workers=2),
    ]
    found = {v.name: (v.measured, v.floor, v.met) for v in floors.verdicts(rows)}
    assert found == {
        f"warm, decoded, {CHOP}: samples/s over {RAW}": (0.79, 0.8, False),
        f"warm, compressed, {CHOP}: samples/s over {RAW}": (2, 2, True),
        f"cold, decoded, {CHOP}: samples/s over {RAW}": (1.9, 2, False),
        f"cold, compressed, {CHOP}: samples/s over {RAW}": (2.1, 2, True),
    }
    assert not list(floors.verdicts([r for r in rows if r.workers]))


def test_samples_that_are_wrong_are_timed(tmp_path):
    raw = files.write_raw(tmp_path, 4)
    upside_down = np.load(raw)[:, ::-1, ::-1].copy()
    np.save(tmp_path / "other.npy", upside_down)
    entry = Entry("turned", tmp_path / "other.npy", lambda: RawMemmap(tmp_path / "other.npy"), "")
    with pytest.raises(WrongResult, match="turned, decoded: samples are off"):
        measure._quality(entry, torch.from_numpy(np.load(raw)))


def test_an_epoch_leaves_samples_out(tmp_path):
    raw = files.write_raw(tmp_path, 5)
    runner = Runner(Entry("raw", raw, lambda: RawMemmap(raw), ""), samples=6, batch=2, workers=0)
    with pytest.raises(IndexError):
        runner.epoch(cold=False)
    runner = Runner(Entry("raw", raw, lambda: RawMemmap(raw), ""), samples=5, batch=2, workers=1)
    assert [runner.epoch(cold=False).seconds > 0 for _ in range(2)] == [True, True]
    runner.stop()


def test_the_progress_bar_ends_early_or_never(tiny, monkeypatch):
    begun = []
    monkeypatch.setattr(plan, "CODECS", (CHOP,))
    monkeypatch.setattr(datasets, "_packed", lambda path, codec: iter(()))
    small = Plan(4, 2, (0,), 1, (), None, quick=True)
    found = measure.measure(small, begun.append)
    assert [verdict.name.startswith("packing, 2 workers: speed over") for verdict in found.verdicts] == [True, True]
    loading, reading = (found.packing["packing"] / found.packing[name] for name in ("loading", "reading"))
    assert [verdict.measured for verdict in found.verdicts] == [loading, reading]
    assert len(begun) == measure.steps(small)


def test_the_samples_are_others_on_the_next_machine():
    assert np.array_equal(files.photographs(3), files.photographs(3))
    assert files.photographs(2).dtype == np.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--samples", 8), "--samples 8 --batch 32"),
        (("--workers", "two"), "--workers two"),
        (("--workers", "-1"), "from 0 on"),
        (("--codec", "dct:chop=9"), "chop"),
        (("--codec", "dct|dct:chop"), "chop"),
        (("--folder", "nowhere"), "a folder that exists"),
    ],
)
def test_a_bad_option_is_refused_before_anything_is_measured(options, message, monkeypatch):
    monkeypatch.setattr(measure, "measure", None)
    result = CliRunner().invoke(app, ["loader", *map(str, options)])
    assert isinstance(result.exception, SpecError), result.output
    assert message in str(result.exception)


def test_another_file_is_taken_for_a_study(tmp_path):
    (tmp_path / "a.json").write_text('{"kind": "laconic bench loader", "version": 9}')
    with pytest.raises(CorruptData, match="bench loader --out"):
        load(tmp_path / "a.json")
    assert Path(tmp_path / "a.json").exists()
