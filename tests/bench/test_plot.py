from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
import torch

from laconic.bench import blocks, transfer
from laconic.bench.figures import FIGURES
from laconic.bench.measure import Race, Timing
from laconic.bench.plan import Plan
from laconic.bench.plot import draw
from laconic.bench.study import Row
from laconic.errors import CorruptData, MissingExtra


@pytest.fixture
def file(study, tmp_path):
    study.save(tmp_path / "blocks.json")
    return tmp_path / "blocks.json"


def test_figures_are_drawn_from_the_json_without_measuring(file, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "measure", None)
    paths = draw(file, tmp_path / "new" / "figures")
    assert [path.stem for path in paths] == [name for name in FIGURES if name != "transfer"]
    for path in paths:
        text = " ".join(ET.parse(path).getroot().itertext())
        assert "laconic 0" in text, "the caption names what was measured"


def test_the_same_study_gives_the_same_file(study, tmp_path):
    replace(study, rows=tuple(study.section("floors"))).save(tmp_path / "floors.json")
    (first,), (second,) = (draw(tmp_path / "floors.json", tmp_path / name) for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_a_transfer_is_drawn_where_one_was_measured(study, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self.clone())
    plan = Plan(torch.device("cpu"), threads=1, chops=(2, 4), serial=(1,), quick=True)
    race = Race("transfer", "small", list)
    contenders = [c for chop in plan.chops for c in transfer.contenders(plan, (1, 3, 8, 8), chop)]
    rows = [Row.of(race, contender, Timing(1, 1, 1, 3), threads=1) for contender in contenders]
    replace(study, rows=tuple(rows)).save(tmp_path / "gpu.json")
    assert [path.name for path in draw(tmp_path / "gpu.json", tmp_path)] == ["transfer.svg"]


def test_another_file_draws_nothing(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(CorruptData):
        draw(tmp_path / "other.json", tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


def test_without_matplotlib_the_extra_is_named(file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for module in ("canvas", "figures", "bars"):
        monkeypatch.delitem(sys.modules, f"laconic.bench.{module}", raising=False)
    package = sys.modules["laconic.bench"]
    for module in ("canvas", "figures", "bars"):
        monkeypatch.delattr(package, module, raising=False)
    with pytest.raises(MissingExtra, match=r"laconic\[plot\]"):
        draw(file, tmp_path)
