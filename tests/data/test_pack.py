"""A store's bytes are those of its samples, whoever packed them, and in however many goes."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import time

import numpy as np
import pytest
import torch

import laconic
from laconic import metrics
from laconic.data.pack import pack
from laconic.data.pack_claim import claimed
from laconic.data.pack_quality import NONE, compare
from laconic.data.pack_workers import Helpers
from laconic.data.store import packed_arrays
from laconic.errors import DataError, FileError, SpecError
from tests.data.conftest import files, smooth
from tests.data.packer import packing

CODECS = ["dct:chop=4", "bound:rel=1e-3|lorenzo|huffman", "zstd"]


@pytest.fixture
def helped(monkeypatch):
    """Packers that wait for those who help them: they are done with little before these are there."""
    enter = Helpers.__enter__

    def patient(helpers):
        enter(helpers)
        helpers.wait_until_ready()
        return helpers

    monkeypatch.setattr(Helpers, "__enter__", patient)


def quietly(source, target, codec="dct:chop=4", **options):
    return pack(source, target, codec, **{"workers": 1, "shard": "5", **options})


@pytest.mark.parametrize("codec", CODECS)
def test_a_sample_depends_on_its_neighbours(codec, npy, images, tmp_path):
    quietly(npy, tmp_path / "out.zarr", codec)
    array = packed_arrays(tmp_path / "out.zarr")["data"]
    for i in (0, 4, 5, 22):
        found = array.open_shard(i // 5).sample(i % 5).tobytes()
        assert found == laconic.codec(codec).encode(torch.from_numpy(images[i : i + 1])).to_bytes()


@pytest.mark.parametrize("codec", CODECS)
def test_memory_or_workers_change_the_bytes(codec, npz, tmp_path, helped):
    quietly(npz, tmp_path / "a.zarr", codec)
    quietly(npz, tmp_path / "b.zarr", codec, memory="20KB")
    quietly(npz, tmp_path / "c.zarr", codec, workers=3)
    assert files(tmp_path / "a.zarr") == files(tmp_path / "b.zarr") == files(tmp_path / "c.zarr")


@pytest.mark.parametrize("processes", [False, True])
def test_a_dask_cluster_changes_the_bytes(processes, npz, tmp_path):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 2, "processes": processes, "dashboard_address": None}
    quietly(npz, tmp_path / "a.zarr")
    with distributed.LocalCluster(**options, silence_logs="ERROR") as cluster:
        address = cluster if not processes else cluster.scheduler_address
        quietly(npz, tmp_path / "b.zarr", scheduler=address)
    assert files(tmp_path / "a.zarr") == files(tmp_path / "b.zarr")


def test_what_the_store_says_of_itself_is_wrong(npz, images, tmp_path):
    found = quietly(npz, tmp_path / "out.zarr", "dct:chop=4")
    restored = laconic.codec("dct:chop=4").roundtrip(torch.from_numpy(images))
    told = found["arrays"]["images"]
    assert told["psnr"] == pytest.approx(metrics.psnr(torch.from_numpy(images), restored), abs=1e-4)
    assert told["max_error"] == pytest.approx(metrics.max_error(torch.from_numpy(images), restored))
    assert found["after"] == sum(path.stat().st_size for path in (tmp_path / "out.zarr").rglob("*") if path.is_file())
    assert found["ratio"] == found["before"] / found["after"]
    assert (found["packed"], found["beside"]) == (["images"], ["labels"])


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_the_order_of_blocks_changes_a_sum(scale):
    x = torch.rand(12, 3, 37, 41) * scale
    y = x * 1.01
    whole = compare(x, y.clone())
    parts = NONE
    for a, b in zip(x.split(5), y.clone().split(5), strict=True):
        parts = compare(a, b, parts)
    assert whole == parts
    assert whole.squares == pytest.approx(float((x.double() - y.double()).square().sum()), rel=1e-4)


def test_values_that_are_not_finite_spoil_the_sums():
    x = torch.tensor([[1.0, float("nan"), 3.0], [float("inf"), 2.0, -1.0]])
    found = compare(x, x + 0.5)
    assert (found.low, found.high, found.largest) == (-1.0, 3.0, 0.5)
    assert found.squares == pytest.approx(4 * 0.25)


# What interrupts a packer.

CONTEXT = multiprocessing.get_context("forkserver")
MOMENTS = int(os.environ.get("LACONIC_KILLS", "100"))


def begun(source, target):
    child = CONTEXT.Process(target=packing, args=(source, target))
    child.start()
    return child


def test_kill_9_at_any_moment_changes_the_bytes_or_loses_them(npz, tmp_path):
    """A hundred times: kills a packer, goes on with another, until one comes to the end."""
    CONTEXT.set_forkserver_preload(["zarr", "tests.data.packer"])
    quietly(npz, tmp_path / "whole.zarr", shard="2")
    expected = files(tmp_path / "whole.zarr")
    begun(npz, tmp_path / "warm.zarr").join()
    started = time.monotonic()
    begun(npz, tmp_path / "timed.zarr").join()
    takes, chance = time.monotonic() - started, random.Random(0)
    kills = left = goes = 0
    while kills < MOMENTS:
        goes += 1
        target = tmp_path / f"killed{goes}.zarr"
        while not target.exists():
            child = begun(npz, target)
            child.join(chance.uniform(0, takes))
            kills += child.exitcode is None
            child.kill()
            child.join()
            left += target.with_name(target.name + ".partial").exists()
        assert files(target) == expected
        assert not target.with_name(target.name + ".partial").exists()
    assert left > MOMENTS / 2


def test_a_killed_worker_is_more_than_a_line(npz, tmp_path, monkeypatch, helped):
    monkeypatch.setattr("laconic.data.pack_workers._write", killed)
    with pytest.raises(FileError, match=r"worker was killed.*\d+ of 12 shards are written: --resume") as found:
        quietly(npz, tmp_path / "out.zarr", workers=2, shard="2")
    assert "\n" not in str(found.value)
    monkeypatch.undo()
    quietly(npz, tmp_path / "out.zarr", workers=2, shard="2", resume=True)
    quietly(npz, tmp_path / "whole.zarr", shard="2")
    assert files(tmp_path / "out.zarr") == files(tmp_path / "whole.zarr")


def killed(shard):
    os.kill(os.getpid(), 9)


def test_a_packer_waits_for_helpers_that_are_late(npz, tmp_path, monkeypatch):
    monkeypatch.setattr("laconic.data.pack_workers._nothing", late)
    begun = time.monotonic()
    quietly(npz, tmp_path / "out.zarr", workers=3, shard="2")
    assert time.monotonic() - begun < 20
    assert not multiprocessing.active_children()


def late():
    time.sleep(60)


def test_a_full_disk_loses_what_was_done(npy, images, tmp_path, monkeypatch):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    np.save(tmp_path / "big.npy", smooth(23, 64))
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limit[1]))
    try:
        with pytest.raises(FileError, match=r"too large.*0 of 2 shards are written: --resume"):
            quietly(tmp_path / "big.npy", tmp_path / "out.zarr", shard="20")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert not (tmp_path / "out.zarr").exists()
    quietly(tmp_path / "big.npy", tmp_path / "out.zarr", shard="20", resume=True)


def test_two_packers_write_one_target(npy, tmp_path):
    with claimed(tmp_path / "out.zarr"), pytest.raises(FileError, match="is being packed by another process"):
        quietly(npy, tmp_path / "out.zarr")
    quietly(npy, tmp_path / "out.zarr")  # the first is gone, and not in the way
    with pytest.raises(FileError, match="is there already"):
        quietly(npy, tmp_path / "out.zarr")
    assert quietly(npy, tmp_path / "out.zarr", resume=True)["samples"] == 23


@pytest.fixture
def interrupted(npy, tmp_path):
    """Half a store, and its name to be."""

    def progress(done, of):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quietly(npy, tmp_path / "out.zarr", progress=progress)
    return tmp_path / "out.zarr"


def test_resume_mixes_two_sources_or_codecs(interrupted, npy, images, tmp_path):
    with pytest.raises(FileError, match=r"was begun before, and is kept\. Go on with --resume"):
        quietly(npy, interrupted)
    with pytest.raises(SpecError, match="begun with another codec"):
        quietly(npy, interrupted, "dct:chop=2", resume=True)
    with pytest.raises(SpecError, match="begun with another per_shard"):
        quietly(npy, interrupted, shard="7", resume=True)
    np.save(tmp_path / "other.npy", images)
    with pytest.raises(SpecError, match="begun with another source"):
        quietly(tmp_path / "other.npy", interrupted, resume=True)
    np.save(npy, images + 1)
    with pytest.raises(SpecError, match="begun with another files"):
        quietly(npy, interrupted, resume=True)


def test_resume_mixes_the_bits_of_two_versions_of_a_stage(interrupted, npy):
    plan = interrupted.with_name("out.zarr.partial") / ".pack" / "plan.json"
    kept = json.loads(plan.read_text())
    assert kept["version"] == [link.version for link in laconic.codec("dct:chop=4").links]
    plan.write_text(json.dumps(kept | {"version": [99]}))
    with pytest.raises(SpecError, match=r"begun with another version: cannot resume \(by a laconic whose stages"):
        quietly(npy, interrupted, resume=True)


def test_an_unfinished_store_opens_and_lies(interrupted, npy):
    with pytest.raises(SpecError, match="--resume"):
        packed_arrays(interrupted)
    quietly(npy, interrupted, resume=True)
    assert len(packed_arrays(interrupted)["data"]) == 23


# What cannot be packed.


@pytest.mark.parametrize(
    ("array", "codec", "message"),
    [
        (np.zeros((4, 10), "f4"), "dct:chop=4", "expects samples of"),
        (np.zeros((4, 8, 8), "i4"), "dct:chop=4", "expected an array of floats or uint8, found 'data' int32"),
        (np.zeros((0, 8, 8), "f4"), "dct:chop=4", "has no samples"),
        (np.zeros((), "f4"), "dct:chop=4", "expected an array of floats"),
        (np.zeros((4, 8, 8), "c8"), "dct:chop=4", "complex64"),
    ],
)
def test_what_no_codec_takes_is_met_late(array, codec, message, tmp_path):
    np.save(tmp_path / "in.npy", array)
    with pytest.raises(SpecError, match=message):
        quietly(tmp_path / "in.npy", tmp_path / "out.zarr", codec)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npy"]


def test_a_nan_spreads_over_its_block(images, tmp_path):
    images[13, 1, 2, 3] = np.nan
    np.save(tmp_path / "in.npy", images)
    with pytest.raises(DataError, match=r"'data': sample 13 has NaN or Inf.*bound:rel"):
        quietly(tmp_path / "in.npy", tmp_path / "a.zarr")
    quietly(tmp_path / "in.npy", tmp_path / "b.zarr", "bound:rel=1e-3|lorenzo|huffman")


def test_memory_too_small_for_a_sample_is_used_all_the_same(npy, tmp_path):
    with pytest.raises(SpecError, match="--memory: a sample has"):
        quietly(npy, tmp_path / "out.zarr", memory="4KB")
    assert not (tmp_path / "out.zarr.partial").exists()


def peak_of(source, target, memory, found):
    import laconic.data.sources_numpy
    import laconic.ops.block  # noqa: F401  # all that is imported counts for nothing

    quietly(npy_of(target.parent), target.with_name("warm.zarr"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pack(source, target, "dct:chop=4", memory=memory, workers=1)
    found.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)


def npy_of(folder):
    np.save(folder / "small.npy", smooth(4))
    return folder / "small.npy"


def test_memory_grows_with_the_source(tmp_path):
    """Of a source of 512 MiB, which takes no room on the disk, what is held at a time is a few blocks."""
    shape = (2048, 1, 256, 256)
    np.lib.format.open_memmap(tmp_path / "sparse.npy", "w+", "f4", shape)
    context = multiprocessing.get_context("spawn")
    found = context.Queue()
    child = context.Process(target=peak_of, args=(tmp_path / "sparse.npy", tmp_path / "out.zarr", "64MiB", found))
    child.start()
    assert found.get(timeout=120) < 64 << 20
    child.join()
    assert json.loads((tmp_path / "out.zarr" / "zarr.json").read_text())["attributes"]["laconic"]["samples"] == 2048
