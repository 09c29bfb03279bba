"""`laconic bench rate` from the command line, on small files."""

from __future__ import annotations

import json

import numpy as np
import pytest
import safetensors.torch
import torch
from typer.testing import CliRunner

from laconic.bench.measure import Effort
from laconic.bench.rate import measure, peers, plan
from laconic.cli.bench import app
from laconic.cli.rate_data import data_sets
from laconic.errors import CorruptData, FileError, SpecError


def run(*arguments):
    return CliRunner().invoke(app, ["rate", *map(str, arguments)])


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(plan, "CHAINS", ("bound|lorenzo|bitpack",))
    monkeypatch.setattr(plan.Plan, "effort", Effort(seconds=0, rounds=3))
    monkeypatch.setattr(peers, "ENTRIES", peers.ENTRIES[-3:-2])  # zstd


@pytest.fixture
def npz(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"a": rng.random((20, 30), "f4"), "b": rng.random((9, 9, 9)), "labels": np.arange(5)}
    np.savez(tmp_path / "data.npz", **arrays)
    return tmp_path / "data.npz"


def test_stdout_is_the_json_that_the_file_holds_and_nothing_else(quick, npz, tmp_path):
    out = tmp_path / "rate.json"
    options = ("--bounds", "1e-1,1e-2", "--threads", 1, "--codecs", "bound|zstd:level=2", "--json", "--out", out)
    result = run(npz, *options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found == json.loads(out.read_text())
    assert str(tmp_path) not in result.stdout, "no path of this machine"
    names = ["bound|lorenzo|bitpack", "bound|lorenzo:dims=3|bitpack", "bound|zstd:level=2", "zstd"]
    assert {row["name"] for row in found["rows"]} == set(names)
    assert {(row["data"], row["bound"]) for row in found["rows"]} == {(d, b) for d in "ab" for b in (0.1, 0.01)}


def test_tables_are_cut_or_empty(quick, npz):
    result = run(f"{npz}:a", "--bounds", "1e-2", "--threads", 1)
    assert result.exit_code == 0, result.output
    assert "bound|lorenzo|bitpack" in result.stdout
    assert "a (20 x 30) at rel=0.01" in result.stdout


def test_every_kind_of_file_is_read(npz, tmp_path):
    x = torch.rand(3, 16, 16)
    safetensors.torch.save_file({"w": x, "count": torch.arange(3)}, tmp_path / "s.safetensors")
    np.save(tmp_path / "n.npy", x.numpy())
    pytest.importorskip("PIL")
    from laconic.cli import png

    png.write(tmp_path / "p.png", (x * 255).to(torch.uint8))
    found = data_sets(str(tmp_path / name) for name in ("s.safetensors", "n.npy", "p.png", "data.npz:b"))
    assert [data.name for data in found] == ["w", "n", "p", "b"]
    assert [data.pixels for data in found] == [False, False, True, False]
    assert float(found[2].tensors[0].max()) <= 1


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("{}/data.npz:c", SpecError, "has no array 'c'. It has: a, b, labels"),
        ("{}/data.npz:labels", SpecError, "expected float32"),
        ("{}/nowhere.npz", FileError, "No such file"),
        ("{}/broken.npz", CorruptData, "not a sound .npz file"),
        ("pictures", SpecError, "expected 'images', or a .npy"),
    ],
)
def test_data_that_is_not_there_is_one_clear_error(source, error, message, npz, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "measure", None)
    (tmp_path / "broken.npz").write_bytes(npz.read_bytes()[:300])
    result = run(source.format(tmp_path))
    assert isinstance(result.exception, error)
    assert message in str(result.exception)


def test_two_of_one_name_are_mixed_up(npz):
    with pytest.raises(SpecError, match="two data sets called 'a'"):
        data_sets([str(npz), f"{npz}:a"])


@pytest.mark.parametrize(
    ("option", "message"),
    [(("--bounds", "big"), "--bounds big"), (("--codecs", "bound|nothing"), "no stage 'nothing'")],
)
def test_a_bad_option_is_refused_before_anything_is_measured(option, message, npz, monkeypatch):
    monkeypatch.setattr(measure, "measure", None)
    result = run(npz, *option)
    assert isinstance(result.exception, SpecError)
    assert message in str(result.exception)
