"""What users see first: few names, a lean import, and rooms whose doors open one way."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import laconic

SOURCE = Path(laconic.__file__).parent


def test_the_front_door_grows() -> None:
    assert sorted(laconic.__all__) == laconic.__all__
    assert len(laconic.__all__) <= 15
    for name in laconic.__all__:
        member = getattr(laconic, name)
        if inspect.isclass(member) or inspect.isfunction(member):
            assert member.__doc__, name


def test_import_drags_in_what_is_not_used() -> None:
    code = "import sys, laconic; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"matplotlib", "typer", "rich", "PIL", "skimage", "triton", "zarr", "dask", "laconic.ops.block"}
    assert not heavy & set(done.stdout.split())


def test_import_takes_long() -> None:
    """At most 150 ms beyond torch's own: the best of five, as the machine may be busy."""
    code = (
        "import torch, numpy, safetensors.torch, torch.utils._pytree, time; t = time.perf_counter(); "
        "import laconic; print(time.perf_counter() - t)"
    )
    command = [sys.executable, "-c", code]
    times = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    assert min(times) < 0.150


# From the lowest room to the highest: a module imports from its own layer and those before it.
LAYERS = [
    {"errors", "version"},
    {"stage", "memo", "metrics", "files", "tensor_file"},
    {"encoded"},
    {"ops"},
    {"backends"},
    {"registry", "checksum"},
    {"fusion", "batch", "checks"},
    {"transforms", "quantisers", "predictors", "encoders"},
    {"grammar"},
    {"run"},
    {"chain", "description"},
    {"container", "wire", "batch_wire", "schedule", "schedule_files"},
    {"nn", "targets", "comm", "activations", "data", "checkpoint"},
    {""},
    {"bench", "experiments"},
    {"cli", "__main__"},
]
# `enc.to_bytes()` and its kin are conveniences: they reach up, when called.
REACHES_UP = {("encoded", "wire"), ("batch", "batch_wire")}


def room(module: str) -> str:
    return (module + ".").split(".")[1]


def imports(path: Path) -> set[str]:
    """Every module of laconic that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            is_package = node.module == "laconic"
            found |= {f"laconic.{alias.name}" if is_package else node.module for alias in node.names}
    return {name for name in found if name.split(".")[0] == "laconic"}


def test_a_room_imports_from_one_above_it() -> None:
    height = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        own = "" if parts == ("__init__",) else parts[0]
        for module in imports(path):
            other = room(module) if room(module) in height else ""
            assert (own, other) in REACHES_UP or height[other] <= height[own], f"{path.name}: {own} imports {module}"
