"""Strangers bring stages by entry point; the documentation's example is such a stranger."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import laconic
from laconic import registry
from laconic.stage import Kind, Stage

GUIDE = Path(__file__).parent.parent / "docs" / "add-a-stage.md"


def install(folder: Path, name: str, target: str, code: str) -> dict[str, str]:
    """A package as pip would have left it: a module, and the metadata that name its stage."""
    module = target.partition(":")[0]
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[laconic.stages]\n{name} = {target}\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def run(code: str, env: dict[str, str]) -> str:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def guide_code(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)


def test_the_guides_example_does_not_work(tmp_path: Path) -> None:
    module, use = guide_code("python")
    name, target = re.findall(r'^(\w+) = "(.+)"$', guide_code("toml")[0], flags=re.MULTILINE)[-1]
    env = install(tmp_path, name, target, module)
    printed = run(use, env)
    assert printed == guide_code("text")[0].strip()


def test_a_broken_plug_in_breaks_the_others(tmp_path: Path) -> None:
    env = install(tmp_path, "broken", "broken_stage:Broken", "raise RuntimeError('no such luck')")
    out = run(
        """
        import torch, laconic
        laconic.encode(torch.rand(8, 8), "dct:chop=4")
        try:
            laconic.codec("broken")
        except laconic.SpecError as error:
            print(error)
        """,
        env,
    )
    assert "broken_stage:Broken" in out
    assert "no such luck" in out


def test_a_plug_in_replaces_a_built_in_stage(tmp_path: Path) -> None:
    env = install(tmp_path, "dct", "evil:Dct", "raise SystemExit('loaded')")
    assert run("import laconic; print(laconic.codec('dct:chop=4'))", env) == "dct:chop=4"


def test_what_is_no_stage_is_taken_for_one(tmp_path: Path) -> None:
    env = install(tmp_path, "thing", "thing_module:Thing", "class Thing: pass")
    out = run(
        """
        import laconic
        try:
            laconic.codec("thing")
        except laconic.SpecError as error:
            print(error)
        """,
        env,
    )
    assert "not a subclass" in out


@pytest.mark.parametrize("name", registry.names())
def test_a_stage_is_incomplete(name: str) -> None:
    stage = registry.find(name)
    assert issubclass(stage, Stage)
    assert stage.name == name
    assert isinstance(stage.kind, Kind)
    assert stage.version >= 1
    assert stage.__doc__
    assert stage.__doc__.strip().endswith((".", ")"))
    assert str(laconic.codec(stage.example))
