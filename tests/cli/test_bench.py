from __future__ import annotations

import json

import pytest
from torch import nn
from typer.testing import CliRunner

from laconic.bench import blocks, floors, training
from laconic.bench.measure import Effort
from laconic.bench.plan import Plan
from laconic.cli.bench import app
from laconic.errors import CorruptData, SpecError

ROW = {
    *("section", "race", "name", "what", "codec", "shape", "dtype", "parameters", "included", "threads"),
    *("seconds", "q1", "q3", "rounds", "nbytes", "gb_per_s", "samples_per_s"),
}


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A quick run of tiny tensors: what it printed, and the file it wrote."""
    out = tmp_path_factory.mktemp("bench") / "blocks.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(floors, "SHAPE", (4, 64, 64))
        patch.setattr(training, "ResNet34", lambda stem, classes: nn.Sequential(nn.Flatten(), nn.LazyLinear(classes)))
        patch.setattr(Plan, "effort", lambda plan, section: Effort(seconds=0, rounds=3))
        result = run("blocks", "--quick", "--chops", "4", "--serial", "1,2", "--threads", 1, "--json", "--out", out)
    assert result.exit_code == 0, result.output
    return result, out


def test_stdout_is_the_json_that_the_file_holds_and_nothing_else(measured):
    result, out = measured
    assert json.loads(result.stdout) == json.loads(out.read_text())


def test_the_json_says_all_that_a_reader_needs(measured):
    found = json.loads(measured[1].read_text())
    assert (found["kind"], found["version"], found["seed"], found["device"]) == ("laconic bench blocks", 1, 0, "cpu")
    assert found["command"] == "laconic bench blocks --device cpu --threads 1 --chops 4 --serial 1,2 --quick"
    assert {"cpu", "cores", "torch", "laconic", "threads", "date"} <= set(found["machine"])
    assert all(set(row) == ROW for row in found["rows"])
    verdict = {"name", "measured", "floor", "aim", "at_least", "unit", "met", "aim_met"}
    assert all(set(v) == verdict for v in found["verdicts"])


def test_plot_draws_what_blocks_wrote(measured, tmp_path):
    result = run("plot", measured[1], "--out", tmp_path)
    assert result.exit_code == 0
    assert sorted(result.stdout.split()) == sorted(str(path) for path in tmp_path.glob("*.svg"))


def test_plot_of_another_file_is_one_error(tmp_path):
    (tmp_path / "rate.json").write_text('{"kind": "laconic bench rate"}')
    assert isinstance(run("plot", tmp_path / "rate.json", "--out", tmp_path).exception, CorruptData)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--chops", "9"), "chop from 1 to 8"),
        (("--chops", "a,b"), "--chops a,b: expected whole numbers"),
        (("--serial", "3"), "serial=3 does not cut"),
        (("--device", "tpu"), "--device tpu: expected cpu"),
    ],
)
def test_a_bad_option_is_refused_before_anything_is_measured(arguments, message, monkeypatch):
    monkeypatch.setattr(blocks, "measure", None)
    result = run("blocks", "--quick", *arguments)
    assert isinstance(result.exception, SpecError)
    assert message in str(result.exception)
