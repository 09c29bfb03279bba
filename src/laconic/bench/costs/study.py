"""What holding `auto` against single encoders wrote down: rows, verdicts, and where and how it ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from laconic.bench.machine import Machine
from laconic.bench.study import Saved, Verdict

KIND = "laconic bench auto"
VERSION = 1
LARGE = 4 << 20
"""Bytes of codes from which on a sample must not be felt."""
MODEL_OFF, BEHIND_BEST = 1.25, 1.05


@dataclass(frozen=True)
class Row:
    """One tensor over one link. Seconds are those to encode, send and decode."""

    data: str
    before: str
    shape: list[int]
    dtype: str
    codes_bytes: int
    threads: int
    gb_per_s: float
    """Of the link."""
    chosen: str
    best: str
    """The encoder that had the least time of all."""
    modelled: float
    measured: float
    """Of the chosen encoder alone, on the codes."""
    auto: float
    """Of the whole chain, with the sample and the choice."""
    singles: dict[str, float]
    """Of the whole chain with each encoder in place of `auto`."""
    encoded_bytes: dict[str, int]

    @property
    def model_off(self) -> float:
        """The larger of modelled and measured over the smaller."""
        return max(self.modelled / self.measured, self.measured / self.modelled)

    @property
    def behind_best(self) -> float:
        return self.auto / self.singles[self.best]

    @property
    def is_large(self) -> bool:
        return self.codes_bytes >= LARGE


@dataclass(frozen=True)
class AutoStudy(Saved):
    """A whole measurement."""

    command: str
    seed: int
    machine: Machine
    calibrated: dict[str, Any]
    """The machine of the cost model."""
    rows: tuple[Row, ...]

    @property
    def verdicts(self) -> list[Verdict]:
        return list(_verdicts(self.rows))

    def to_json(self) -> dict[str, Any]:
        verdicts = [asdict(v) | {"met": v.met} for v in self.verdicts]
        rows = [asdict(row) | {"model_off": row.model_off, "behind_best": row.behind_best} for row in self.rows]
        return {"kind": KIND, "version": VERSION} | asdict(self) | {"verdicts": verdicts, "rows": rows}


def _verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    """The worst of each link; small tensors apart, for which a sample is not free."""
    for link in sorted({row.gb_per_s for row in rows}):
        mine = [row for row in rows if row.gb_per_s == link]
        off = max(row.model_off for row in mine)
        yield Verdict(f"{link:g} GB/s: modelled and measured time apart", off, MODEL_OFF, None, False, "x")
        for what, some in (
            ("4 MiB of codes or more", [row for row in mine if row.is_large]),
            ("fewer codes", [row for row in mine if not row.is_large]),
        ):
            if some:
                worst = max(row.behind_best for row in some)
                name = f"{link:g} GB/s, {what}: auto over the best single encoder"
                yield Verdict(name, worst, BEHIND_BEST, None, False, "x")
