"""A failure is one line and exit code 2, and leaves every file as it was."""

from __future__ import annotations

import io
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.numpy
import torch
from PIL import Image

import laconic

OLD = b"what was there before"


@pytest.fixture
def fails(run, tmp_path):
    """Runs a command that must fail well; gives its one line."""

    def fails(*arguments):
        before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
        return err

    return fails


@pytest.fixture
def old(tmp_path):
    """A file from before, where the output would go."""
    path = tmp_path / "out.npy"
    path.write_bytes(OLD)
    return path


def saved(save, *arguments, **options):
    buffer = io.BytesIO()
    save(buffer, *arguments, **options)
    return buffer.getvalue()


NPY = saved(np.save, np.ones((16, 16), "f4"))
PNG = saved(Image.fromarray(np.arange(256, dtype="u1").reshape(16, 16)).save, "PNG")
NPZ = saved(np.savez, a=np.ones((16, 16), "f4"))
SAFE = safetensors.numpy.save({"a": np.ones((16, 16), "f4")})
HUGE = NPY.replace(b"(16, 16)", b"(9999999999999, 16)".ljust(8)).replace(b" " * 11 + b"\n", b"\n")


def npy_claiming(shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".encode() + b"\n"
    return b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header


BAD_INPUTS = {
    "no_integer_holds_it.npy": (npy_claiming((0, 10**23)), "not a sound .npy"),
    "negative.npy": (npy_claiming((-1, 8)), "not a sound .npy"),
    "dimensions.npy": (npy_claiming((1,) * 70), "not a sound .npy"),
    "empty.npy": (b"", "not a sound .npy"),
    "text.npy": (b"1.0 2.0 3.0", "not a sound .npy"),
    "header_cut.npy": (NPY[:40], "not a sound .npy"),
    "cut.npy": (NPY[:-1], "truncated"),
    "huge.npy": (HUGE, "truncated"),
    "pickle.npy": (pickle.dumps([1, 2]), "not a sound .npy"),
    "object.npy": (saved(np.save, np.array([{}, []], object)), "holds object"),
    "structured.npy": (saved(np.save, np.zeros(4, [("x", "f4"), ("y", "i4")])), "holds [('x'"),
    "text_array.npy": (saved(np.save, np.array(["a", "b"])), "holds <U1"),
    "longdouble.npy": (saved(np.save, np.zeros((8, 8), np.longdouble)), "holds float128"),
    "one_dimension.npy": (saved(np.save, np.zeros(9, "f4")), "at least two dimensions"),
    "whole_numbers.npy": (saved(np.save, np.zeros((9, 9), "i4")), "got int32[9,9]"),
    "nothing.npy": (saved(np.save, np.zeros((0, 9), "f4")), "at least one element"),
    "empty.png": (b"", "not a .png"),
    "jpeg.png": (saved(Image.new("RGB", (8, 8)).save, "JPEG"), "not a .png"),
    "header_cut.png": (PNG[:25], "not a sound .png"),
    "cut.png": (PNG[: len(PNG) // 2], "not a sound .png"),
    "sixteen_bits.png": (saved(Image.fromarray(np.zeros((8, 8), "u2")).save, "PNG"), "16 bits"),
    "empty.safetensors": (b"", "not a sound .safetensors"),
    "text.safetensors": (b"not tensors at all", "not a sound .safetensors"),
    "cut.safetensors": (SAFE[:-1], "not a sound .safetensors"),
    "none.safetensors": (safetensors.numpy.save({}), "no tensors"),
    "empty.npz": (b"", "not a sound .npz"),
    "text.npz": (b"not arrays at all", "not a sound .npz"),
    "one_array.npz": (NPY, "not a sound .npz"),
    "cut.npz": (NPZ[:-1], "not a sound .npz"),
    "flipped.npz": (NPZ.replace(b"\0\0\x80?" * 8, b"\0\0\x80?" * 7 + b"\0\0\x80>", 1), "not a sound .npz"),
    "object.npz": (saved(np.savez, a=np.array([{}, []], object)), "not a sound .npz"),
    "text_array.npz": (saved(np.savez, a=np.array(["a", "b"])), "a' holds <U1"),
    "none.npz": (saved(np.savez), "no arrays"),
    "image.jpg": (b"", "ends in .npy, .npz, .safetensors, .png"),
    "no_suffix": (b"", "ends in .npy, .npz, .safetensors, .png"),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_a_bad_input_is_named_in_one_line(name, fails, tmp_path, old):
    content, expected = BAD_INPUTS[name]
    (tmp_path / name).write_bytes(content)
    message = fails("compress", tmp_path / name, old, "--codec", "dct:chop=4")
    assert expected in message
    assert "dct:chop=4" in message or name in message


@pytest.mark.parametrize("command", [["compress", "--codec", "dct:chop=4"], ["decompress"], ["info"]])
@pytest.mark.parametrize("kind", ["missing", "directory"])
def test_no_file_to_read_is_one_line(command, kind, fails, tmp_path):
    source = tmp_path / "in.npy"
    if kind == "directory":
        source.mkdir()
    outputs = [] if command == ["info"] else [tmp_path / "out.npy"]
    message = fails(*command, source, *outputs)
    assert str(source) in message
    assert ("irectory" if kind == "directory" else "No such file") in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_one_line(fails, npy, tmp_path):
    npy.chmod(0)
    assert "Permission denied" in fails("compress", npy, tmp_path / "out", "--codec", "dct:chop=4")


def test_a_compressed_file_is_not_compressed_again(fails, packed, tmp_path):
    source = packed.rename(tmp_path / "packed.safetensors")
    assert "already" in fails("compress", source, tmp_path / "out", "--codec", "dct:chop=4")


def test_a_misspelt_codec_says_what_was_meant(fails, npy, tmp_path):
    assert "Did you mean 'dct'" in fails("compress", npy, tmp_path / "out", "--codec", "dctt:chop=4")


@pytest.mark.parametrize("where", ["a directory", "nowhere", "a pipe", "the input"])
def test_an_output_that_cannot_be_is_refused_before_the_work(where, fails, npy, tmp_path):
    target = {"the input": npy, "nowhere": tmp_path / "none" / "out"}.get(where, tmp_path / "out")
    if where == "a directory":
        target.mkdir()
    if where == "a pipe":
        os.mkfifo(target)
    assert str(target) in fails("compress", npy, target, "--codec", "dct:chop=4")


@pytest.mark.parametrize("damage", ["cut", "flipped bit", "foreign", "text"])
@pytest.mark.parametrize("command", ["decompress", "info"])
def test_damage_is_found_and_the_old_file_stays(command, damage, fails, packed, old):
    content = bytearray(packed.read_bytes())
    content[-5] ^= 1
    damaged = {"cut": packed.read_bytes()[:-3], "flipped bit": bytes(content), "foreign": SAFE, "text": b"text"}
    packed.write_bytes(damaged[damage])
    fails(command, packed, *([old] if command == "decompress" else []))


def test_a_wrong_suffix_is_refused_before_the_work(fails, packed, tmp_path):
    assert ".tiff" in fails("decompress", packed, tmp_path / "out.tiff")


@pytest.mark.parametrize(
    ("suffix", "stored", "expected"),
    [
        (".npy", {"a": torch.ones(8, 8), "b": torch.ones(8, 8)}, "would hold one tensor, and there are 2"),
        (".npy", {"a": torch.ones(8, 8, dtype=torch.bfloat16)}, "NumPy has no bfloat16"),
        (".png", {"a": torch.ones(8, 8)}, "float32[8,8]"),
        (".png", {"a": torch.ones(5, 8, 8, dtype=torch.uint8)}, "uint8[5,8,8]"),
        (".png", {"a": torch.ones(8, dtype=torch.uint8)}, "uint8[8]"),
    ],
)
def test_a_format_that_cannot_hold_the_tensor_says_so(suffix, stored, expected, fails, tmp_path):
    laconic.save(tmp_path / "packed", stored)
    (tmp_path / f"out{suffix}").write_bytes(OLD)
    message = fails("decompress", tmp_path / "packed", tmp_path / f"out{suffix}")
    assert expected in message
    assert ".safetensors" in message


def test_pillow_missing_says_how_to_install_it(fails, tmp_path, monkeypatch):
    (tmp_path / "in.png").write_bytes(PNG)
    monkeypatch.setitem(sys.modules, "PIL", None)
    message = fails("compress", tmp_path / "in.png", tmp_path / "out", "--codec", "dct:chop=4")
    assert "pip install 'laconic[images]'" in message


def test_a_picture_too_large_for_memory_is_not_decoded(fails, tmp_path):
    """A small file that claims 900 gigapixels."""
    claim = bytearray(PNG)
    claim[16:24] = struct.pack(">II", 30_000_000, 30_000)
    (tmp_path / "in.png").write_bytes(claim)
    fails("compress", tmp_path / "in.png", tmp_path / "out", "--codec", "dct:chop=4")


@pytest.mark.parametrize("command", ["compress", "decompress"])
def test_a_full_disk_leaves_the_old_file(command, start, tmp_path, old):
    """The limit on a file's size stands in for the disk's end."""
    noise = torch.rand(256, 256)
    laconic.save(tmp_path / "packed", laconic.encode(noise, "dct:chop=2"))
    np.save(tmp_path / "in.npy", noise.numpy())
    arguments = {
        "compress": (tmp_path / "in.npy", old, "--codec", "dct:chop=6"),
        "decompress": (tmp_path / "packed", old),
    }
    process = start(command, *arguments[command], preexec_fn=_limit_file_size)
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert err.startswith(f"error: Could not write '{old}'")
    assert err.count("\n") == 1
    assert old.read_bytes() == OLD
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npy", "out.npy", "packed"]


def _limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))


def test_ctrl_c_ends_quietly_and_leaves_nothing_half_written(start, tmp_path):
    process = start("demo", "--steps", 1_000_000, "--out", tmp_path / "page")
    deadline = time.monotonic() + 60
    while not (tmp_path / "page").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")
    assert list((tmp_path / "page").iterdir()) == []


def test_a_closed_pipe_is_no_traceback(start):
    process = start("codecs", stdout=subprocess.PIPE)
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()


def test_a_full_disk_leaves_the_old_model(start, tmp_path):
    """What waits on the disk while a state dict is compressed goes, too."""
    safetensors.numpy.save_file({name: np.random.rand(64, 256) for name in "abc"}, tmp_path / "in.safetensors")
    (tmp_path / "out").write_bytes(OLD)
    arguments = (tmp_path / "in.safetensors", tmp_path / "out", "--codec", "dct:chop=6")
    process = start("compress", *arguments, preexec_fn=_limit_file_size)
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert err.startswith(f"error: Could not write '{tmp_path / 'out'}'")
    assert (tmp_path / "out").read_bytes() == OLD
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.safetensors", "out"]
