"""Error bounds that change: with the iteration of a training run, and from one embedding table to the next.

    bound(table, iteration) = bound of the table's class (tighten, base or loosen) * multiplier(iteration)

Early in training a coarser bound does little harm, and some tables bear a coarser one than others: the dual-level
adaptive strategy of "Accelerating Communication in Deep Learning Recommendation Model Training with Dual-Level
Adaptive Lossy Compression" (SC'24).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from laconic import grammar
from laconic.chain import Codec, codec
from laconic.errors import SpecError

Decay = Literal["step", "linear", "log", "cosine", "constant"]
TableClass = Literal["tighten", "base", "loosen"]
DECAYS: tuple[str, ...] = get_args(Decay)
CLASSES: tuple[TableClass, ...] = get_args(TableClass)
STAGES = 10
"""The equal decrements of the decay `step`, and the stages that a study may ask for."""


@dataclass(frozen=True)
class EbSchedule:
    """A factor for error bounds that falls from `factor` to 1 while iterations go from 0 to `until`, and stays there.

    >>> schedule = EbSchedule("linear", factor=3, until=1000)
    >>> schedule.multiplier(0), schedule.multiplier(500), schedule.multiplier(1000)
    (3.0, 2.0, 1.0)
    """

    decay: Decay = "step"
    factor: float = 2
    until: int = 65536

    def __post_init__(self) -> None:
        if self.decay not in DECAYS:
            raise SpecError(f"There is no decay '{self.decay}'. There are: {', '.join(DECAYS)}")
        if not (_is_number(self.factor) and 1 <= self.factor < math.inf):
            raise SpecError(f"factor: expected a number of at least 1, such as 2, got {self.factor!r}")
        if not (_is_whole(self.until) and self.until >= 1):
            raise SpecError(f"until: expected a whole number of iterations, at least 1, got {self.until!r}")

    def multiplier(self, iteration: int) -> float:
        """What bounds are multiplied with at an iteration, counted from 0."""
        if not (_is_whole(iteration) and iteration >= 0):
            raise SpecError(f"iteration: expected a whole number of at least 0, got {iteration!r}")
        if iteration >= self.until:
            return 1.0
        return 1 + (self.factor - 1) * _REMAINING[self.decay](iteration, self.until)

    def at_stage(self, stage: int) -> int:
        """The iteration at which the given one of ten stages begins; the tenth is where the decay has ended."""
        if not (_is_whole(stage) and 0 <= stage <= STAGES):
            raise SpecError(f"stage: expected a whole number from 0 to {STAGES}, got {stage!r}")
        return -(-stage * self.until // STAGES)


# How much of what is above 1 is left at an iteration before `until`: from 1 to 0.
_REMAINING: Mapping[str, Callable[[int, int], float]] = {
    "constant": lambda i, until: 1.0,
    "linear": lambda i, until: 1 - i / until,
    "log": lambda i, until: 1 - math.log1p((math.e - 1) * i / until),
    "cosine": lambda i, until: (1 + math.cos(math.pi * i / until)) / 2,
    "step": lambda i, until: 1 - (STAGES * i // until) / STAGES,
}


@dataclass(frozen=True)
class TableBounds:
    """The bound of each table at each iteration. Tables that no class names are of the class `base`.

    >>> bounds = TableBounds(base=0.03, loosen=0.05, classes={5: "loosen"}, schedule=EbSchedule("step", until=1000))
    >>> bounds.bound("table_5", iteration=0), bounds.bound(1, iteration=1000)
    (0.1, 0.03)
    >>> print(bounds.codec("bound|huffman", 5, iteration=1000))
    bound:rel=0.05|huffman
    """

    base: float = 0.03
    tighten: float | None = None
    """None: no table may be of this class."""
    loosen: float | None = None
    classes: Mapping[str | int, TableClass] = field(default_factory=dict)
    """By the name of the table, or its number: 5 is `table_5`."""
    schedule: EbSchedule | None = None
    """None: the bounds do not change."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", _by_name(self.classes.items()))
        for name in CLASSES:
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 < value < math.inf):
                raise SpecError(f"{name}: expected a bound above 0, such as 0.03, got {value!r}")
        for table, name in self.classes.items():
            if name not in CLASSES:
                raise SpecError(f"{table} is of the class {name!r}: expected {', '.join(CLASSES)}")
            if getattr(self, name) is None:
                raise SpecError(f"{table} is of the class {name}, which has no bound. Give {name}=, such as 0.05")
        if not (self.tighten or self.base) <= self.base <= (self.loosen or self.base):
            raise SpecError(f"expected tighten <= base <= loosen, got {self.tighten}, {self.base} and {self.loosen}")

    def class_of(self, table: str | int) -> TableClass:
        return self.classes.get(table_name(table), "base")

    def bound(self, table: str | int, iteration: int) -> float:
        """What goes behind `abs=`, `rel=` or `rms=`."""
        value: float = getattr(self, self.class_of(table))
        return value * (1 if self.schedule is None else self.schedule.multiplier(iteration))

    def codec(self, text: str, table: str | int, iteration: int, kind: str = "rel") -> Codec:
        """A chain whose `bound` has none yet, such as `bound|huffman`, with the one of this table and iteration."""
        return codec(grammar.with_bound(text, kind, self.bound(table, iteration)))

    @staticmethod
    def from_json(path: str | os.PathLike[str]) -> TableBounds:
        """Reads a class file, as `laconic bench analyze` writes it."""
        from laconic import schedule_files

        return schedule_files.read(path)

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> TableBounds:
        """Reads the variables of the SC'24 artifact, such as TIGHTEN_EB_TABLES="0 9 10" and DECAY_FUNC=step."""
        from laconic import schedule_files

        return schedule_files.from_environment(environment)


def table_name(table: str | int) -> str:
    """
    >>> table_name(5), table_name("05"), table_name("users")
    ('table_5', 'table_5', 'users')
    """
    return f"table_{int(table)}" if _is_whole(table) or (isinstance(table, str) and _is_digits(table)) else str(table)


def _by_name(pairs: Iterable[tuple[str | int, TableClass]]) -> dict[str, TableClass]:
    found: dict[str, TableClass] = {}
    for table, name in pairs:
        if table_name(table) in found:
            raise SpecError(f"{table_name(table)} is named twice: expected each table in one class, once")
        found[table_name(table)] = name
    return found


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
