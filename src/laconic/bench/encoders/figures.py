"""The figures of an encoders study: where the time goes on each link, and how small each table gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from laconic.bench import bars, canvas
from laconic.bench.encoders.model import Mean, means, shares
from laconic.bench.encoders.study import EncodersStudy
from laconic.bench.tables import plain_number

Cut = tuple[int, int]
PARTS = {"encode": canvas.SERIES[0], "transfer": canvas.SERIES[5], "decode": canvas.SERIES[1]}
PALE = 0.45
HATCHES = {"encode": None, "transfer": "..", "decode": "///"}


def figures(study: EncodersStudy) -> dict[str, Callable[[EncodersStudy], Figure]]:
    """What there is to draw, by the name of its file."""
    found: dict[str, Callable[[EncodersStudy], Figure]] = {}
    if study.verdicts:
        found["encoders-floors"] = bars.floors
    for cut in study.cuts():
        name = f"{cut[0]}" + f"x{cut[1]}" * (cut[1] > 1)
        found[f"encoders-time-{name}"] = partial(time, cut)
        found[f"encoders-ratio-{name}"] = partial(ratio, cut)
    return found


def time(cut: Cut, study: EncodersStudy) -> Figure:
    """Stacked bars of encode, transfer and decode, a panel for each link; the fastest are at the top."""
    averages = means(study, cut)
    titles = [f"{link:g} GB/s" for link in study.links]
    size = (max(3.4 * len(titles) + 2.4, 9), 1.8 + 0.24 * len(averages))
    title = f"Time to get there, {_title(study, cut)}"
    figure, axes = canvas.new_figure(title, titles, study, size)
    for ax, link in zip(axes, study.links, strict=True):
        _stack(ax, sorted(averages, key=lambda mean: sum(shares(mean, link))), link)
    figure.legend(handles=_parts(), loc="outside right upper")
    return figure


def _stack(ax: Axes, averages: Sequence[Mean], link: float) -> None:
    """A peer that is slower than all of ours is cut, and says how long its bar is."""
    ours = [sum(shares(mean, link)) for mean in averages if mean.is_ours]
    widest = 1.1 * max([1.0, *ours]) if ours else sum(shares(averages[-1], link))
    for y, mean in enumerate(averages):
        left = 0.0
        for (name, colour), share in zip(PARTS.items(), shares(mean, link), strict=True):
            alpha = 1 if mean.is_ours else PALE
            width = max(min(share, widest - left), 0)
            ax.barh(y, width, left=left, height=0.72, color=colour, hatch=HATCHES[name], alpha=alpha, ec="white", lw=0)
            left += share
        text = plain_number(left) if left <= widest else f"{plain_number(left)} \u2192"
        at = min(left, widest)
        box = {"fc": "white", "ec": "none", "pad": 0.5}
        ax.annotate(text, (at, y), xytext=(3, 0), textcoords="offset points", va="center", fontsize=7, bbox=box)
    ax.axvline(1, color="black", lw=1.2)
    _name_rows(ax, averages)
    ax.set_xlim(0, widest * 1.2)
    ax.set_xlabel("time, that of sending the float32 as 1")
    ax.margins(y=0.01)
    ax.grid(axis="y", visible=False)


def _name_rows(ax: Axes, averages: Sequence[Mean]) -> None:
    """From the top; peers in grey."""
    ax.set_yticks(range(len(averages)), [mean.name for mean in averages], fontsize=7.5)
    for tick, mean in zip(ax.get_yticklabels(), averages, strict=True):
        tick.set_color("black" if mean.is_ours else canvas.PEER)
    ax.invert_yaxis()


def _parts() -> list[Patch | Line2D]:
    patches = [Patch(fc=colour, hatch=HATCHES[name], ec="white", label=name) for name, colour in PARTS.items()]
    peer = Patch(fc=PARTS["encode"], alpha=PALE, label="of a peer")
    return [*patches, peer, Line2D([], [], color="black", lw=1.2, label="the float32\nas they are")]


def ratio(cut: Cut, study: EncodersStudy) -> Figure:
    """How small each table gets: a line for each encoder, a mark for each table, a bar for the mean."""
    averages, cases = means(study, cut), study.cases_of(cut)
    size = (9.0, 1.9 + 0.24 * len(averages))
    figure, (ax,) = canvas.new_figure(f"Ratio by table, {_title(study, cut)}", [""], study, size)
    handles = []
    for i, case in enumerate(cases):
        by_name = {row.name: row.ratio for row in study.rows_of(case)}
        colour, marker = canvas.SERIES[i % 7], canvas.MARKERS[(i + i // 7) % 7]
        label = f"{case.dump} ({case.unique_after:.1%} unique)"
        xs = [by_name[mean.name] for mean in averages]
        handles += ax.plot(xs, range(len(averages)), marker, color=colour, ms=6, label=label)
    means_at = [mean.ratio for mean in averages]
    handles += ax.plot(means_at, range(len(averages)), "|", color="black", ms=11, mew=2, label="harmonic mean")
    ax.set_xscale("log")
    canvas.plain_log(ax.xaxis)
    _name_rows(ax, averages)
    ax.set_xlabel("times smaller, every byte counted")
    figure.legend(handles=handles, loc="outside right center")
    return figure


def _title(study: EncodersStudy, cut: Cut) -> str:
    rows, pad = cut
    cases = study.cases_of(cut)
    tables = f"{len(cases)} tables" if len(cases) > 1 else cases[0].dump
    padded = f", each repeated {pad} times (flatters dictionary coders)" if pad > 1 else ""
    return f"{tables}, {rows} rows at once{padded}"
