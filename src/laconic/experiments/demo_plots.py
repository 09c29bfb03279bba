"""The demonstration's plots, as SVG that stands inside a page and takes on its colours."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from statistics import mean
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from laconic.experiments.demo import Result
from laconic.experiments.denoise import Outcome

PALETTE = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#2fa4a0", "#c99a1b", "#9c755f", "#e377a8")
"""Told apart on white and on black."""
_INK = "#123456"
"""Stands for the page's own text colour."""
_LOSSES = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "laconic",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.6,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
}


def colours(result: Result) -> dict[str, str]:
    """One colour for each row of the table; training uncompressed is in the colour of the text."""
    codecs = [outcome.codec for outcome in result.denoising]
    palette = ["currentColor", *(PALETTE[i % len(PALETTE)] for i in range(len(codecs)))]
    return dict(zip(codecs, palette, strict=False))


def rate_distortion(result: Result) -> str:
    """PSNR over ratio: one line for each family of codecs."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _axes("compression ratio", "PSNR, dB")
        families = list(dict.fromkeys(point.family for point in result.sweep))
        for family, colour in zip(families, PALETTE, strict=False):
            points = [point for point in result.sweep if point.family == family and point.ratio > 1]
            axes.plot([p.ratio for p in points], [p.psnr for p in points], "o-", color=colour, label=family, ms=4)
        axes.set_xscale("log", base=2)
        ticks = [2**i for i in range(9)]
        axes.set_xticks(ticks, [f"{tick}x" for tick in ticks])
        axes.legend(frameon=False, fontsize=9)
        return _svg(figure, "Rate and distortion: PSNR over compression ratio, one line for each family of codecs")


def test_curves(result: Result) -> str:
    """Test loss over steps."""
    return _curves(result, "test", "test loss x 1000")


def train_curves(result: Result) -> str:
    """Training loss over steps."""
    return _curves(result, "train", "training loss x 1000")


def changes(result: Result) -> str:
    """How far each codec moved the test loss: a dot for each seed, a bar for their mean."""
    with matplotlib.rc_context(_STYLE):
        outcomes = result.denoising[1:]
        figure, axes = _axes("change of test loss, %", "", height=0.34 * len(outcomes) + 0.9)
        palette = colours(result)
        for row, outcome in enumerate(outcomes):
            change = result.change(outcome)
            axes.barh(row, mean(change), height=0.55, color=palette[outcome.codec], alpha=0.45)
            axes.plot(change, [row] * len(change), "o", color=palette[outcome.codec], ms=4.5)
        axes.axvline(0, color=_INK, linewidth=1)
        axes.set_yticks(range(len(outcomes)), [outcome.codec for outcome in outcomes])
        axes.invert_yaxis()
        return _svg(figure, "Change of test loss against training uncompressed, one dot for each seed")


def _curves(result: Result, which: str, label: str) -> str:
    with matplotlib.rc_context(_STYLE):
        figure, axes = _axes("training step", label)
        for outcome in result.denoising:
            colour = colours(result)[outcome.codec].replace("currentColor", _INK)
            width = 2.4 if outcome is result.denoising[0] else 1.4
            axes.plot(outcome.curves[0].step, _mean_curve(outcome, which), color=colour, linewidth=width)
        axes.set_yscale("log")
        axes.yaxis.set(major_locator=FixedLocator(_LOSSES), major_formatter="{x:g}", minor_locator=NullLocator())
        return _svg(figure, f"{label} over training steps, one line for each codec")


def _mean_curve(outcome: Outcome, which: str) -> list[float]:
    """The mean over seeds, times 1000."""
    curves: Sequence[list[float]] = [getattr(curve, which) for curve in outcome.curves]
    return [1000 * mean(losses) for losses in zip(*curves, strict=True)]


def _axes(x: str, y: str, height: float = 3.4) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(4.9, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x, ylabel=y)
    axes.grid(color=_INK, alpha=0.13, linewidth=0.7)
    axes.set_axisbelow(True)
    return figure, axes


def _svg(figure: Figure, description: str) -> str:
    """Only the drawing: no XML header, no metadata, no addresses of namespaces, which HTML does not need."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    drawing = buffer.getvalue()
    drawing = re.sub(r' xmlns(:\w+)?="[^"]*"', "", drawing[drawing.index("<svg") :])
    return drawing.replace(_INK, "currentColor").replace("<svg", f'<svg role="img" aria-label="{description}"', 1)
