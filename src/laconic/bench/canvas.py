"""What all figures share: their style, colours, captions, and how they are saved."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from matplotlib import colormaps, style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from laconic.bench import machine
from laconic.bench.machine import Machine

STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "laconic",  # with no date in the file, one study gives one file
}
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which the colour-blind tell apart."""
MARKERS = "osD^vPX"
GOOD, BAD, PEER = SERIES[0], SERIES[1], "#555555"


class Measured(Protocol):
    """A study of any kind: a caption needs no more of it."""

    @property
    def machine(self) -> Machine: ...


S = TypeVar("S", bound=Measured)


def new_figure(
    title: str, panels: Sequence[str], study: Measured, size: tuple[float, float], rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """Panels, row by row, under a title, above the name of the hardware."""
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(rows, len(panels) // rows, squeeze=False).flat)
    for ax, panel in zip(axes, panels, strict=True):
        ax.set_title(panel)
    figure.suptitle(title, fontsize=11, fontweight="bold")
    caption = textwrap.fill(machine.summary(study.machine), int(size[0] * 18))
    figure.supxlabel(caption, fontsize=7, color=PEER)
    return figure, axes


def chop_colour(chop: int) -> Any:
    """Dark to light, so that order shows without colour."""
    return colormaps["viridis"]((chop - 1) / 7.5)


def plain_ticks(ax: Axes, values: Sequence[int]) -> None:
    """A logarithmic x axis that names the values measured, and no others."""
    ax.set_xscale("log", base=2)
    ax.set_xticks(values, [str(value) for value in values])
    ax.minorticks_off()


def plain_log(axis: Axis, base: int = 10) -> None:
    """Names the values on a logarithmic axis in plain numbers, several in each decade."""
    axis.set_major_locator(LogLocator(base, subs=(1, 2, 5) if base == 10 else (1,)))
    axis.set_major_formatter("{x:,.10g}")
    axis.set_minor_formatter(NullFormatter())


def share_y(axes: Sequence[Axes]) -> None:
    """Gives all panels the limits that hold all their values."""
    limits = [ax.get_ylim() for ax in axes]
    for ax in axes:
        ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def legend_beside(figure: Figure, ax: Axes) -> None:
    figure.legend(*ax.get_legend_handles_labels(), loc="outside right center")


def save(draw: Callable[[S], Figure], study: S, path: Path) -> None:
    with style.context(STYLE):
        draw(study).savefig(path, format="svg", metadata={"Date": None})
