"""What was calibrated, and what `auto` made of it, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from laconic.bench import machine
from laconic.bench.costs.study import AutoStudy
from laconic.bench.tables import plain_number, plain_table, verdict_table
from laconic.encoders.costs import CostModel

NOTE = (
    "Milliseconds to encode, send and decode; modelled and measured: the encoder alone, auto and best: all of the chain"
)


def model_table(model: CostModel) -> Table:
    """Each encoder, at one of the sizes."""
    size = len(model.sizes) // 2
    caption = (
        f"{model.sizes[size]:,} bytes of codes, in GB/s of them\n{machine.summary(model.machine)}\n{model.command}"
    )
    table = plain_table("What encoders cost here", caption)
    for column in ("encoder", "code", "threads", "data", "ratio", "encode", "decode"):
        table.add_column(column, justify="left" if column in ("encoder", "data") else "right")
    for row in sorted(model.rows, key=lambda row: (row.encoder, row.itemsize, row.threads, row.what, row.ratios)):
        speeds = [model.sizes[size] / seconds[size] / 1e9 for seconds in (row.encode, row.decode)]
        cells = [f"{8 * row.itemsize} bits", str(row.threads), row.what, f"{row.ratios[size]:.3f}"]
        table.add_row(row.encoder, *cells, *map(plain_number, speeds))
    return table


def tables(study: AutoStudy) -> Iterator[Table]:
    """The verdicts, then all that they are taken from."""
    caption = f"{machine.summary(study.machine)}\n{study.command}"
    yield verdict_table(study.verdicts, caption)
    table = plain_table("auto:prefer=link", f"{NOTE}\n{caption}")
    for column in ("data", "codes", "threads", "GB/s", "chosen", "best"):
        table.add_column(column)
    for column in ("modelled", "measured", "apart", "auto", "best", "behind"):
        table.add_column(column, justify="right")
    for row in study.rows:
        times = [row.modelled, row.measured, row.auto, row.singles[row.best]]
        modelled, measured, auto, best = (plain_number(1e3 * seconds) for seconds in times)
        table.add_row(
            *(f"{row.data} ({row.before})", f"{row.codes_bytes:,}", str(row.threads), f"{row.gb_per_s:g}"),
            *(row.chosen, row.best, modelled, measured, f"{row.model_off:.2f}", auto, best, f"{row.behind_best:.3f}"),
        )
    yield table
