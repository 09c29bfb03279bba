"""What is printed is true, and can be read by machines."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import safetensors.torch
import torch

import laconic
from laconic import registry
from tests.cli.test_formats import MODEL


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    safetensors.torch.save_file(MODEL, path)
    return path


def test_the_ratio_is_of_the_file_as_it_lies_on_the_disk(run, npy, array, tmp_path):
    report = json.loads(run("compress", npy, tmp_path / "out", "--codec", "dct:chop=4", "--json").out)
    assert report["after"] == (tmp_path / "out").stat().st_size
    assert report["ratio"] == array.nbytes / report["after"]
    assert report["input_bytes"] == npy.stat().st_size


def test_the_errors_are_those_of_what_decodes(run, npy, array, tmp_path):
    (row,) = json.loads(run("compress", npy, tmp_path / "out", "--codec", "dct:chop=4", "--json").out)["tensors"]
    x, restored = torch.from_numpy(array), laconic.decode(laconic.load(tmp_path / "out"))
    assert row["max_error"] == laconic.metrics.max_error(x, restored)
    assert row["psnr"] == laconic.metrics.psnr(x, restored)
    assert (row["shape"], row["dtype"]) == ([3, 32, 48], "float32")


def test_a_tensor_that_was_kept_says_why(run, model, tmp_path):
    rows = json.loads(run("compress", model, tmp_path / "out", "--codec", "dct:chop=4", "--json").out)["tensors"]
    kept = {row["tensor"]: row["kept"] for row in rows}
    assert kept["layer.weight"] is None
    assert "at least two dimensions" in kept["layer.bias"]
    assert "at least one element" in kept["empty"]


def test_the_table_names_what_was_kept_even_where_a_name_looks_like_markup(run, model, tmp_path):
    code, out, err = run("compress", model, tmp_path / "out", "--codec", "dct:chop=4")
    assert (code, err) == (0, "")
    assert "kept as it was: [bold]mask: dct:chop=4: expected float32" in out


def test_json_has_no_infinity(run, npy, tmp_path):
    out = run("compress", npy, tmp_path / "out", "--codec", "cast:dtype=float32", "--json").out
    (row,) = json.loads(out, parse_constant=pytest.fail)["tensors"]
    assert (row["psnr"], row["max_error"]) == (None, 0.0)


def test_info_describes_without_decoding(run, model, tmp_path, monkeypatch):
    run("compress", model, tmp_path / "out", "--codec", "dct:chop=4|affine:per=channel")
    monkeypatch.setattr(laconic.chain, "decode", pytest.fail)
    monkeypatch.setattr(laconic, "decode", pytest.fail)
    found = json.loads(run("info", tmp_path / "out", "--json").out)
    tensors = {tensor["tensor"]: tensor for tensor in found["tensors"]}
    assert found["file_bytes"] == (tmp_path / "out").stat().st_size
    assert tensors["layer.weight"]["codec"].startswith("dct:chop=4,block=8,keep=square@1|affine:bits=8,per=channel")
    assert tensors["layer.weight"]["parts"]["main"] == "uint8[32,32]"
    assert tensors["step"]["codec"] is None


def test_info_prints_every_tensor(run, model, tmp_path):
    run("compress", model, tmp_path / "out", "--codec", "dct:chop=4")
    code, out, err = run("info", tmp_path / "out")
    assert (code, err) == (0, "")
    assert all(name in out for name in MODEL)
    assert "Checksum: ok" in out


def test_codecs_lists_every_stage_with_an_example_that_works(run):
    listed = {stage["name"]: stage for stage in json.loads(run("codecs", "--json").out)}
    assert list(listed) == registry.names()
    for stage in listed.values():
        laconic.codec(stage["example"])
        assert stage["summary"].endswith(".")
    chop, block, keep = listed["dct"]["options"]
    assert chop == {"name": "chop", "values": "int", "required": True, "default": None}
    assert (block["default"], keep["values"]) == (8, "square|triangle")


def test_codecs_prints_every_stage(run):
    out = run("codecs").out
    assert all(name in out for name in registry.names())


def test_the_version_is_the_package_s(run):
    assert run("--version").out == f"laconic {laconic.__version__}\n"


def test_help_does_not_wait_for_what_only_some_commands_need():
    heavy = ("matplotlib", "PIL", "skimage", "scipy", "laconic.bench.study", "laconic.experiments")
    code = f"import sys, laconic.cli; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_progress_and_messages_stay_off_stdout(start, model, tmp_path):
    process = start("compress", model, tmp_path / "out", "--codec", "dct:chop=4", "--json")
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert json.loads(out)["codec"] == "dct:chop=4"
