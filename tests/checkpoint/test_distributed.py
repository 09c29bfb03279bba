"""Distributed checkpoints: written by real ranks, read by other numbers of them, and damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

if not dist.is_available():
    pytest.skip("this PyTorch was built without torch.distributed", allow_module_level=True)

import torch.distributed.checkpoint as dcp

from laconic import checkpoint

from . import ranks

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # that one process is enough


def two_ranks(folder: Path, *jobs: str) -> None:
    (folder / "ranks").unlink(missing_ok=True)
    commands = [[sys.executable, "-m", "tests.checkpoint.ranks", str(rank), str(folder), *jobs] for rank in (0, 1)]
    root = Path(__file__).parents[2]
    running = [subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True) for command in commands]
    try:
        ended = [process.communicate(timeout=120)[1] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0, 0], "\n".join(ended)


def save(path: Path, state: dict[str, Any], rules: Any) -> None:
    dcp.save(state, storage_writer=checkpoint.DistributedWriter(path, rules))


def load(path: Path, state: dict[str, Any]) -> dict[str, Any]:
    dcp.load(state, storage_reader=checkpoint.DistributedReader(path))
    return state


@pytest.mark.skipif(not dist.is_gloo_available(), reason="two ranks on a CPU talk by gloo")
def test_shards_are_read_by_nobody_but_the_ranks_that_wrote_them(tmp_path: Path) -> None:
    two_ranks(tmp_path, "save", "load", "save_later", "load")
    written = sorted(path.name for path in (tmp_path / "checkpoint").iterdir())
    assert written == [".metadata", "__0_0.laconic", "__1_0.laconic"]
    state = load(tmp_path / "checkpoint", {name: torch.zeros_like(x) for name, x in ranks.full().items()})
    assert float((state["layer.weight"] - ranks.full()["layer.weight"]).abs().max()) <= 1e-3
    assert torch.equal(state["layer.bias"], ranks.full()["layer.bias"])


def test_what_no_codec_takes_comes_back_changed(tmp_path: Path) -> None:
    x = torch.randn(64, 64)
    state = {
        "model": {"weight": x, "transposed": x.T[:, 3:], "tied": x, "empty": torch.empty(0, 3), "mask": x > 0},
        "optim": {"step": torch.tensor(5), "lr": 0.1, "name": "adam", "nothing": b""},
        "wide": torch.randn(3, 2, dtype=torch.complex128),
        "turned": torch.randn(5, dtype=torch.complex64).conj(),
    }
    save(tmp_path / "c", state, "bound:abs=0.01|lorenzo|huffman")
    blank = {name: torch.zeros_like(t) for name, t in state["model"].items()}
    other = {"wide": torch.zeros_like(state["wide"]), "turned": torch.zeros(5, dtype=torch.complex64)}
    found = load(
        tmp_path / "c", {"model": blank, "optim": {**dict.fromkeys(state["optim"]), "step": torch.tensor(0)}, **other}
    )
    assert found["optim"] == state["optim"]
    assert all(torch.equal(found[name], state[name]) for name in ("wide", "turned"))
    for name, tensor in state["model"].items():
        assert float((found["model"][name].float() - tensor.float()).abs().max() if tensor.numel() else 0) <= 0.01
    assert torch.equal(found["model"]["mask"], state["model"]["mask"])
    assert not torch.equal(found["model"]["weight"], x)


def test_a_model_and_its_optimiser_do_not_go_on(tmp_path: Path) -> None:
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    def made() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64))
        optimiser = torch.optim.Adam(model.parameters())
        model(torch.randn(8, 64)).square().sum().backward()
        optimiser.step()
        return model, optimiser

    def state_of(model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
        return dict(zip(("model", "optim"), get_state_dict(model, optimiser), strict=True))

    first, second = made(), made()
    save(tmp_path / "c", state_of(*first), {"model.*.weight": "bound:rel=1e-4|huffman", "*.exp_avg": "affine:per=row"})
    state = load(tmp_path / "c", state_of(*second))
    set_state_dict(*second, model_state_dict=state["model"], optim_state_dict=state["optim"])
    for a, b in zip(first[0].parameters(), second[0].parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-4)
    (a, *_), (b, *_) = (optimiser.state_dict()["state"].values() for _, optimiser in (first, second))
    assert torch.equal(a["exp_avg_sq"], b["exp_avg_sq"])
    assert torch.allclose(a["exp_avg"], b["exp_avg"], atol=float(a["exp_avg"].abs().max()) / 100)


@pytest.mark.parametrize("damage", ["flipped bit", "cut", "gone"])
def test_a_damaged_shard_is_loaded(damage: str, tmp_path: Path) -> None:
    save(tmp_path, {"layer.weight": torch.randn(64, 64)}, "affine")
    shard = tmp_path / "__0_0.laconic"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 4
    shard.write_bytes(data if damage == "flipped bit" else data[:-1])
    if damage == "gone":
        shard.unlink()
    with pytest.raises(dcp.api.CheckpointException, match=r"__0_0\.laconic") as found:
        load(tmp_path, {"layer.weight": torch.zeros(64, 64)})
    assert damage == "gone" or "'layer.weight'" in str(found.value)


def test_the_wrong_reader_gives_garbage(tmp_path: Path) -> None:
    """PyTorch's own says what is missing; ours reads what PyTorch's writer wrote."""
    state = {"x": torch.randn(64, 64)}
    save(tmp_path / "ours", state, "affine")
    with pytest.raises(dcp.api.CheckpointException, match="laconic"):
        dcp.load({"x": torch.zeros(64, 64)}, checkpoint_id=tmp_path / "ours")
    dcp.save(state, checkpoint_id=tmp_path / "theirs")
    assert torch.equal(load(tmp_path / "theirs", {"x": torch.zeros(64, 64)})["x"], state["x"])


def test_a_checkpoint_of_other_sizes_is_loaded(tmp_path: Path) -> None:
    save(tmp_path, {"x": torch.randn(64, 64)}, "affine")
    with pytest.raises((dcp.api.CheckpointException, ValueError), match="64"):
        load(tmp_path, {"x": torch.zeros(64, 32)})


def test_half_of_another_checkpoint_is_loaded(tmp_path: Path) -> None:
    """Overwritten, but for what says where things are; and not at all where that was not wanted."""
    save(tmp_path, {"a": torch.randn(64, 64), "b": torch.randn(64, 64)}, "affine")
    metadata = (tmp_path / ".metadata").read_bytes()
    save(tmp_path, {"a": torch.randn(64, 99), "b": torch.randn(64, 64)}, "affine")
    (tmp_path / ".metadata").write_bytes(metadata)
    with pytest.raises(dcp.api.CheckpointException, match="CorruptData"):
        load(tmp_path, {"b": torch.zeros(64, 64)})
    with pytest.raises(dcp.api.CheckpointException, match="already exists"):
        dcp.save({}, storage_writer=checkpoint.DistributedWriter(tmp_path, {}, overwrite=False))


def test_a_misspelt_codec_is_found_after_the_training() -> None:
    with pytest.raises(ValueError, match="afine"):
        checkpoint.DistributedWriter("never", {"*": "afine"})
    assert not os.path.exists("never")


def test_rules_drag_in_torch_distributed() -> None:
    code = "import sys, torch, laconic.checkpoint as c; print('torch.distributed.checkpoint' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
