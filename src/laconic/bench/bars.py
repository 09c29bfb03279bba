"""The figures of bars: floors, and training beside the codec."""

from __future__ import annotations

from typing import Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from laconic.bench import canvas
from laconic.bench.study import Row, Study, Verdict, by_race
from laconic.bench.tables import plain_number


class Judged(canvas.Measured, Protocol):
    """A study with verdicts, of any kind."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]: ...


def floors(study: Judged) -> Figure:
    """Every verdict as a multiple of its floor, so that one axis serves all: right of 1 is met."""
    height = 1.6 + 0.21 * len(study.verdicts)
    figure, (ax,) = canvas.new_figure("Speed floors", ["measured, as a multiple of the floor"], study, (10.5, height))
    for y, verdict in enumerate(study.verdicts):
        _draw_verdict(ax, y, verdict)
    ax.axvline(1, color="black", lw=1.5)
    ax.set_xscale("log")
    canvas.plain_log(ax.xaxis)
    ax.set_yticks(range(len(study.verdicts)), [verdict.name for verdict in study.verdicts])
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.margins(y=0.01)
    figure.legend(handles=_legend(), loc="outside upper right", ncols=4)
    return figure


def _draw_verdict(ax: Axes, y: int, verdict: Verdict) -> None:
    def multiple(value: float) -> float:
        return value / verdict.floor if verdict.at_least else verdict.floor / value

    met = verdict.met
    end = multiple(verdict.measured)
    ax.barh(y, end - 1, left=1, height=0.7, color=canvas.GOOD if met else canvas.BAD, hatch=None if met else "///")
    if verdict.aim is not None:
        ax.plot(multiple(verdict.aim), y, "|", color="black", ms=11, mew=2)
    sign = "\u2265" if verdict.at_least else "\u2264"
    text = f"{plain_number(verdict.measured)}{verdict.unit} (floor {sign} {verdict.floor:g})"
    ax.text(1.01, y, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8)


def _legend() -> list[Patch | Line2D]:
    return [
        Patch(color=canvas.GOOD, label="met"),
        Patch(facecolor=canvas.BAD, hatch="///", label="missed"),
        Line2D([], [], color="black", lw=1.5, label="floor"),
        Line2D([], [], color="black", marker="|", ls="", ms=11, mew=2, label="aim"),
    ]


def training(study: Study) -> Figure:
    """Samples a second: a codec far to the right of the training step is hidden behind it."""
    races = by_race(study.section("training"))
    figure, axes = canvas.new_figure("Training and the codec", list(races), study, (5.2 * len(races) + 1, 3.4))
    for ax, race in zip(axes, races.values(), strict=True):
        _draw_rates(ax, list(race.values()))
    return figure


def _draw_rates(ax: Axes, rows: list[Row]) -> None:
    step = next(row for row in rows if row.what == "train")
    colours = {"train": canvas.PEER, "encode": canvas.SERIES[0], "decode": canvas.SERIES[4]}
    for y, row in enumerate(rows):
        ax.barh(y, row.samples_per_s, height=0.7, color=colours[row.what])
        share = "" if row is step else f" ({step.samples_per_s / row.samples_per_s:.2%} of a step)"
        text = plain_number(row.samples_per_s) + share
        ax.annotate(text, (row.samples_per_s, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set_yticks(range(len(rows)), [f"{row.name}, {row.what}" for row in rows])
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.10g}")
    ax.set_xlim(right=max(row.samples_per_s for row in rows) * 60)
    ax.set_xlabel("samples/s")
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
