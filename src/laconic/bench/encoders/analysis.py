"""Which tables bear a looser bound, and which need a tighter one: found from dumps, before training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.markup import escape
from rich.table import Table

from laconic import schedule_files
from laconic.bench import machine
from laconic.bench.encoders.data import Dump, distinct_rows, entropy, quantised
from laconic.bench.machine import Machine
from laconic.bench.tables import plain_number, plain_table
from laconic.errors import SpecError
from laconic.schedule import TableBounds, TableClass


@dataclass(frozen=True)
class Rule:
    """When a table is not of the class `base`. Shares are of its distinct rows.

    tighten: the base bound merges more than `merged` of them, or is wider than `smooth` standard deviations
    loosen:  even the loose bound merges at most `kept` of them, and is no wider than `smooth` standard deviations
    """

    merged: float = 0.1
    kept: float = 0.01
    smooth: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.kept <= self.merged <= 1 and self.smooth > 0):
            raise SpecError(
                "expected 0 <= kept <= merged <= 1, and smooth above 0, got "
                f"kept={self.kept:g}, merged={self.merged:g} and smooth={self.smooth:g}"
            )


@dataclass(frozen=True)
class Facts:
    """One table, over all of its dumps."""

    table: str
    dumps: int
    rows: int
    unique: int
    """Distinct rows, counted in each dump."""
    unique_at: dict[float, int]
    """Those left at each bound, relative to each dump's max - min."""
    entropy: float
    """Of the codes at the base bound, of order 0, in bits."""
    sigma_over_range: float | None
    """None where all values are one."""

    def merged(self, bound: float) -> float:
        """The share of distinct rows that the bound makes equal to others."""
        return 1 - self.unique_at[bound] / self.unique

    def class_by(self, rule: Rule, base: float, loosen: float) -> TableClass:
        if self.sigma_over_range is None:
            return "base"
        widest = rule.smooth * self.sigma_over_range
        if self.merged(base) > rule.merged or base > widest:
            return "tighten"
        return "loosen" if self.merged(loosen) <= rule.kept and loosen <= widest else "base"


@dataclass(frozen=True)
class Analysis:
    """What was found, and the bounds that follow from it."""

    command: str
    rule: Rule
    facts: tuple[Facts, ...]
    bounds: TableBounds
    machine: Machine = field(default_factory=machine.describe)

    def to_json(self) -> dict[str, Any]:
        """A class file, with what it was made from."""
        tables = [asdict(one) | {"unique_at": {f"{k:g}": v for k, v in one.unique_at.items()}} for one in self.facts]
        made_from = {"command": self.command, "machine": self.machine, "rule": asdict(self.rule), "tables": tables}
        return schedule_files.to_json(self.bounds) | {"analysis": made_from}

    def table(self) -> Table:
        found = plain_table("Classes of tables", self._caption())
        found.add_column("table")
        bounds = list(self.facts[0].unique_at)
        columns = ("rows", "unique", *(f"unique at\n{bound:g}" for bound in bounds), "entropy", "sigma\n/ range")
        for column in columns:
            found.add_column(column, justify="right")
        found.add_column("class")
        for one in self.facts:
            counts = (one.unique, *one.unique_at.values())
            sigma = "" if one.sigma_over_range is None else plain_number(one.sigma_over_range)
            shares = [f"{count / one.rows:.1%}" for count in counts]
            name = self.bounds.class_of(one.table)
            found.add_row(escape(one.table), str(one.rows), *shares, f"{one.entropy:.2f}", sigma, name)
        return found

    def _caption(self) -> str:
        b, rule = self.bounds, self.rule
        return (
            "Unique rows as a share of all; entropy in bits a code at the base bound\n"
            f"tighten to {b.tighten:g} where {b.base:g} merges more than {rule.merged:.0%} of the distinct rows, "
            f"or is above {rule.smooth:g} sigma\n"
            f"loosen to {b.loosen:g} where that merges at most {rule.kept:.0%} of them, "
            f"and is not above {rule.smooth:g} sigma\n"
            f"{machine.summary(self.machine)}\n{self.command}"
        )


def analyze(
    dumps: Sequence[Dump],
    bounds: TableBounds,
    columns: Sequence[float],
    rule: Rule,
    command: str,
    begin: Callable[[str], None],
) -> Analysis:
    """Finds the class of every table; `bounds` has the bound of each class, and no tables yet."""
    base, tighten, loosen = bounds.base, bounds.tighten or bounds.base, bounds.loosen or bounds.base
    at = sorted({*columns, tighten, base, loosen})
    found = []
    for table in dict.fromkeys(dump.table for dump in dumps):
        begin(table)
        found.append(_facts(table, [dump for dump in dumps if dump.table == table], at, base))
    classes: dict[str | int, TableClass] = {one.table: one.class_by(rule, base, loosen) for one in found}
    filled = TableBounds(base, tighten, loosen, classes, bounds.schedule)
    return Analysis(command, rule, tuple(found), filled)


def _facts(table: str, dumps: Sequence[Dump], at: Sequence[float], base: float) -> Facts:
    codes = {bound: [p.main for p in quantised([d.x for d in dumps], f"bound:rel={bound!r}")] for bound in at}
    spreads = [spread for dump in dumps if (spread := _spread(dump)) is not None]
    return Facts(
        table=table,
        dumps=len(dumps),
        rows=sum(len(dump.x) for dump in dumps),
        unique=sum(distinct_rows(dump.x) for dump in dumps),
        unique_at={bound: sum(map(distinct_rows, found)) for bound, found in codes.items()},
        entropy=entropy(codes[base]),
        sigma_over_range=sum(spreads) / len(spreads) if spreads else None,
    )


def _spread(dump: Dump) -> float | None:
    """The standard deviation of the finite values over max - min."""
    finite = dump.x[dump.x.isfinite()].double()
    span = float(finite.max() - finite.min()) if finite.numel() else 0.0
    return float(finite.std(correction=0)) / span if span > 0 else None
