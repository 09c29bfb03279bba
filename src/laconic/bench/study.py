"""What a measurement wrote down: rows of numbers, verdicts on floors, and where and how it ran. JSON and back."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from laconic.bench.machine import Machine
from laconic.bench.measure import Contender, Race, Timing
from laconic.errors import CorruptData
from laconic.files import file_errors, replacing

KIND = "laconic bench blocks"
VERSION = 1

S = TypeVar("S")


@dataclass(frozen=True)
class Row:
    """One contender of one race."""

    section: str
    race: str
    name: str
    what: str
    codec: str | None
    shape: list[int]
    dtype: str
    parameters: dict[str, int]
    included: str
    threads: int
    seconds: float
    q1: float
    q3: float
    rounds: int
    nbytes: int
    """Of the uncompressed tensor."""
    gb_per_s: float
    samples_per_s: float

    @classmethod
    def of(cls, race: Race, contender: Contender, timing: Timing, threads: int) -> Row:
        """A sample is what the first dimension counts; a single image is one."""
        shape = list(contender.x.shape)
        return cls(
            section=race.section,
            race=race.title,
            name=contender.name,
            what=contender.what,
            codec=contender.codec,
            shape=shape,
            dtype=str(contender.x.dtype).removeprefix("torch."),
            parameters=dict(contender.parameters),
            included=contender.included,
            threads=contender.threads or threads,
            seconds=timing.median,
            q1=timing.q1,
            q3=timing.q3,
            rounds=timing.rounds,
            nbytes=contender.x.nbytes,
            gb_per_s=contender.x.nbytes / timing.median / 1e9,
            samples_per_s=(shape[0] if len(shape) > 2 else 1) / timing.median,
        )

    @property
    def ratio(self) -> float:
        """How many times smaller it was stored, every byte counted; 1 for what does not compress."""
        return self.nbytes / self.parameters.get("encoded_bytes", self.nbytes)


@dataclass(frozen=True)
class Verdict:
    """A promise about speed, held against what was measured. `at_least`: more is better."""

    name: str
    measured: float
    floor: float
    aim: float | None
    at_least: bool
    unit: str

    @property
    def met(self) -> bool:
        return self._reaches(self.floor)

    @property
    def aim_met(self) -> bool | None:
        return None if self.aim is None else self._reaches(self.aim)

    def _reaches(self, mark: float) -> bool:
        return self.measured >= mark if self.at_least else self.measured <= mark


class Saved(ABC):
    """A measurement that goes to a file."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What the file holds."""

    def save(self, path: Path) -> None:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")


def read(path: Path, command: str, parse: Callable[[Any], S]) -> S:
    """What `parse` makes of a saved file; CorruptData if it is not what this command of `laconic bench` writes."""
    with file_errors(path, "read"):
        content = path.read_bytes()
    try:
        return parse(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        raise CorruptData(f"'{path}' is not what 'laconic bench {command} --out' writes: {reason}") from error


@dataclass(frozen=True)
class Study(Saved):
    """A whole measurement."""

    command: str
    device: str
    seed: int
    machine: Machine
    verdicts: tuple[Verdict, ...]
    rows: tuple[Row, ...]

    def section(self, name: str) -> list[Row]:
        return [row for row in self.rows if row.section == name]

    def to_json(self) -> dict[str, Any]:
        verdicts = [asdict(v) | {"met": v.met, "aim_met": v.aim_met} for v in self.verdicts]
        return {"kind": KIND, "version": VERSION} | asdict(self) | {"verdicts": verdicts}


def load(path: Path) -> Study:
    """Reads what `Study.save` wrote; CorruptData if it is anything else."""
    return read(path, "blocks", _parse)


def _parse(value: Any) -> Study:
    if (value.get("kind"), value.get("version")) != (KIND, VERSION):
        raise ValueError(f"expected kind {KIND!r}, version {VERSION}")
    plain = {name: value[name] for name in ("command", "device", "seed", "machine")}
    verdicts = tuple(Verdict(**only(Verdict, verdict)) for verdict in value["verdicts"])
    return Study(**plain, verdicts=verdicts, rows=tuple(Row(**only(Row, row)) for row in value["rows"]))


def only(kind: Any, value: dict[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass, out of JSON that may hold more; KeyError where one is missing."""
    return {field.name: value[field.name] for field in fields(kind)}


def by_race(rows: Iterable[Row]) -> dict[str, dict[tuple[str, str], Row]]:
    """The rows of a section: for each race, what each contender did."""
    races: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        races.setdefault(row.race, {})[row.name, row.what] = row
    return races
