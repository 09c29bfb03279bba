"""A loader study as tables for people: the verdicts, then one table for each setting."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from laconic.bench import machine
from laconic.bench.loader.datasets import DECODED, RAW, RAW_BATCHED
from laconic.bench.loader.plan import Setting
from laconic.bench.loader.study import LoaderStudy, Row
from laconic.bench.tables import plain_number, plain_table, verdict_table


def tables(study: LoaderStudy) -> Iterator[Table]:
    caption = f"{machine.summary(study.machine)}\ncold: {study.cold_by}\n{study.command}"
    if study.verdicts:
        yield verdict_table(study.verdicts, caption)
    for setting in study.settings:
        yield _race_table(study, setting, caption)


def _race_table(study: LoaderStudy, setting: Setting, caption: str) -> Table:
    race = study.race(setting)
    first = next(iter(race.values()))
    shape = " x ".join(map(str, first.shape))
    table = plain_table(f"{setting}: {first.samples:,} samples of {shape}, batches of {first.batch}", caption)
    table.add_column("", no_wrap=True)
    table.add_column("delivers")
    columns = ("samples/s", "over raw", "over raw,\nbatched", "times\nsmaller", "MB read\nfrom disk", "PSNR")
    for column in columns:
        table.add_column(column, justify="right")
    for row in race.values():
        over = [plain_number(row.samples_per_s / race[peer, DECODED].samples_per_s) for peer in (RAW, RAW_BATCHED)]
        cells = [plain_number(row.samples_per_s), *over, plain_number(row.ratio), _disk(row), _psnr(row)]
        table.add_row(escape(row.name), row.deliver, *cells, style="bold" if row.is_ours else None)
    return table


def _disk(row: Row) -> str:
    return "" if row.disk_bytes is None else plain_number(row.disk_bytes / 1e6)


def _psnr(row: Row) -> str:
    return "lossless" if row.psnr is None else f"{row.psnr:.1f}"
