"""The figures of a rate study: who is on the front, and what each ratio costs in quality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from laconic.bench import bars, canvas
from laconic.bench.rate import labels
from laconic.bench.rate.front import competes
from laconic.bench.rate.study import RateStudy, Row

OURS, PEER = canvas.SERIES[0], canvas.SERIES[1]
PANELS = (1e-2, 1e-3, 1e-4)
"""The bounds that a figure of the front shows, where they were measured."""
DIRECTIONS = ("encode", "decode")


def figures(study: RateStudy) -> dict[str, Callable[[RateStudy], Figure]]:
    """What there is to draw, by the name of its file."""
    names = list(dict.fromkeys(data for data, _ in study.cells()))
    found: dict[str, Callable[[RateStudy], Figure]] = {}
    if study.verdicts:
        found["rate-floors"] = bars.floors
    for name in names:
        found[f"rate-front-{_file_name(name)}"] = partial(front, name)
    found["rate-distortion"] = distortion
    return found


def front(data: str, study: RateStudy) -> Figure:
    """Ratio against speed, one thread: a column for each bound, a row for each direction."""
    measured = [bound for name, bound in study.cells() if name == data]
    bounds = [bound for bound in measured if bound in PANELS] or measured[:3]
    titles = [f"{what}, rel={bound:g}" for what in DIRECTIONS for bound in bounds]
    shape = " x ".join(map(str, next(row.shape for row in study.rows if row.data == data)))
    size = (max(4.4 * len(bounds), 9), 7.6)
    figure, axes = canvas.new_figure(f"{data} ({shape}), one thread", titles, study, size, 2)
    panels = [(what, bound) for what in DIRECTIONS for bound in bounds]
    for ax, (what, bound) in zip(axes, panels, strict=True):
        _draw_points(ax, study.cell(data, bound, 1), what)
    axes[0].set_ylabel("encode, GB/s of the uncompressed tensor")
    axes[len(bounds)].set_ylabel("decode, GB/s of the uncompressed tensor")
    for ax in axes[len(bounds) :]:
        ax.set_xlabel("times smaller, every byte counted")
    figure.legend(handles=_front_legend(), loc="outside upper right", ncols=3)
    figure.draw_without_rendering()
    for ax, (what, bound) in zip(axes, panels, strict=True):
        labels.place(ax, [_label(row, what) for row in study.cell(data, bound, 1)])
    return figure


def _draw_points(ax: Axes, rows: Sequence[Row], what: str) -> None:
    ahead = _two_dimensional_front(rows, what)
    xs, ys = [row.ratio for row in ahead], [_speed(row, what) for row in ahead]
    ax.step(xs, ys, where="pre", color="black", lw=1, alpha=0.5, zorder=1)
    for row in rows:
        colour, marker = (OURS, "o") if row.is_ours else (PEER, "s")
        filled = colour if competes(row) else "none"
        ax.plot(row.ratio, _speed(row, what), marker, ms=5.5, mec=colour, mfc=filled, zorder=2)
    ax.set_xscale("log")
    ax.set_yscale("log")
    canvas.plain_log(ax.xaxis)
    canvas.plain_log(ax.yaxis)
    ax.margins(x=0.14, y=0.12)


def _two_dimensional_front(rows: Sequence[Row], what: str) -> list[Row]:
    """From small ratios to large, each slower than the one before."""
    ahead: list[Row] = []
    for row in sorted(filter(competes, rows), key=lambda row: (-row.ratio, -_speed(row, what))):
        if not ahead or _speed(row, what) > _speed(ahead[-1], what):
            ahead.append(row)
    return ahead[::-1]


def _label(row: Row, what: str) -> labels.Label:
    colour = OURS if row.is_ours else PEER
    return labels.Label(row.name.removeprefix("bound|"), row.ratio, _speed(row, what), colour, row.is_ours)


def _front_legend() -> list[Line2D]:
    return [
        Line2D([], [], color=OURS, marker="o", ls="", label="laconic, after bound"),
        Line2D([], [], color=PEER, marker="s", ls="", label="peers"),
        Line2D([], [], color="black", alpha=0.5, lw=1, label="front"),
    ]


def _speed(row: Row, what: str) -> float:
    return row.encode_gb_per_s if what == "encode" else row.decode_gb_per_s


def distortion(study: RateStudy) -> Figure:
    """Ratio against PSNR: a panel for each data set, a line for each codec through its bounds."""
    names = list(dict.fromkeys(data for data, _ in study.cells()))
    size = (max(4.6 * len(names) + 2.2, 9), 5.2)
    figure, axes = canvas.new_figure("What each ratio costs in quality", names, study, size)
    styles = _styles(study)
    for ax, data in zip(axes, names, strict=True):
        for name, style in styles.items():
            _draw_line(ax, [row for row in study.rows if (row.data, row.name) == (data, name)], style)
        ax.set_yscale("log")
        canvas.plain_log(ax.yaxis)
        ax.set_xlabel("PSNR (dB)")
    axes[0].set_ylabel("times smaller, every byte counted")
    handles = [Line2D([], [], label=name, **style) for name, style in styles.items()]
    figure.legend(handles=handles, loc="outside right center")
    return figure


def _draw_line(ax: Axes, rows: Sequence[Row], style: dict[str, Any]) -> None:
    points = sorted({(row.psnr, row.ratio) for row in rows if row.psnr is not None})
    if points:
        ax.plot(*zip(*points, strict=True), **style)


def _styles(study: RateStudy) -> dict[str, dict[str, Any]]:
    """Ours in colours, peers in greys; of all that lose something."""
    lossy = [row for row in study.rows if row.psnr is not None]
    ours = list(dict.fromkeys(row.name for row in lossy if row.is_ours))
    peers = list(dict.fromkeys(row.name for row in lossy if not row.is_ours))
    found: dict[str, dict[str, Any]] = {}
    for i, name in enumerate(ours):
        colour, marker = canvas.SERIES[i % len(canvas.SERIES)], canvas.MARKERS[i % len(canvas.MARKERS)]
        found[name] = {"color": colour, "marker": marker, "ms": 4, "lw": 1.5}
    for i, name in enumerate(peers):
        marker = "x+1234*hp"[i % 9]
        found[name] = {"color": canvas.PEER, "marker": marker, "ms": 5, "lw": 0.8, "ls": "--", "alpha": 0.8}
    return found


def _file_name(data: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in data.lower())
