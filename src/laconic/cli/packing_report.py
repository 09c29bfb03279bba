"""What `laconic compress` reports: one row for each tensor, one for each rule, and the file as a whole."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from laconic.checkpoint import Rules
from laconic.cli.console import size

NO_RULE = "no rule"


@dataclass(frozen=True)
class Row:
    """What became of one tensor. `kept` says why it stayed as it was."""

    tensor: str
    shape: list[int]
    dtype: str
    before: int
    after: int
    psnr: float
    max_error: float
    rule: str | None = None
    kept: str | None = None

    @property
    def ratio(self) -> float:
        return self.before / max(self.after, 1)


@dataclass(frozen=True)
class RuleRow:
    """What a rule did: of so many tensors that it named, some were compressed. `worst` has the largest error."""

    rule: str
    tensors: int
    compressed: int
    before: int
    after: int
    max_error: float
    worst: str | None

    @classmethod
    def of(cls, rule: str, rows: Sequence[Row]) -> RuleRow:
        changed = [row for row in rows if row.kept is None]
        worst = max(changed, key=lambda row: math.inf if math.isnan(row.max_error) else row.max_error, default=None)
        sizes = sum(row.before for row in rows), sum(row.after for row in rows)
        error = (worst.max_error, worst.tensor) if worst else (0.0, None)
        return cls(rule, len(rows), len(changed), *sizes, *error)

    @property
    def ratio(self) -> float:
        return self.before / max(self.after, 1)


@dataclass(frozen=True)
class Report:
    """What became of a file. `before` counts the tensors in memory, `after` every byte of the file written."""

    codec: str | None
    input_bytes: int
    before: int
    after: int
    rules: list[RuleRow]
    rows: list[Row]

    @classmethod
    def of(cls, codec: str | None, rules: Rules, input_bytes: int, after: int, rows: list[Row]) -> Report:
        names = dict.fromkeys(map(str, rules.rules))
        by_rule = {name: [row for row in rows if row.rule == name] for name in names}
        unnamed = [row for row in rows if row.rule is None]
        by_rule |= {NO_RULE: unnamed} if unnamed else {}
        ruled = [RuleRow.of(name, mine) for name, mine in by_rule.items()]
        return cls(codec, input_bytes, sum(row.before for row in rows), after, ruled, rows)

    def as_dict(self) -> dict[str, Any]:
        totals = {"input_bytes": self.input_bytes, "before": self.before, "after": self.after}
        rules, rows = (
            [{**dataclasses.asdict(r), "ratio": r.ratio} for r in found] for found in (self.rules, self.rows)
        )
        return {"codec": self.codec, **totals, "ratio": self.before / self.after, "rules": rules, "tensors": rows}

    def lines(self) -> list[Table | str]:
        """The tables, then what they do not say."""
        kept = [f"[dim]kept as it was: {escape(row.tensor)}: {escape(row.kept)}[/]" for row in self.rows if row.kept]
        summary = (
            f"{size(self.before)} of tensors ({size(self.input_bytes)} as a file) -> {size(self.after)} on disk, "
            f"headers and all: [bold]{self.before / self.after:.2f}x[/]"
        )
        return [self._table(), *kept, *([self._rule_table()] if len(self.rows) > 1 else []), summary]

    def _table(self) -> Table:
        table = Table(title=escape(self.codec or ""), title_justify="left")
        table.add_column("tensor", overflow="fold")
        for column in ("shape", "dtype", "before", "after", "ratio", "PSNR, dB", "max error"):
            table.add_column(column, justify="left" if column in ("shape", "dtype") else "right")
        for row in self.rows:
            quality = ("kept", "0") if row.kept else (f"{row.psnr:.2f}", f"{row.max_error:.3g}")
            sizes = (size(row.before), size(row.after), f"{row.ratio:.2f}x")
            table.add_row(escape(row.tensor), str(row.shape), row.dtype, *sizes, *quality)
        return table

    def _rule_table(self) -> Table:
        table = Table()
        table.add_column("rule", overflow="fold")
        for column in ("tensors", "compressed", "before", "after", "ratio", "worst error"):
            table.add_column(column, justify="right")
        table.add_column("in", overflow="fold")
        for row in self.rules:
            sizes = (size(row.before), size(row.after), f"{row.ratio:.2f}x")
            error = (f"{row.max_error:.3g}", escape(row.worst)) if row.worst else ("", "")
            table.add_row(escape(row.rule), str(row.tensors), str(row.compressed), *sizes, *error)
        return table
