"""What `laconic compress` does, and what it reports: one row for each tensor, and the file as a whole."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.markup import escape
from rich.table import Table
from torch import Tensor

import laconic
from laconic import metrics
from laconic.cli import formats
from laconic.cli.console import progress, size
from laconic.errors import DataError, SpecError


@dataclass(frozen=True)
class Row:
    """What became of one tensor. `kept` says why the codec did not take it."""

    tensor: str
    shape: list[int]
    dtype: str
    before: int
    after: int
    psnr: float
    max_error: float
    kept: str | None = None


@dataclass(frozen=True)
class Report:
    """What became of a file. `before` counts the tensors in memory, `after` every byte of the file written."""

    codec: str
    input_bytes: int
    before: int
    after: int
    rows: list[Row]

    def as_dict(self) -> dict[str, Any]:
        rows = [{**dataclasses.asdict(row), "ratio": row.before / max(row.after, 1)} for row in self.rows]
        totals = {"input_bytes": self.input_bytes, "before": self.before, "after": self.after}
        return {"codec": self.codec, **totals, "ratio": self.before / self.after, "tensors": rows}

    def lines(self) -> list[Table | str]:
        """The table, then what it does not say."""
        kept = [f"[dim]kept as it was: {escape(row.tensor)}: {escape(row.kept)}[/]" for row in self.rows if row.kept]
        summary = (
            f"{size(self.before)} of tensors ({size(self.input_bytes)} as a file) -> {size(self.after)} on disk, "
            f"headers and all: [bold]{self.before / self.after:.2f}x[/]"
        )
        return [self._table(), *kept, summary]

    def _table(self) -> Table:
        table = Table(title=escape(self.codec), title_justify="left")
        table.add_column("tensor", overflow="fold")
        for column in ("shape", "dtype", "before", "after", "ratio", "PSNR, dB", "max error"):
            table.add_column(column, justify="left" if column in ("shape", "dtype") else "right")
        for row in self.rows:
            quality = ("kept", "0") if row.kept else (f"{row.psnr:.2f}", f"{row.max_error:.3g}")
            ratio = f"{row.before / max(row.after, 1):.2f}x"
            sizes = (size(row.before), size(row.after), ratio)
            table.add_row(escape(row.tensor), str(row.shape), row.dtype, *sizes, *quality)
        return table


def compress_file(source: Path, target: Path, spec: str) -> Report:
    """Writes the compressed file. One tensor that does not fit is an error; among many, it is kept."""
    codec = laconic.codec(spec)
    formats.check_output(target, source, any_suffix=True)
    found = formats.read(source)
    named = found if isinstance(found, dict) else {formats.SINGLE: found}
    stored: dict[str, laconic.Encoded | Tensor] = {}
    rows = []
    with progress(len(named)) as begin:
        for name, tensor in named.items():
            begin(name)
            stored[name], row = _compress(name, tensor, codec, may_keep=isinstance(found, dict))
            rows.append(row)
    only = stored[formats.SINGLE] if isinstance(found, Tensor) else None
    laconic.save(target, only if isinstance(only, laconic.Encoded) else stored)
    before = sum(row.before for row in rows)
    return Report(str(codec), source.stat().st_size, before, target.stat().st_size, rows)


def _compress(name: str, x: Tensor, codec: laconic.Codec, *, may_keep: bool) -> tuple[laconic.Encoded | Tensor, Row]:
    shape, dtype = list(x.shape), str(x.dtype).removeprefix("torch.")
    try:
        enc = codec.encode(x)
    except (SpecError, DataError) as error:
        if not may_keep:
            raise
        return x, Row(name, shape, dtype, x.nbytes, x.nbytes, float("inf"), 0.0, str(error))
    restored = laconic.decode(enc)
    after = sum(part.nbytes for part in enc.parts.values())
    return enc, Row(name, shape, dtype, x.nbytes, after, *_quality(x, restored))


def _quality(x: Tensor, restored: Tensor) -> tuple[float, float]:
    """PSNR and the largest error. What came back as it was needs no measuring, and may have no values at all."""
    if torch.equal(x, restored):
        return float("inf"), 0.0
    return metrics.psnr(x, restored), metrics.max_error(x, restored)
