"""A rate study as tables for people: the verdicts, then one table for each data set and bound."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from laconic.bench import machine
from laconic.bench.rate.front import front
from laconic.bench.rate.study import RateStudy, Row
from laconic.bench.tables import plain_number, plain_table, verdict_table

NOTE = """Speeds in GB/s of the uncompressed tensor
* on the Pareto front of ratio and both speeds
! the bound is broken
"""


def tables(study: RateStudy) -> Iterator[Table]:
    caption = f"{machine.summary(study.machine)}\n{study.command}"
    if study.verdicts:
        yield verdict_table(study.verdicts, caption)
    for data, bound in study.cells():
        yield _cell_table(study, data, bound, caption)
    if study.refused:
        yield _refusals(study)


def _cell_table(study: RateStudy, data: str, bound: float, caption: str) -> Table:
    columns = {count: study.cell(data, bound, count) for count in study.threads}
    rows = columns[study.threads[0]]
    shape = " x ".join(map(str, rows[0].shape))
    table = plain_table(f"{data} ({shape}) at rel={bound:g}", NOTE + caption)
    table.add_column("")
    table.add_column("codec", no_wrap=True)
    for column in ("ratio", "PSNR", "SSIM", "error\n/ bound"):
        table.add_column(column, justify="right")
    ahead = {count: {row.name for row in front(found)} for count, found in columns.items()}
    for count in study.threads:
        for what in ("encode", "decode"):
            table.add_column(f"{what}\n{count} thread{'s' * (count > 1)}", justify="right")
    for row in sorted(rows, key=lambda row: -row.ratio):
        speeds = []
        for count, found in columns.items():
            speeds += _speeds(next(r for r in found if r.name == row.name), count)
        mark = "*" if row.name in ahead[study.threads[0]] else ""
        table.add_row(mark, escape(row.name), *_quality(row), *speeds, style="bold" if row.is_ours else None)
    return table


def _quality(row: Row) -> list[str]:
    error = f"{row.over_bound:.5f}!" if row.over_bound > 1 else f"{row.over_bound:.3f}"
    psnr = "lossless" if row.psnr is None else f"{row.psnr:.1f}"
    ssim = "" if row.ssim is None else f"{row.ssim:.4f}"
    return [f"{row.ratio:.2f}", psnr, ssim, error]


def _speeds(row: Row, threads: int) -> list[str]:
    """Nothing where it ran with fewer threads only."""
    speeds = [row.encode_gb_per_s, row.decode_gb_per_s]
    return [plain_number(speed) for speed in speeds] if row.threads == threads else ["", ""]


def _refusals(study: RateStudy) -> Table:
    table = plain_table("Not measured", "")
    for column in ("data", "bound", "peer", "why"):
        table.add_column(column)
    for refusal in study.refused:
        table.add_row(refusal.data, f"{refusal.bound:g}", refusal.name, escape(refusal.reason))
    return table
