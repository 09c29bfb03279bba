"""What a loader study wrote down: rows of numbers, verdicts, and where and how it ran."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from laconic.bench.loader.plan import Setting
from laconic.bench.machine import Machine
from laconic.bench.study import Saved, Verdict, only, read

KIND = "laconic bench loader"
VERSION = 1


@dataclass(frozen=True)
class Row:
    """One way of bringing all samples, shuffled, in one setting."""

    name: str
    deliver: str
    codec: str | None
    """None of peers."""
    cache: str
    workers: int
    samples: int
    batch: int
    shape: list[int]
    """Of one sample."""
    dtype: str
    seconds: float
    """Of one epoch."""
    q1: float
    q3: float
    rounds: int
    nbytes: int
    """Of all samples, uncompressed."""
    stored_bytes: int
    """Of all their files."""
    disk_bytes: int | None
    """What an epoch read from the disk itself; None where the system does not say."""
    psnr: float | None
    """dB, with max - min as peak; None where nothing was lost."""
    included: str

    @property
    def samples_per_s(self) -> float:
        return self.samples / self.seconds

    @property
    def ratio(self) -> float:
        """Everything in the files counts."""
        return self.nbytes / self.stored_bytes

    @property
    def is_ours(self) -> bool:
        return self.codec is not None

    @property
    def setting(self) -> Setting:
        return Setting(self.cache, self.workers)


@dataclass(frozen=True)
class LoaderStudy(Saved):
    """A whole measurement."""

    command: str
    seed: int
    machine: Machine
    cold_by: str
    """How samples were made to come from the disk."""
    verdicts: tuple[Verdict, ...]
    rows: tuple[Row, ...]
    packing: dict[str, float] | None = None
    """Bytes of a source a second: reading it, packing it alone, and with helpers. See laconic.bench.packing."""

    @property
    def settings(self) -> list[Setting]:
        return list(dict.fromkeys(row.setting for row in self.rows))

    def race(self, setting: Setting) -> dict[tuple[str, str], Row]:
        """Who ran in it, by name and delivery."""
        return {(row.name, row.deliver): row for row in self.rows if row.setting == setting}

    def to_json(self) -> dict[str, Any]:
        verdicts = [asdict(v) | {"met": v.met, "aim_met": v.aim_met} for v in self.verdicts]
        rows = [asdict(row) | {"samples_per_s": row.samples_per_s, "ratio": row.ratio} for row in self.rows]
        return {"kind": KIND, "version": VERSION} | asdict(self) | {"verdicts": verdicts, "rows": rows}


def load(path: Path) -> LoaderStudy:
    """Reads what `LoaderStudy.save` wrote; CorruptData if it is anything else."""
    return read(path, "loader", _parse)


def _parse(value: Any) -> LoaderStudy:
    if (value.get("kind"), value.get("version")) != (KIND, VERSION):
        raise ValueError(f"expected kind {KIND!r}, version {VERSION}")
    plain = {name: value[name] for name in ("command", "seed", "machine", "cold_by")}
    verdicts = tuple(Verdict(**only(Verdict, verdict)) for verdict in value["verdicts"])
    rows = tuple(Row(**only(Row, row)) for row in value["rows"])
    return LoaderStudy(**plain, verdicts=verdicts, rows=rows, packing=value.get("packing"))
