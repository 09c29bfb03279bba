"""A study's figures, as SVG files. Reads the JSON, and nothing else."""

from __future__ import annotations

from pathlib import Path

from laconic.bench import study
from laconic.errors import MissingExtra
from laconic.files import file_errors, replacing


def draw(file: Path, folder: Path) -> list[Path]:
    """Draws a figure for every section that was measured; gives their files."""
    found = study.load(file)
    try:
        from laconic.bench import canvas, figures
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "Drawing figures") from error
    with file_errors(folder, "make"):
        folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures.FIGURES.items():
        if found.section(name):
            written.append(folder / f"{name}.svg")
            with replacing(written[-1]) as temporary:
                canvas.save(figure, found, temporary)
    return written
