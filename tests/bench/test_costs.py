"""`laconic bench calibrate` and `laconic bench auto`: what they write is what `auto` reads, and what they claim."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import Result
from typer.testing import CliRunner

import laconic
from laconic.bench.costs import calibrate, cases, data, study
from laconic.cli import app
from laconic.encoders import auto, candidates, costs


def forget() -> None:
    for known in (costs._current, candidates.installed, auto._plan):
        known.cache_clear()


@pytest.fixture(autouse=True)
def _own_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No test writes where a user's model is."""
    monkeypatch.delenv(costs.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(calibrate, "SIZES", (1 << 9, 1 << 11))
    monkeypatch.setattr(cases, "CODES", 1 << 12)
    monkeypatch.setattr(cases, "MANY", 1 << 12)
    forget()
    yield
    forget()


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def test_auto_does_not_go_by_what_was_calibrated() -> None:
    result = run("calibrate", "--quick", "--threads", 1)
    assert result.exit_code == 0, result.output
    model = costs.load(costs.user_file())
    assert costs.current().rows == model.rows
    assert {row.encoder for row in model.rows} == {candidate.name for candidate in candidates.installed()}
    assert {row.what for row in model.rows} == {"codes", "rows", "copies"}
    codes = data.normal(3000, 1, 3.0)
    assert torch.equal(laconic.decode(laconic.encode(codes, "auto:prefer=link:1")), codes)


def test_a_model_for_elsewhere_changes_this_machine(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "other.json"
    result = run("calibrate", "--quick", "--threads", 1, "--json", "--out", out)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == json.loads(out.read_text())
    assert not costs.user_file().exists()


@pytest.fixture
def measured(tmp_path: Path) -> dict[str, Any]:
    rows = np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)
    np.savez(tmp_path / "dump.npz", table=rows, field=rows.reshape(4, 10, 16).cumsum(0))
    result = run("auto", tmp_path / "dump.npz", "--quick", "--threads", 1, "--json", "--out", tmp_path / "auto.json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads((tmp_path / "auto.json").read_text())
    assert json.loads(result.stdout) == found
    return found


def test_evidence_leaves_out_what_it_is_taken_from(measured: dict[str, Any]) -> None:
    assert (measured["kind"], measured["version"]) == (study.KIND, study.VERSION)
    assert {row["data"] for row in measured["rows"]} >= {"table", "table, shuffled", "field", "uniform", "runs"}
    assert {row["gb_per_s"] for row in measured["rows"]} == {0.1, 1.0, 10.0}
    for row in measured["rows"]:
        assert row["best"] == min(row["singles"], key=row["singles"].get)
        assert row["behind_best"] == pytest.approx(row["auto"] / row["singles"][row["best"]])
        assert row["chosen"] in row["singles"]
    assert {"cpu", "threads", "native"} <= set(measured["machine"]) & set(measured["calibrated"])


def test_a_verdict_is_better_than_the_worst_row(measured: dict[str, Any]) -> None:
    for verdict in measured["verdicts"]:
        link = float(verdict["name"].split(" ")[0])
        rows = [row for row in measured["rows"] if row["gb_per_s"] == link]
        what = "model_off" if "modelled" in verdict["name"] else "behind_best"
        assert verdict["measured"] == max(row[what] for row in rows)


def test_the_shipped_model_lacks_an_encoder() -> None:
    model = costs.load(costs.BUILT_IN)
    assert {row.encoder for row in model.rows} == {candidate.name for candidate in candidates.CANDIDATES}
    assert {row.itemsize for row in model.rows} == {1, 2, 4}
    assert len({row.threads for row in model.rows}) == 2


def test_the_tables_print_nothing() -> None:
    result = run("auto", "--quick", "--threads", 1)
    assert result.exit_code == 0, result.output
    assert "modelled" in result.stdout
    assert "missed" in result.stdout or "met" in result.stdout
