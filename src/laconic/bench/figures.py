"""The figures of lines, after the paper's, and the list of all figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from laconic.bench import bars, canvas
from laconic.bench.study import Row, Study

DIRECTIONS = ("encode", "decode")
PEERS = ("dense", "copy_")
SPEED = "GB/s of the uncompressed tensor"

Place = Callable[[Row], int | None]
"""Where a row stands on the x axis; None where it holds for all of it."""


def resolution(study: Study) -> Figure:
    return _sweep(study, "resolution", "Throughput against resolution", "image side (pixels)", lambda r: r.shape[-1])


def batch(study: Study) -> Figure:
    label = "images of 3 x 64 x 64 in one call"
    return _sweep(study, "batch", "Throughput against batch size", label, lambda r: r.shape[0])


def portable(study: Study) -> Figure:
    title, label = "Portable modules: how much one matrix should cover", "pixels that one matrix covers"
    return _sweep(study, "portable", title, label, lambda r: r.parameters.get("span"))


def _sweep(study: Study, section: str, title: str, label: str, place: Place) -> Figure:
    """GB/s of every chop along x, beside the dense products and a plain copy."""
    rows = study.section(section)
    ours = [row for row in rows if row.name not in (*PEERS, "reference")]
    xs = list(dict.fromkeys(x for row in ours if (x := place(row)) is not None))
    figure, axes = canvas.new_figure(title, DIRECTIONS, study, (9, 4.2))
    for ax, what in zip(axes, DIRECTIONS, strict=True):
        _draw_peers(ax, [row for row in rows if row.name in PEERS and row.what in (what, "copy")], xs, place)
        for chop in sorted({row.parameters["chop"] for row in ours}):
            line = [row for row in ours if row.what == what and row.parameters["chop"] == chop]
            speeds = [row.gb_per_s for row in line]
            ax.plot(xs, speeds, "o-", ms=4, color=canvas.chop_colour(chop), label=f"chop={chop}")
        canvas.plain_ticks(ax, xs)
        ax.set_yscale("log")
        canvas.plain_log(ax.yaxis)
        ax.set_xlabel(label)
    canvas.share_y(axes)
    axes[0].set_ylabel(SPEED)
    canvas.legend_beside(figure, axes[0])
    return figure


def _draw_peers(ax: Axes, peers: Sequence[Row], xs: Sequence[int], place: Place) -> None:
    """Both ran in the races of all chops: a line for the copy, a band for the dense products of all chops."""

    def speeds(name: str) -> list[list[float]]:
        return [[row.gb_per_s for row in peers if row.name == name and place(row) in (x, None)] for x in xs]

    ax.plot(xs, [median(found) for found in speeds("copy_")], "--", color="black", label="copy_")
    lows, highs = ([best(found) for found in speeds("dense")] for best in (min, max))
    ax.fill_between(xs, lows, highs, color=canvas.PEER, alpha=0.3, lw=1, hatch="//", label="dense products,\nall chops")


def serial(study: Study) -> Figure:
    title = "Serialised tiles: smaller matrices, one tile after another"
    return _by_chop(study, "serial", title, "milliseconds", lambda row: row.seconds * 1e3)


def transfer(study: Study) -> Figure:
    return _by_chop(study, "transfer", "Between host and device, codec included", SPEED, lambda row: row.gb_per_s)


def _by_chop(study: Study, section: str, title: str, label: str, value: Callable[[Row], float]) -> Figure:
    rows = study.section(section)
    figure, axes = canvas.new_figure(f"{title} ({_shape(rows[0])})", DIRECTIONS, study, (9, 4))
    for ax, what in zip(axes, DIRECTIONS, strict=True):
        _draw_names(ax, [row for row in rows if row.what == what], value)
        ax.set_ylim(bottom=0)
    canvas.share_y(axes)
    axes[0].set_ylabel(label)
    canvas.legend_beside(figure, axes[0])
    return figure


def triangle(study: Study) -> Figure:
    """Time in both directions, and what it buys."""
    rows = study.section("triangle")
    title = f"Triangle against square ({_shape(rows[0])})"
    figure, axes = canvas.new_figure(title, (*DIRECTIONS, "compression ratio"), study, (10.5, 3.8))
    for ax, what in zip(axes, DIRECTIONS, strict=False):
        _draw_names(ax, [row for row in rows if row.what == what], lambda row: row.seconds * 1e6)
        ax.set_ylim(bottom=0)
    canvas.share_y(axes[:2])
    _draw_names(axes[2], [row for row in rows if row.what == "encode"], lambda row: row.ratio)
    axes[2].set_yscale("log", base=2)
    canvas.plain_log(axes[2].yaxis, base=2)
    axes[0].set_ylabel("microseconds")
    axes[2].set_ylabel("times smaller, every byte counted")
    canvas.legend_beside(figure, axes[0])
    return figure


def _draw_names(ax: Axes, rows: Sequence[Row], value: Callable[[Row], float]) -> None:
    """One line for each contender, along chop."""
    for i, name in enumerate(dict.fromkeys(row.name for row in rows)):
        line = [row for row in rows if row.name == name]
        chops, values = [row.parameters["chop"] for row in line], [value(row) for row in line]
        ax.plot(chops, values, canvas.MARKERS[i] + "-", ms=5, color=canvas.SERIES[i], label=_label(line))
    ax.set_xticks(sorted({row.parameters["chop"] for row in rows}))
    ax.set_xlabel("chop")


def _label(line: Sequence[Row]) -> str:
    largest = max(row.parameters.get("matrix_bytes", 0) for row in line)
    return line[0].name + (f"\n(matrices to {largest // 1024:,} KiB)" if largest else "")


def _shape(row: Row) -> str:
    return " x ".join(map(str, row.shape))


FIGURES: dict[str, Callable[[Study], Figure]] = {
    "floors": bars.floors,
    "resolution": resolution,
    "batch": batch,
    "serial": serial,
    "triangle": triangle,
    "portable": portable,
    "training": bars.training,
    "transfer": transfer,
}
