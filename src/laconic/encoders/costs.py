"""How long encoders take, from what `laconic bench calibrate` measured: the cost model of `auto`.

rows of seconds, by encoder, bytes of a code, threads, and how well the data compressed
    --for so many bytes and threads-->  Curve: seconds by ratio
"""

from __future__ import annotations

import json
import os
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from laconic.errors import CorruptData
from laconic.files import file_errors

KIND = "laconic bench calibrate"
VERSION = 1
VARIABLE = "LACONIC_COSTS"
OTHERS = ("rows", "copies")
BUILT_IN = Path(__file__).with_name("costs.json")


class Row(NamedTuple):
    """One encoder on data of one kind, for each of the model's sizes."""

    encoder: str
    itemsize: int
    threads: int
    what: str
    """The kind of data: `codes`, which differ in how small they become, or `rows` or `copies`."""
    ratios: tuple[float, ...]
    """Bytes out over bytes in."""
    encode: tuple[float, ...]
    decode: tuple[float, ...]


class Curve(NamedTuple):
    """The seconds that one encoder takes to encode so many bytes and to decode them, by what they compress to."""

    ratios: tuple[float, ...]
    seconds: tuple[float, ...]
    others: Mapping[str, float]
    """Of data of other kinds: `rows`, `copies`."""

    @property
    def least(self) -> float:
        """Whatever the data."""
        return min(*self.seconds, *self.others.values())

    def at(self, ratio: float, others: Mapping[str, float]) -> float:
        """Where these shares of the data are of other kinds, and the rest becomes as small as `ratio`."""
        plain = seconds = _on_line(self.ratios, self.seconds, ratio)
        for what, share in others.items():
            seconds += share * (self.others.get(what, plain) - plain)
        return seconds


def _on_line(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Between neighbours on a line, beyond the ends as there."""
    place = bisect(xs, x)
    if place == 0 or place == len(xs):
        return ys[min(place, len(xs) - 1)]
    before, after = xs[place - 1], xs[place]
    return ys[place - 1] + (ys[place] - ys[place - 1]) * (x - before) / (after - before)


@dataclass(frozen=True, eq=False)
class CostModel:
    """What was measured on one machine. With one model, the same data make the same choice."""

    sizes: tuple[int, ...]
    """Bytes of codes, rising."""
    rows: tuple[Row, ...]
    sample: float = 0.0
    """Seconds to take a sample, and to choose by it."""
    machine: dict[str, Any] = field(default_factory=dict)
    command: str = ""

    @cache  # noqa: B019  # there are one or two models in a process
    def curve(self, encoder: str, itemsize: int, nbytes: int, threads: int) -> Curve | None:
        """None where the encoder was not measured. Codes of other sizes go by the next smaller ones."""
        rows = [row for row in self.rows if row.encoder == encoder]
        near = max((row.itemsize for row in rows if row.itemsize <= itemsize), default=None)
        rows = [row for row in rows if row.itemsize == near]
        counts = sorted({row.threads for row in rows})
        if not counts:
            return None
        place = min(bisect(counts, threads), len(counts) - 1)
        few, many = (self._curve(rows, count, nbytes) for count in (counts[max(place - 1, 0)], counts[place]))
        return _among(few, counts[max(place - 1, 0)], many, counts[place], threads)

    def _curve(self, rows: Sequence[Row], threads: int, nbytes: int) -> Curve:
        mine = [row for row in rows if row.threads == threads]
        codes = [row for row in mine if row.what == "codes"]
        points = sorted((_on_line(self.sizes, row.ratios, nbytes), self._seconds(row, nbytes)) for row in codes)
        others = {row.what: self._seconds(row, nbytes) for row in mine if row.what != "codes"}
        return Curve(tuple(ratio for ratio, _ in points), tuple(seconds for _, seconds in points), others)

    def _seconds(self, row: Row, nbytes: int) -> float:
        """Beyond the largest size, in proportion."""
        both = [encode + decode for encode, decode in zip(row.encode, row.decode, strict=True)]
        return _on_line(self.sizes, both, nbytes) * max(1.0, nbytes / self.sizes[-1])

    def to_json(self) -> dict[str, Any]:
        rows = [row._asdict() for row in self.rows]
        head = {"kind": KIND, "version": VERSION, "command": self.command, "machine": self.machine}
        return head | {"sample": self.sample, "sizes": list(self.sizes), "rows": rows}


def _among(few: Curve, less: int, many: Curve, more: int, threads: int) -> Curve:
    """Time that falls with 1 / threads from `less` of them to `more`."""
    share = 1.0 if threads >= more else (1 / less - 1 / max(threads, less)) / (1 / less - 1 / more)
    seconds = tuple(a + share * (b - a) for a, b in zip(few.seconds, many.seconds, strict=True))
    others = {what: a + share * (many.others[what] - a) for what, a in few.others.items()}
    return Curve(few.ratios, seconds, others)


def user_file() -> Path:
    """Where `laconic bench calibrate` writes, and `auto` looks: `$LACONIC_COSTS`, or by the XDG rules."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "laconic" / "costs.json"


def current() -> CostModel:
    """The model of this machine, or where it was not calibrated the one that laconic brings with it. A file is read
    once; what another calibration writes, the next process sees."""
    return _current(os.environ.get(VARIABLE))


@cache
def _current(given: str | None) -> CostModel:
    path = user_file()
    return load(path if given or path.exists() else BUILT_IN)


def load(path: Path) -> CostModel:
    """Reads what `laconic bench calibrate` wrote; CorruptData if it is anything else."""
    with file_errors(path, "read"):
        content = path.read_bytes()
    try:
        return _parse(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        raise CorruptData(
            f"'{path}' is not what 'laconic bench calibrate' writes: {reason}. Calibrate again, or remove it"
        ) from error


def _parse(value: Any) -> CostModel:
    if (value.get("kind"), value.get("version")) != (KIND, VERSION):
        raise ValueError(f"expected kind {KIND!r}, version {VERSION}")
    sizes = tuple(int(size) for size in value["sizes"])
    rows = tuple(_parse_row(row, len(sizes)) for row in value["rows"])
    if not all(row.what == "codes" or row.what in OTHERS for row in rows):
        raise ValueError(f"expected data of codes or {' or '.join(OTHERS)}")
    if not rows or not sizes or sizes[0] < 1 or list(sizes) != sorted(set(sizes)):
        raise ValueError("expected rows, and sizes that rise")
    sample = float(value["sample"])
    if not 0 <= sample < 1:
        raise ValueError(f"expected a sample to take less than a second, found {sample}")
    return CostModel(sizes, rows, sample, dict(value["machine"]), str(value["command"]))


def _parse_row(value: dict[str, Any], sizes: int) -> Row:
    numbers = {name: tuple(float(number) for number in value[name]) for name in ("ratios", "encode", "decode")}
    if any(len(found) != sizes or not all(0 <= x < 1e6 for x in found) for found in numbers.values()):
        raise ValueError(f"expected {sizes} numbers from 0 on in each row")
    plain = [str(value["encoder"]), int(value["itemsize"]), int(value["threads"]), str(value["what"])]
    return Row(*plain, **numbers)  # type: ignore[arg-type]  # in this order
