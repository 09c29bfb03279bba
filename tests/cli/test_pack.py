"""The commands of packed stores: what they print, and how they fail."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("zarr")


@pytest.fixture
def source(tmp_path):
    y, x = np.mgrid[:16, :16].astype("f4")
    images = np.array([[np.sin(x / 5 + i) * np.cos(y / 7)] for i in range(12)], "f4")
    np.savez(tmp_path / "in.npz", images=images, labels=np.arange(12))
    return tmp_path / "in.npz"


@pytest.fixture
def store(run, source, tmp_path):
    path = tmp_path / "out.zarr"
    assert run("pack", source, path, "--codec", "bound:rel=1e-3|lorenzo|huffman", "--shard", 5).code == 0
    return path


def test_the_report_is_no_json_or_says_something_else(run, store, source, tmp_path):
    done = run("pack", source, tmp_path / "b.zarr", "--codec", "dct:chop=4", "--json")
    assert json.loads(done.out)["samples"] == 12
    found = json.loads(run("info", store, "--json").out)
    assert found["arrays"]["images"]["spec"] == "float32[12,1,16,16]"
    assert "12 samples" in run("info", store).out


def test_what_comes_back_is_out_of_bounds(run, store, source, tmp_path):
    before = np.load(source)
    for target in ("out.npy", "back.npz", "back.zarr"):
        assert run("unpack", store, tmp_path / target).code == 0
    bound = 1e-3 * np.ptp(before["images"], axis=(1, 2, 3), keepdims=True)
    assert (np.abs(np.load(tmp_path / "out.npy") - before["images"]) <= bound).all()
    assert np.array_equal(np.load(tmp_path / "back.npz")["labels"], before["labels"])
    assert run("pack", tmp_path / "back.zarr", tmp_path / "again.zarr", "--codec", "zstd").code == 0


def test_a_damaged_sample_is_not_named_or_hides_the_rest(run, store, source, tmp_path):
    assert run("verify", store, "--against", source).code == 0
    shard = store / "images" / "c" / "1" / "0" / "0" / "0"
    data = bytearray(shard.read_bytes())
    data[60] ^= 1
    shard.write_bytes(data)
    code, out, err = run("verify", store, "--against", source)
    assert code == 2
    assert "damaged: images, sample 5, in images/c/1/0/0/0: The checksum does not match" in out
    assert "1 of 12 samples are damaged" in err
    failed = run("unpack", store, tmp_path / "x.npy")
    assert failed.code == 2
    assert "sample 5" in failed.err
    shard.unlink()
    assert [d["sample"] for d in json.loads(run("verify", store, "--json").out)["damaged"]] == [5, 6, 7, 8, 9]


def test_another_source_passes_for_the_one_that_was_packed(run, store, source, tmp_path):
    with np.load(source) as before:
        images, labels = before["images"], before["labels"]
    np.savez(tmp_path / "other.npz", images=images + 0.1, labels=labels[::-1])
    code, _, err = run("verify", store, "--against", tmp_path / "other.npz")
    assert code == 2
    assert "12 samples are not within the bound; the first is 0" in err
    assert "'labels', which travels beside, differs" in err


@pytest.mark.parametrize(
    "options", [("--memory", "lots"), ("--shard", "0"), ("--array", "no"), ("--scheduler", "tcp://127.0.0.1:9")]
)
def test_options_that_cannot_work_leave_something_behind(options, run, source, tmp_path, monkeypatch):
    monkeypatch.setattr("laconic.data.pack_workers._CONNECT_SECONDS", 0.5)
    code, out, err = run("pack", source, tmp_path / "out.zarr", "--codec", "dct:chop=4", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "out.zarr").exists()


def test_ctrl_c_is_a_traceback(run, source, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("laconic.data.pack.write_shards", interrupt)
    code, _, err = run("pack", source, tmp_path / "out.zarr", "--codec", "dct:chop=4")
    assert (code, err.count("\n")) == (130, 1)
    assert "--resume" in err
