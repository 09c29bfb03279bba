"""What a rate study wrote down: rows of numbers, what was refused, verdicts, and where and how it ran."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from laconic.bench.machine import Machine
from laconic.bench.study import Saved, Verdict, only, read

KIND = "laconic bench rate"
VERSION = 1
OURS, PEER = "laconic", "peer"


@dataclass(frozen=True)
class Row:
    """One codec on one data set at one bound, with so many threads."""

    data: str
    shape: list[int]
    dtype: str
    bound: float
    """Relative to max - min of each tensor."""
    name: str
    codec: str
    """As it ran: with its bound, and what was chosen for a peer."""
    group: str
    threads: int
    nbytes: int
    """Of the uncompressed tensors."""
    encoded_bytes: int
    psnr: float | None
    """dB, with max - min as peak; None where nothing was lost."""
    ssim: float | None
    """Of images."""
    over_bound: float
    """The largest error as a share of the bound: above 1 it is broken."""
    encode_seconds: float
    encode_q1: float
    encode_q3: float
    decode_seconds: float
    decode_q1: float
    decode_q3: float
    rounds: int
    included: str

    @property
    def ratio(self) -> float:
        return self.nbytes / self.encoded_bytes

    @property
    def encode_gb_per_s(self) -> float:
        return self.nbytes / self.encode_seconds / 1e9

    @property
    def decode_gb_per_s(self) -> float:
        return self.nbytes / self.decode_seconds / 1e9

    @property
    def is_ours(self) -> bool:
        return self.group == OURS


@dataclass(frozen=True)
class Refusal:
    """What could not be measured, and why."""

    data: str
    bound: float
    name: str
    reason: str


@dataclass(frozen=True)
class RateStudy(Saved):
    """A whole measurement."""

    command: str
    seed: int
    machine: Machine
    peers: dict[str, str]
    """The versions of all that was measured beside laconic."""
    verdicts: tuple[Verdict, ...]
    rows: tuple[Row, ...]
    refused: tuple[Refusal, ...]

    def cells(self) -> list[tuple[str, float]]:
        """Data sets and bounds, in the order of measuring."""
        return list(dict.fromkeys((row.data, row.bound) for row in self.rows))

    def cell(self, data: str, bound: float, threads: int) -> list[Row]:
        """One row for each codec: with so many threads, or as many as it can use."""
        best: dict[str, Row] = {}
        for row in self.rows:
            fits = (row.data, row.bound) == (data, bound) and row.threads <= threads
            if fits and (row.name not in best or row.threads > best[row.name].threads):
                best[row.name] = row
        return list(best.values())

    @property
    def threads(self) -> list[int]:
        return sorted({row.threads for row in self.rows})

    def to_json(self) -> dict[str, Any]:
        verdicts = [asdict(v) | {"met": v.met, "aim_met": v.aim_met} for v in self.verdicts]
        rows = [asdict(row) | _derived(row) for row in self.rows]
        return {"kind": KIND, "version": VERSION} | asdict(self) | {"verdicts": verdicts, "rows": rows}


def _derived(row: Row) -> dict[str, float]:
    speeds = {"encode_gb_per_s": row.encode_gb_per_s, "decode_gb_per_s": row.decode_gb_per_s}
    return {"ratio": row.ratio} | speeds


def load(path: Path) -> RateStudy:
    """Reads what `RateStudy.save` wrote; CorruptData if it is anything else."""
    return read(path, "rate", parse)


def parse(value: Any) -> RateStudy:
    if (value.get("kind"), value.get("version")) != (KIND, VERSION):
        raise ValueError(f"expected kind {KIND!r}, version {VERSION}")
    plain = {name: value[name] for name in ("command", "seed", "machine", "peers")}
    return RateStudy(
        **plain,
        verdicts=tuple(_each(Verdict, value["verdicts"])),
        rows=tuple(_each(Row, value["rows"])),
        refused=tuple(_each(Refusal, value["refused"])),
    )


def _each(kind: Any, values: Iterable[dict[str, Any]]) -> list[Any]:
    return [kind(**only(kind, value)) for value in values]
