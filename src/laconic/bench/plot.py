"""A study's figures, as SVG files. Reads the JSON, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.bench import study
from laconic.bench.encoders import study as encoders_study
from laconic.bench.rate import study as rate_study
from laconic.errors import MissingExtra
from laconic.files import file_errors, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Study = study.Study | rate_study.RateStudy | encoders_study.EncodersStudy

_LOADERS: dict[str, Callable[[Path], Study]] = {
    rate_study.KIND: rate_study.load,
    encoders_study.KIND: encoders_study.load,
}


def draw(file: Path, folder: Path) -> list[Path]:
    """Draws all that was measured, of whichever study the file holds; gives the figures' files."""
    found = _LOADERS.get(str(_kind(file)), study.load)(file)
    try:
        from laconic.bench import canvas
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "Drawing figures") from error
    with file_errors(folder, "make"):
        folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in _figures(found).items():
        written.append(folder / f"{name}.svg")
        with replacing(written[-1]) as temporary:
            canvas.save(figure, found, temporary)
    return written


def _kind(file: Path) -> object:
    """What a file says it is; None where it says nothing, which `load` will explain."""
    try:
        with file_errors(file, "read"):
            value = json.loads(file.read_bytes())
    except ValueError:
        return None
    return value.get("kind") if isinstance(value, dict) else None


def _figures(found: Study) -> dict[str, Callable[..., Figure]]:
    if isinstance(found, rate_study.RateStudy):
        from laconic.bench.rate.figures import figures

        return dict(figures(found))
    if isinstance(found, encoders_study.EncodersStudy):
        from laconic.bench.encoders.figures import figures as of_encoders

        return dict(of_encoders(found))
    from laconic.bench.figures import FIGURES

    return {name: figure for name, figure in FIGURES.items() if found.section(name)}
