"""What every command shares on the terminal: tables and JSON to stdout, progress to stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

_PIPE_WIDTH = 160
"""Columns where nobody's window sets a limit."""


def show(*items: RenderableType) -> None:
    """Prints tables and text to stdout."""
    console = Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)
    for item in items:
        console.print(item, highlight=False)


def show_json(value: Any) -> None:
    """Prints a value as JSON, and nothing else."""
    print(json_text(value))


def json_text(value: Any) -> str:
    """A value as JSON. What JSON has no number for (Inf, NaN) becomes null."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr, gone when the block ends. What it gives is called with what begins now, `total` times."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=total)
        begun = 0

        def begin(what: str) -> None:
            nonlocal begun
            bar.update(task, description=what, completed=begun)
            begun += 1

        yield begin


@contextmanager
def bytes_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr with the rate and the time left. What it gives is called with bytes done, of how many."""
    columns = (
        *(TextColumn("{task.description}"), BarColumn()),
        *(DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def size(nbytes: int) -> str:
    """Bytes as a person reads them.

    >>> size(999), size(791_555), size(2**31)
    ('999 B', '792 kB', '2.15 GB')
    """
    value, units = float(nbytes), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{nbytes} B" if units[0] == "B" else f"{value:.3g} {units[0]}"
