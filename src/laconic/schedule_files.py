"""Where the bounds of tables are written down: a class file in JSON, or environment variables.

    {"base": 0.03, "tighten": 0.01, "loosen": 0.05,
     "tables": {"tighten": ["table_1"], "loosen": ["table_5", 8]},
     "schedule": {"decay": "step", "factor": 2, "until": 65536}}

Everything but `tables` may be left out. What stands under `analysis` is for people, and not read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from laconic.errors import SpecError
from laconic.files import file_errors
from laconic.schedule import CLASSES, EbSchedule, TableBounds, TableClass, table_name

N = TypeVar("N", int, float)

_KEYS = {"base", "tighten", "loosen", "tables", "schedule", "analysis"}
_TABLES = {"tighten": "TIGHTEN_EB_TABLES", "loosen": "LOOSEN_EB_TABLES"}
_VALUES = {"base": "BASE_ERROR_BOUND", "tighten": "TIGHTEN_EB_VALUE", "loosen": "LOOSEN_EB_VALUE"}


def read(path: str | os.PathLike[str]) -> TableBounds:
    """The bounds that a class file holds; SpecError where it cannot be meant."""
    with file_errors(path, "read"), open(path, "rb") as file:
        content = file.read()
    try:
        return _parsed(json.loads(content, object_pairs_hook=_once))
    except (ValueError, TypeError, RecursionError) as error:
        raise SpecError(f"'{os.fspath(path)}' is not a class file: {error}") from error


def to_json(bounds: TableBounds) -> dict[str, Any]:
    """What `read` reads again, ready for `json.dumps`."""
    schedule = bounds.schedule
    found: dict[str, Any] = {name: getattr(bounds, name) for name in CLASSES if getattr(bounds, name) is not None}
    found["tables"] = {name: [t for t, c in bounds.classes.items() if c == name] for name in CLASSES}
    if schedule is not None:
        found["schedule"] = {"decay": schedule.decay, "factor": schedule.factor, "until": schedule.until}
    return found


def from_environment(environment: Mapping[str, str]) -> TableBounds:
    """See `TableBounds.from_environment`. What is not set is as in `TableBounds` and `EbSchedule`; the bounds change
    where EB_CONSTANT, EARLY_STAGE or DECAY_FUNC is set."""
    lists = {name: environment.get(variable, "").replace(",", " ").split() for name, variable in _TABLES.items()}
    for name, tables in lists.items():
        wrong = next((table for table in tables if not (table.isascii() and table.isdigit())), None)
        if wrong is not None:
            raise SpecError(f"{_TABLES[name]}: expected the numbers of tables, such as '0 9 10', got '{wrong}'")
    values = {name: _number(environment, variable, float) for name, variable in _VALUES.items()}
    decay = {
        "decay": environment.get("DECAY_FUNC"),
        "factor": _number(environment, "EB_CONSTANT", float),
        "until": _number(environment, "EARLY_STAGE", int),
    }
    schedule = EbSchedule(**_given(decay)) if _given(decay) else None
    return TableBounds(**_given(values), classes=_classes(lists), schedule=schedule)


def _parsed(value: Any) -> TableBounds:
    if not isinstance(value, dict) or "tables" not in value or set(value) - _KEYS:
        raise ValueError(f"expected an object of {', '.join(sorted(_KEYS))}, of which tables is needed")
    tables, schedule = value["tables"], value.get("schedule")
    if not isinstance(tables, dict) or not all(isinstance(found, list) for found in tables.values()):
        raise ValueError('tables: expected lists, such as {"tighten": ["table_1"], "loosen": ["table_5"]}')
    if schedule is not None and not (isinstance(schedule, dict) and set(schedule) <= {"decay", "factor", "until"}):
        raise ValueError('schedule: expected {"decay": "step", "factor": 2, "until": 65536}')
    values = {name: value[name] for name in CLASSES if name in value}
    changing = None if schedule is None else EbSchedule(**schedule)
    return TableBounds(**values, classes=_classes(tables), schedule=changing)


def _classes(tables: Mapping[str, Iterable[Any]]) -> dict[str | int, TableClass]:
    found: dict[str | int, TableClass] = {}
    for name, named in tables.items():
        for table in named:
            if isinstance(table, bool) or not isinstance(table, str | int):
                raise SpecError(f"{name}: expected tables by name or number, got {table!r}")
            if table_name(table) in found:
                raise SpecError(f"{table_name(table)} is named twice: expected each table in one class, once")
            found[table_name(table)] = name  # type: ignore[assignment]  # TableBounds checks it
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object none of whose keys stands there twice, of which JSON would forget one."""
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"'{twice}' stands there twice")
    return dict(pairs)


def _number(environment: Mapping[str, str], name: str, kind: Callable[[str], N]) -> N | None:
    if name not in environment:
        return None
    try:
        return kind(environment[name])
    except ValueError as error:
        expected = "a whole number" if kind is int else "a number"
        raise SpecError(f"{name}: expected {expected}, got '{environment[name]}'") from error


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
