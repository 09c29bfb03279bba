"""What two ranks do, each in a process of its own; started by test_distributed.py."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from laconic.checkpoint import DistributedReader, DistributedWriter

RULES = {"*.weight": "bound:abs=1e-3|lorenzo|huffman", "*": None}


def full() -> dict[str, torch.Tensor]:
    """The state as one process would have it: rows and columns that two ranks share unevenly."""
    x = torch.linspace(-1, 1, 301 * 203).sin().reshape(301, 203)
    return {"layer.weight": x, "layer.bias": torch.arange(7.0), "step": torch.tensor(12)}


def sharded(state: dict[str, torch.Tensor], dim: int) -> dict[str, torch.Tensor | DTensor]:
    mesh = init_device_mesh("cpu", (2,))
    return {k: distribute_tensor(x, mesh, [Shard(dim)]) if x.dim() == 2 else x for k, x in state.items()}


def save(path: Path) -> None:
    dcp.save(sharded(full(), 0), storage_writer=DistributedWriter(path, RULES))


def save_later(path: Path) -> None:
    dcp.async_save(sharded(full(), 0), storage_writer=DistributedWriter(path, RULES)).result()


def load(path: Path) -> None:
    """Into columns, where rows were saved."""
    state = sharded({name: torch.zeros_like(x) for name, x in full().items()}, 1)
    dcp.load(state, storage_reader=DistributedReader(path))
    for name, x in full().items():
        found = state[name].full_tensor() if isinstance(state[name], DTensor) else state[name]
        worst = float((found - x).abs().max())
        assert worst <= 1e-3, (name, worst)
        assert (worst == 0) == (name != "layer.weight"), (name, worst)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rank, folder, *jobs = sys.argv[1:]
    dist.init_process_group("gloo", init_method=f"file://{folder}/ranks", rank=int(rank), world_size=2)
    for job in jobs:
        {"save": save, "save_later": save_later, "load": load}[job](Path(folder) / "checkpoint")
    dist.destroy_process_group()
