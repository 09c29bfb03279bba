"""A study as tables for people: one line for each race and direction, one column for each contender."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.table import Table

from laconic.bench import machine
from laconic.bench.study import Row, Study, Verdict, by_race


class Section(NamedTuple):
    title: str
    unit: str


SECTIONS = {
    "floors": Section("What the floors are taken from", "ms"),
    "resolution": Section("Throughput against resolution", "GB/s"),
    "batch": Section("Throughput against batch size", "GB/s"),
    "serial": Section("Serialised tiles, and the size of their matrices", "ms"),
    "triangle": Section("Triangle against square, and the compression ratio", "ms"),
    "portable": Section("Portable modules, by the span of their matrices", "GB/s"),
    "training": Section("Training and the codec", "samples/s"),
    "transfer": Section("Host and device, transfer included", "GB/s"),
}


def tables(study: Study) -> Iterator[Table]:
    """The verdicts, then every section that was measured."""
    caption = f"{machine.summary(study.machine)}\n{study.command}"
    if study.verdicts:
        yield verdict_table(study.verdicts, caption)
    for name, section in SECTIONS.items():
        rows = study.section(name)
        if rows:
            yield _section_table(section, rows, caption)


def verdict_table(verdicts: Sequence[Verdict], caption: str) -> Table:
    table = plain_table("Floors: ratios within one run", caption)
    table.add_column("what")
    for column in ("measured", "floor", "aim"):
        table.add_column(column, justify="right")
    table.add_column("floor is")
    table.add_column("aim is")
    for v in verdicts:
        sign = ">=" if v.at_least else "<="
        aim = "" if v.aim is None else f"{sign} {v.aim:g}{v.unit}"
        floor = f"{sign} {v.floor:g}{v.unit}"
        table.add_row(
            v.name,
            plain_number(v.measured) + v.unit,
            floor,
            aim,
            _met(v.met),
            "" if v.aim_met is None else _met(v.aim_met),
        )
    return table


def _met(met: bool) -> str:
    return "[green]met[/]" if met else "[red]missed[/]"


def _section_table(section: Section, rows: Sequence[Row], caption: str) -> Table:
    """A contender that goes no way, such as `copy_`, stands beside both."""
    table = plain_table(f"{section.title} [{section.unit}]".replace("[", r"\["), caption)
    table.add_column("tensor")
    table.add_column("")
    names = list(dict.fromkeys(row.name for row in rows))
    for name in names:
        table.add_column(name, justify="right")
    for title, race in by_race(rows).items():
        for what in ("encode", "decode"):
            rows_of = {name: row for (name, w), row in race.items() if w in (what, "copy", "train")}
            table.add_row(title, what, *(_cell(rows_of[n], section.unit) if n in rows_of else "" for n in names))
    return table


def _cell(row: Row, unit: str) -> str:
    values = {"GB/s": row.gb_per_s, "samples/s": row.samples_per_s, "ms": row.seconds * 1e3}
    notes = {"serial": f" ({row.parameters.get('matrix_bytes', 0) // 1024:,} KiB)", "triangle": f" ({row.ratio:.3g}x)"}
    return plain_number(values[unit]) + notes.get(row.section, "")


def plain_number(value: float) -> str:
    """Three digits or more, and no exponent.

    >>> plain_number(0.1234), plain_number(1234.5)
    ('0.123', '1,234')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def plain_table(title: str, caption: str) -> Table:
    return Table(title=title, caption=caption, caption_justify="left", title_justify="left")
