"""`laconic demo`"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laconic.errors import MissingExtra
from laconic.files import file_errors, replacing

if TYPE_CHECKING:
    from rich.table import Table

    from laconic.experiments.demo import Result

_LIBRARIES = {"skimage": "scikit-image", "PIL": "Pillow", "matplotlib": "matplotlib"}


def demo(
    out: Annotated[Path, typer.Option(help="A folder for index.html and demo.json.")] = Path("demo"),
    steps: Annotated[int, typer.Option(min=1, help="Training steps for each codec and seed.")] = 100,
    seeds: Annotated[int, typer.Option(min=1, help="How often each training is repeated.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compress pictures, train on compressed pictures, and show both: a table here, a page in a folder.

    Takes about a minute on two cores, and downloads nothing.
    """
    _require_libraries()
    from laconic.cli.console import json_text, progress, show
    from laconic.experiments import demo as experiment
    from laconic.experiments.demo_page import render

    with file_errors(out, "make"):
        out.mkdir(parents=True, exist_ok=True)
    settings = experiment.Settings(steps=steps, seeds=seeds)
    with progress(settings.tasks) as begin:
        done = experiment.run(settings, begin)
    result = json_text(done.result.as_dict())
    _write(out / "demo.json", result)
    _write(out / "index.html", render(done))
    if json:
        print(result)
    else:
        show(*_table(done.result))
    print(f"Pictures and plots: {out / 'index.html'}", file=sys.stderr)


def _require_libraries() -> None:
    """Says what is missing now, rather than after a minute of work."""
    for module, library in _LIBRARIES.items():
        if find_spec(module) is None:
            raise MissingExtra(library, extra="demo", purpose="laconic demo")


def _write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _table(result: Result) -> list[Table | str]:
    from rich.table import Table

    from laconic.bench import machine
    from laconic.experiments import demo_table

    table = Table()
    for index, column in enumerate(demo_table.COLUMNS):
        table.add_column(column, justify="right" if index else "left", overflow="fold", vertical="bottom")
    for row in demo_table.rows(result):
        table.add_row(*row)
    return [table, demo_table.caption(result), machine.summary(result.machine)]
