"""What an encoders study wrote down: cases, a row for each encoder on each of them, verdicts. JSON and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from laconic.bench.machine import Machine
from laconic.bench.study import Saved, Verdict, only, read

KIND = "laconic bench encoders"
VERSION = 1
OURS, PEER = "laconic", "peer"


def dump_name(table: str, iteration: int | None) -> str:
    return table if iteration is None else f"{table} at {iteration}"


@dataclass(frozen=True)
class Case:
    """One dump, cut and padded in one way, at one bound."""

    name: str
    table: str
    iteration: int | None
    table_class: str
    kind: str
    """Of the bound: rel, abs or rms."""
    bound: float
    quantiser: str
    shape: list[int]
    """Of all rows, padding included."""
    rows: int
    """Of a slice before padding; the last one may have fewer."""
    pad: int
    """How often each slice is repeated: above 1, dictionary coders look better than they are."""
    slices: int
    slices_in_a_call: int
    code_bits: int
    unique_before: float
    """Distinct rows, counted in each slice, as a share of all rows."""
    unique_after: float
    entropy: float
    """Of order 0, in bits a code."""
    nbytes: int

    @property
    def cut(self) -> tuple[int, int]:
        """What cases that can be averaged have in common: rows and padding."""
        return self.rows, self.pad

    @property
    def dump(self) -> str:
        """The table, and its iteration where that is known."""
        return dump_name(self.table, self.iteration)

    @property
    def is_whole(self) -> bool:
        return self.slices == 1


@dataclass(frozen=True)
class Row:
    """One encoder on one case, quantising and its way back included."""

    case: str
    name: str
    codec: str
    """As asked for."""
    ran: str
    """As it ran for most slices: what `auto` chose, or what a chain fell back to."""
    group: str
    threads: int
    nbytes: int
    encoded_bytes: int
    over_bound: float
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
    """What could not be measured, and why. `case` is empty where it was for all of them."""

    case: str
    name: str
    reason: str


@dataclass(frozen=True)
class EncodersStudy(Saved):
    """A whole measurement. `links` are the bandwidths in GB/s for which speed-ups are modelled."""

    command: str
    seed: int
    machine: Machine
    peers: dict[str, str]
    links: tuple[float, ...]
    verdicts: tuple[Verdict, ...]
    cases: tuple[Case, ...]
    rows: tuple[Row, ...]
    refused: tuple[Refusal, ...]

    def cuts(self) -> list[tuple[int, int]]:
        """Rows and padding, in the order of measuring."""
        return list(dict.fromkeys(case.cut for case in self.cases))

    def cases_of(self, cut: tuple[int, int]) -> list[Case]:
        return [case for case in self.cases if case.cut == cut]

    def rows_of(self, case: Case) -> list[Row]:
        return [row for row in self.rows if row.case == case.name]

    def to_json(self) -> dict[str, Any]:
        from laconic.bench.encoders.model import summary

        verdicts = [asdict(v) | {"met": v.met, "aim_met": v.aim_met} for v in self.verdicts]
        rows = [asdict(row) | _derived(row) for row in self.rows]
        return {"kind": KIND, "version": VERSION} | asdict(self) | {"verdicts": verdicts, "rows": rows} | summary(self)


def _derived(row: Row) -> dict[str, float]:
    speeds = {"encode_gb_per_s": row.encode_gb_per_s, "decode_gb_per_s": row.decode_gb_per_s}
    return {"ratio": row.ratio} | speeds


def load(path: Path) -> EncodersStudy:
    """Reads what `EncodersStudy.save` wrote; CorruptData if it is anything else."""
    return read(path, "encoders", _parsed)


def _parsed(value: Any) -> EncodersStudy:
    if (value.get("kind"), value.get("version")) != (KIND, VERSION):
        raise ValueError(f"expected kind {KIND!r}, version {VERSION}")
    plain = {name: value[name] for name in ("command", "seed", "machine", "peers")}
    return EncodersStudy(
        **plain,
        links=tuple(value["links"]),
        verdicts=tuple(_each(Verdict, value["verdicts"])),
        cases=tuple(_each(Case, value["cases"])),
        rows=tuple(_each(Row, value["rows"])),
        refused=tuple(_each(Refusal, value["refused"])),
    )


def _each(kind: Any, values: Iterable[dict[str, Any]]) -> list[Any]:
    return [kind(**only(kind, value)) for value in values]
