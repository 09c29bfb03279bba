"""Files that people keep: state dicts, names, devices, and what happens when writing fails."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import safetensors.torch
import torch

import laconic
from laconic.errors import FileError

from .table import ramp


def test_a_state_dict_comes_back_changed(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 8), torch.nn.BatchNorm2d(8), torch.nn.Linear(16, 16))
    model[2].bias = model[1].bias  # tied, as safetensors refuses them
    codec = laconic.codec("cast:dtype=float16")
    kept = {k: codec.encode(v) if v.is_floating_point() else v for k, v in model.state_dict().items()}
    laconic.save(tmp_path / "model.safetensors", kept)
    loaded = laconic.load(tmp_path / "model.safetensors")
    assert list(loaded) == sorted(kept, key=lambda k: not isinstance(kept[k], laconic.Encoded))
    decoded = {k: laconic.decode(v) if isinstance(v, laconic.Encoded) else v for k, v in loaded.items()}
    model.load_state_dict(decoded)
    for name, tensor in model.state_dict().items():
        expected = kept[name]
        assert torch.equal(tensor, laconic.decode(expected) if isinstance(expected, laconic.Encoded) else expected)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": torch.tensor(3)},
        {"a/b": torch.empty(0)},
        {"i": torch.tensor([1j]).conj()},
        {"n": torch._neg_view(torch.ones(2))},
    ],
)
def test_odd_dictionaries_are_lost(tmp_path: Path, value: dict[str, torch.Tensor]) -> None:
    laconic.save(tmp_path / "x", value)
    loaded = laconic.load(tmp_path / "x")
    assert all(type(tensor) is torch.Tensor for tensor in loaded.values())
    assert loaded.keys() == value.keys()
    assert all(torch.equal(loaded[name], value[name]) for name in value)


@pytest.mark.parametrize(
    "value", [{"": torch.ones(1)}, {"a": 3}, {1: torch.ones(1)}, {"a": None}, {"__metadata__": torch.ones(1)}]
)
def test_what_cannot_be_named_or_stored_is_written(tmp_path: Path, value: dict[str, torch.Tensor]) -> None:
    with pytest.raises(laconic.SpecError, match=r"expected|keeps for itself"):
        laconic.save(tmp_path / "x", value)
    assert not list(tmp_path.iterdir())


def test_names_that_collide_overwrite_each_other(tmp_path: Path) -> None:
    value = {"a": laconic.encode(ramp((8, 8)), "dct:chop=4"), "a/main": torch.ones(1)}
    with pytest.raises(laconic.SpecError, match="a/main"):
        laconic.save(tmp_path / "x", value)


def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    """It is plain safetensors: fixed-size parts are there for any tool."""
    enc = laconic.encode(ramp((3, 16, 16)), "dct:chop=4|affine")
    laconic.save(tmp_path / "x.safetensors", enc)
    tensors = safetensors.torch.load_file(tmp_path / "x.safetensors")
    assert tensors.keys() == {"main", "1.scale", "1.offset"}
    assert torch.equal(tensors["main"], enc.parts["main"])


def test_a_failed_write_leaves_half_a_file(tmp_path: Path) -> None:
    """A disk that is full, as a limit on the size of files: the old file stays, and no other appears."""
    code = """
        import resource, sys, torch, laconic
        from laconic.errors import FileError
        path = sys.argv[1]
        laconic.save(path, {"old": torch.ones(4)})
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            laconic.save(path, {"new": torch.rand(100, 1000)})
        except FileError as error:
            print("FileError", str(path) in str(error))
        print(list(laconic.load(path)))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[:2] == ["FileError True", "['old']"]
    assert os.listdir(tmp_path) == ["x"]


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    laconic.save(tmp_path / "x", {"a": torch.ones(1)})
    (tmp_path / "y").touch()
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "y").stat().st_mode


def test_a_link_or_a_device_is_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    laconic.save(tmp_path / "link", {"a": torch.ones(1)})
    assert (tmp_path / "link").is_symlink()
    assert list(laconic.load(tmp_path / "real")) == ["a"]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="not a regular file"):
        laconic.save(tmp_path / "pipe", {"a": torch.ones(1)})
