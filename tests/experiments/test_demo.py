from __future__ import annotations

import dataclasses
import json
import re
import socket
import sys

import pytest
import torch
from typer.testing import CliRunner

from laconic.bench.measure import Effort
from laconic.cli import app
from laconic.cli.console import json_text
from laconic.errors import MissingExtra
from laconic.experiments import demo, demo_table, samples
from laconic.experiments.demo_page import render

TINY = demo.Settings(
    steps=3, seeds=2, codecs=("dct:chop=4", "dct:chop=4|affine:bits=8"), effort=Effort(seconds=0, rounds=2)
)


def quietly(what):
    pass


@pytest.fixture(scope="module", autouse=True)
def _small_data():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo.denoise, "PATCH", 24)
        patch.setattr(demo.denoise, "TRAIN_PATCHES", 32)
        patch.setattr(demo.denoise, "TEST_PATCHES", 6)
        patch.setattr(demo.rates, "FAMILIES", {"dct": ("dct:chop={chop}", range(3, 5))})
        yield


@pytest.fixture(scope="module")
def done():
    """A tiny demonstration, on a machine without a network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "socket", lambda *args, **kwargs: pytest.fail("the demonstration went online"))
        return demo.run(TINY, quietly)


@pytest.fixture(scope="module")
def page(done):
    return render(done)


def test_the_page_asks_for_nothing_from_outside(page):
    own = re.sub(r"base64,[\w+/=]+", "", page)
    assert not re.search(r"https?:|//|<script|@import|url\((?!#)", own)
    assert set(re.findall(r'(?:src|href)="(data:|#)?', own)) == {"data:", "#"}


def test_the_page_holds_every_picture_and_every_row(page, done):
    codecs, crops = len(TINY.codecs), 2
    assert page.count("<img") == crops * 2 * (codecs + 1) + 1 + 2 * (codecs + 1)
    assert page.count("<tr>") == 1 + 1 + codecs
    assert page.count("<svg") == 4
    assert page.count("<svg") == page.count('role="img"')


def test_page_table_and_json_tell_the_same_numbers(page, done):
    stored = json.loads(json_text(done.result.as_dict()))
    for rate, row in zip(stored["rates"], demo_table.rows(done.result)[1:], strict=True):
        assert row[0] == rate["codec"]
        assert row[1:4] == (f"{rate['ratio']:.2f}x", f"{rate['psnr']:.1f}", f"{rate['ssim']:.3f}")
        assert all(f"<td>{cell}</td>" in page for cell in row[:6])


def test_the_json_names_machine_versions_and_seeds(done):
    stored = json.loads(json_text(done.result.as_dict()))
    assert {"cpu", "cores", "torch", "laconic", "date"} <= stored["machine"].keys()
    assert (stored["settings"]["seeds"], stored["settings"]["steps"]) == (2, 3)
    assert all(len(outcome["test"]) == 2 for outcome in stored["denoising"])


def test_progress_counts_to_its_end():
    begun = []
    settings = dataclasses.replace(TINY, steps=1, codecs=("dct:chop=4",))
    demo.run(settings, begun.append)
    assert len(begun) == settings.tasks


def test_the_same_seeds_give_the_same_losses(done):
    again = demo.denoise.run(TINY.codecs, range(1), demo.Recipe(TINY.steps), quietly)
    for first, second in zip(done.result.denoising, again.outcomes, strict=True):
        assert first.test[0] == pytest.approx(second.test[0], rel=1e-5)


def test_codecs_differ_by_nothing_but_the_codec():
    """A codec that changes nothing must train like no codec."""
    outcomes = demo.denoise.run(["cast:dtype=float32"], range(1), demo.Recipe(3), quietly).outcomes
    assert outcomes[1].test == pytest.approx(outcomes[0].test, rel=1e-5)


def test_training_learns():
    (outcome, *_) = demo.denoise.run([], range(1), demo.Recipe(30), quietly).outcomes
    assert outcome.curves[0].test[-1] < outcome.curves[0].test[0] / 2


def test_training_leaves_the_caller_s_random_numbers_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    demo.denoise.run([], range(1), demo.Recipe(1), quietly)
    assert torch.equal(torch.rand(3), expected)


def test_the_images_to_test_with_are_not_trained_on():
    assert not set(demo.denoise.TRAIN) & set(demo.denoise.TEST)


def test_every_crop_lies_inside_its_picture():
    assert samples.pictures().shape == (len(samples.PICTURES), 3, samples.SIDE, samples.SIDE)


def test_the_command_writes_page_and_json_and_prints_the_same(tmp_path, monkeypatch, done):
    monkeypatch.setattr(demo, "run", lambda settings, begin: done)
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "deep" / "page"), "--json"])
    assert result.exit_code == 0, result.output
    written = tmp_path / "deep" / "page"
    assert json.loads(result.stdout) == json.loads((written / "demo.json").read_text())
    assert sorted(path.name for path in written.iterdir()) == ["demo.json", "index.html"]


def test_a_missing_library_is_named_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "run", pytest.fail)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert isinstance(result.exception, MissingExtra)
    assert "laconic[demo]" in str(result.exception)
