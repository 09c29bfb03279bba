"""`laconic bench encoders` and `analyze` from the command line, on small dumps and on what are none."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from laconic.bench.encoders import measure, peers, plan
from laconic.bench.measure import Effort
from laconic.cli import dumps
from laconic.cli.bench import app
from laconic.errors import CorruptData, FileError, SpecError
from laconic.schedule import TableBounds


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def look_ups(distinct, rows=32, width=8):
    rng = np.random.default_rng(distinct)
    return rng.normal(size=(distinct, width)).astype("f4")[rng.integers(0, distinct, rows)]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(plan, "ENCODERS", ("raw", "huffman"))
    monkeypatch.setattr(plan.Plan, "effort", Effort(seconds=0, rounds=3))
    monkeypatch.setattr(peers, "ENTRIES", peers.ENTRIES[-1:])
    monkeypatch.setattr("laconic.bench.measure.SLICE_SECONDS", 1e-4)
    monkeypatch.setattr("laconic.bench.encoders.floors.RACES", {})


@pytest.fixture
def npz(tmp_path):
    np.savez(tmp_path / "dumps.npz", table_1=look_ups(30), table_5=look_ups(2))
    return tmp_path / "dumps.npz"


@pytest.fixture
def classes(tmp_path):
    path = tmp_path / "classes.json"
    path.write_text(json.dumps({"loosen": 0.05, "tables": {"loosen": [5]}, "schedule": {"decay": "linear"}}))
    return path


def test_stdout_is_the_json_that_the_file_holds_and_nothing_else(quick, npz, classes, tmp_path):
    out = tmp_path / "encoders.json"
    options = ("--rows", "32,8", "--pad", "1,2", "--link", "4,12.5", "--stage", 5, "--codes", 16)
    result = run("encoders", npz, "--classes", classes, *options, "--json", "--out", out)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found == json.loads(out.read_text())
    assert str(tmp_path) not in result.stdout, "no path of this machine"
    bounds = {case["table"]: (case["table_class"], case["bound"], case["code_bits"]) for case in found["cases"]}
    assert bounds == {"table_1": ("base", pytest.approx(0.045), 16), "table_5": ("loosen", pytest.approx(0.075), 16)}
    assert {(case["rows"], case["pad"]) for case in found["cases"]} == {(32, 1), (32, 2), (8, 1)}
    assert found["links"] == [4, 12.5]
    assert "dumps.npz --bound rel=0.03 --classes classes.json --stage 5 --rows 32,8" in found["command"]


def test_tables_are_cut_or_empty(quick, npz):
    result = run("encoders", npz, "--rows", "32,8", "--pad", "1,2", "--bound", "abs=0.1", "--encoders", "bitpack")
    assert result.exit_code == 0, result.output
    for text in (
        "table_5 (32 x 8)",
        "in 4 slices of 8, 4 a call",
        "PADDED: every slice is repeated 2 times",
        "Harmonic mean of 2 tables",
        "base, abs=0.1, 8-bit codes",
        "Least modelled time",
        "lz4 library",
        "bitpack",
    ):
        assert text in " ".join(result.stdout.split()), text


def test_plot_draws_what_encoders_wrote(quick, npz, tmp_path):
    assert run("encoders", npz, "--rows", "32", "--out", tmp_path / "e.json").exit_code == 0
    result = run("plot", tmp_path / "e.json", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert sorted(result.stdout.split()) == sorted(str(path) for path in tmp_path.glob("*.svg"))


def test_analyze_writes_what_encoders_reads(quick, npz, tmp_path):
    out = tmp_path / "classes.json"
    options = ("--bounds", "0.01,0.2", "--loosen", "0.06", "--decay", "log", "--factor", 3, "--until", 100)
    result = run("analyze", npz, *options, "--out", out)
    assert result.exit_code == 0, result.output
    assert "table_5" in result.stdout
    found = TableBounds.from_json(out)
    assert (found.base, found.tighten, found.loosen) == (0.03, 0.01, 0.06)
    assert found.class_of(5) == "loosen"
    assert found.schedule.multiplier(0) == 3
    assert str(tmp_path) not in out.read_text(), "no path of this machine"
    assert run("encoders", npz, "--classes", out, "--rows", "32").exit_code == 0
    printed = run("analyze", npz, "--json")
    assert set(json.loads(printed.stdout)["analysis"]["tables"][0]["unique_at"]) == {
        "0.01",
        "0.02",
        "0.03",
        "0.05",
        "0.1",
    }


def test_every_kind_of_dump_is_read(tmp_path):
    x = look_ups(5)
    (tmp_path / "d").mkdir()
    x.astype("<f4").tofile(tmp_path / "d" / "EMB_10_iter_3.bin")
    x.astype("<f4").tofile(tmp_path / "d" / "EMB_9_iter_3.bin")
    np.save(tmp_path / "d" / "users.npy", x)
    np.savez(tmp_path / "iter_7.npz", table_1=x, table_2_iter_8=x)
    (tmp_path / "d" / "notes.txt").write_text("not a dump")
    found = dumps.dumps([str(tmp_path / "d"), str(tmp_path / "iter_7.npz")], width=8)
    names = [(dump.table, dump.iteration) for dump in found]
    assert names == [("table_9", 3), ("table_10", 3), ("users", None), ("table_1", 7), ("table_2", 8)]
    assert all(np.array_equal(dump.x.numpy(), x) for dump in found)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("table_5", ("table_5", None)),
        ("Table-05.it200", ("table_5", 200)),
        ("EMB_0_iter_65536", ("table_0", 65536)),
        ("t3_i4", ("table_3", 4)),
        ("7", ("table_7", None)),
        ("users_step_12", ("users", 12)),
        ("part5", ("part5", None)),
        ("iter_3", ("iter_3", 3)),
    ],
)
def test_a_name_is_read_as_that_of_another_table(name, expected):
    assert dumps.parsed_name(name) == expected


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("a.bin", b"\0" * 4 * 12, SpecError, "has 12 values, which is no multiple of the width 8"),
        ("a.bin", b"\0" * 33, SpecError, "has 33 bytes: expected float32"),
        ("a.bin", b"", SpecError, "expected at least one row"),
        ("a.npy", b"", CorruptData, "not a sound .npy file"),
        ("a.npz", b"PK", CorruptData, "not a sound .npz file"),
        ("a.npy", np.zeros((3, 8)), SpecError, "expected float32 of"),
        ("a.npy", np.zeros((3, 0), "f4"), SpecError, "expected at least one row"),
        ("a.npy", np.zeros((0, 8), "f4"), SpecError, "expected at least one row"),
        ("a.npy", np.zeros((3, 2, 8), "f4"), SpecError, "expected float32 of"),
        ("a.npy", np.zeros(12, "f4"), SpecError, "no multiple of the width 8"),
        ("a.txt", b"", SpecError, "expected a folder, or a file that ends in .bin, .npy, .npz"),
        ("nowhere.bin", None, FileError, "no such file"),
    ],
)
@pytest.mark.parametrize("command", ["encoders", "analyze"])
def test_a_dump_that_is_none_is_one_clear_error(command, name, content, error, message, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "measure", None)
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    elif content is not None:
        np.save(tmp_path / name, content)
    result = run(command, tmp_path / name, "--width", 8)
    assert isinstance(result.exception, error), result.exception
    assert message in str(result.exception)


def test_an_empty_folder_is_one_clear_error(tmp_path):
    result = run("encoders", tmp_path)
    assert isinstance(result.exception, SpecError)
    assert "holds no dumps" in str(result.exception)


def test_two_dumps_of_one_name_are_mixed_up(npz):
    result = run("encoders", npz, npz)
    assert isinstance(result.exception, SpecError)
    assert "two dumps of table_1" in str(result.exception)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--bound", "0.03"), "--bound 0.03: expected"),
        (("--bound", "rel=0.9"), "tighten <= base <= loosen"),
        (("--rows", "2k"), "--rows 2k: expected whole numbers"),
        (("--rows", "0"), "--rows: expected numbers above 0"),
        (("--pad", "1.5"), "--pad 1.5: expected whole numbers"),
        (("--link", "fast"), "--link fast: expected numbers"),
        (("--codes", "4"), "--codes 4: expected"),
        (("--encoders", "nothing"), "no stage 'nothing'"),
    ],
)
def test_a_bad_option_is_refused_before_anything_is_measured(option, message, npz, classes, monkeypatch):
    monkeypatch.setattr(measure, "measure", None)
    result = run("encoders", npz, "--classes", classes, *option)
    assert isinstance(result.exception, SpecError)
    assert message in str(result.exception)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"loosen": 0.05, "tables": {"loosen": ["table_1", 1]}}', "table_1 is named twice"),
        ('{"tables": {}, "schedule": {"decay": "sudden"}}', "no decay 'sudden'"),
    ],
)
def test_a_class_file_that_cannot_be_meant_is_one_clear_error(content, message, npz, tmp_path):
    (tmp_path / "c.json").write_text(content)
    result = run("encoders", npz, "--classes", tmp_path / "c.json")
    assert isinstance(result.exception, SpecError)
    assert message in str(result.exception)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--bound", "abs=1"), "expected rel="),
        (("--tighten", "0"), "tighten: expected a bound above 0"),
        (("--bounds", "0"), "expected a bound above 0"),
        (("--tighten", "0.9"), "tighten <= base <= loosen"),
        (("--merged", "2"), "expected 0 <= kept <= merged <= 1"),
        (("--decay", "exp"), "no decay 'exp'"),
        (("--bounds", "1,a"), "--bounds 1,a: expected numbers"),
    ],
)
def test_classes_by_a_rule_that_means_nothing_are_found(option, message, npz):
    result = run("analyze", npz, *option)
    assert isinstance(result.exception, SpecError)
    assert message in str(result.exception)


def test_a_failure_is_more_than_one_line(start, tmp_path):
    (tmp_path / "t.bin").write_bytes(b"\0" * 20)
    process = start("bench", "encoders", tmp_path / "t.bin")
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_a_process_of_its_own_measures_nothing(start, npz, tmp_path):
    """Without native code, and as a user starts it."""
    out = tmp_path / "e.json"
    process = start("bench", "encoders", npz, "--rows", "32", "--quick", "--out", out)
    _, err = process.communicate()
    assert process.returncode == 0, err
    found = json.loads(out.read_text())
    assert {"huffman", "zstd:level=1", "raw"} <= {row["name"] for row in found["rows"]}
    assert all(row["over_bound"] <= 1 for row in found["rows"])
