"""The figures of a loader study."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator

from laconic.bench import bars, canvas
from laconic.bench.loader.datasets import COMPRESSED
from laconic.bench.loader.study import LoaderStudy, Row
from laconic.bench.tables import plain_number

PEER, OURS, UNDECODED = canvas.PEER, canvas.SERIES[0], canvas.SERIES[4]


def figures(study: LoaderStudy) -> dict[str, Callable[[LoaderStudy], Figure]]:
    """What there is to draw, by the name of its file."""
    found: dict[str, Callable[[LoaderStudy], Figure]] = {"loader-floors": bars.floors} if study.verdicts else {}
    return found | {"loader-speed": speed}


def speed(study: LoaderStudy) -> Figure:
    """Samples a second: a panel for each setting, a bar for each way to bring them."""
    settings = study.settings
    rows = 2 if len(settings) % 2 == 0 and len(settings) > 2 else 1
    lines = len(study.race(settings[0]))
    size = (5.6 * len(settings) / rows + 2, (0.27 * lines + 1.2) * rows + 0.6)
    shape = " x ".join(map(str, study.rows[0].shape))
    title = f"Samples a second from disk ({shape}, shuffled, batches of {study.rows[0].batch})"
    figure, axes = canvas.new_figure(title, [str(setting) for setting in settings], study, size, rows)
    for ax, setting in zip(axes, settings, strict=True):
        _draw(ax, list(study.race(setting).values()))
    figure.legend(handles=_legend(), loc="outside right center")
    return figure


def _draw(ax: Axes, rows: list[Row]) -> None:
    for y, row in enumerate(rows):
        ax.barh(y, row.samples_per_s, height=0.7, color=_colour(row))
        text = f"{plain_number(row.samples_per_s)} ({row.ratio:.1f}x smaller)"
        place = (row.samples_per_s, y)
        ax.annotate(text, place, xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set_yticks(range(len(rows)), [row.name for row in rows])
    ax.set_xscale("log")
    canvas.plain_log(ax.xaxis)
    ax.xaxis.set_major_locator(LogLocator())
    ax.set_xlim(min(row.samples_per_s for row in rows) / 2, max(row.samples_per_s for row in rows) * 12)
    ax.set_xlabel("samples/s")
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)


def _colour(row: Row) -> str:
    if not row.is_ours:
        return PEER
    return UNDECODED if row.deliver == COMPRESSED else OURS


def _legend() -> list[Patch]:
    labels = {"packed, decoded": OURS, "packed, delivered compressed": UNDECODED, "peers": PEER}
    return [Patch(color=colour, label=label) for label, colour in labels.items()]
