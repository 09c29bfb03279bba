"""One line of text <-> stages: `dct:chop=4|cast:dtype=float16`.

A stage's dataclass fields are the grammar of its options: nothing else is written down.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin, get_type_hints

from laconic import registry
from laconic.errors import SpecError
from laconic.stage import Stage, option_name

_BOOLS = {"true": True, "false": False}


def parse(text: str) -> tuple[Stage, ...]:
    """The stages that a codec's text names, in order.

    >>> parse("dct:chop=4|cast:dtype=float16")
    (Dct(chop=4, block=8, keep='square'), Cast(dtype='float16'))
    """
    if not text.strip():
        raise SpecError("An empty codec. A codec names at least one stage, such as 'dct:chop=4'")
    stages = tuple(parse_stage(part.strip()) for part in text.split("|"))
    check_order(stages)
    return stages


def parse_stage(text: str) -> Stage:
    name, _, options = text.partition(":")
    cls = registry.find(name.strip())
    given: dict[str, Any] = {}
    for option in filter(str.strip, options.split(",")):
        key, value = _parse_option(cls, option)
        if key in given:
            raise SpecError(f"'{text.strip()}' gives {key} twice. For example '{cls.example}'")
        given[key] = value
    _check_complete(cls, given)
    return cls(**{f.name: given[option_name(f)] for f in _fields(cls) if option_name(f) in given})


def with_bound(text: str, kind: str, value: float) -> str:
    """A codec's text in which every `bound` that has none yet has this one.

    >>> with_bound("bound|lorenzo|zstd:level=1", "rel", 1e-3), with_bound("bound:width=8|bitpack", "abs", 0.5)
    ('bound:rel=0.001|lorenzo|zstd:level=1', 'bound:abs=0.5,width=8|bitpack')
    """
    stages = []
    for stage in text.split("|"):
        name, _, options = stage.strip().partition(":")
        given = [option for option in options.split(",") if option]
        bounded = any(option.split("=")[0].strip() in ("abs", "rel", "rms") for option in given)
        free = name == "bound" and not bounded
        stages.append(f"bound:{','.join([f'{kind}={value!r}', *given])}" if free else stage)
    return "|".join(stages)


def check_order(stages: Iterable[Stage]) -> None:
    """Raises unless the kinds stand in order: transforms, one quantiser, predictors, one encoder."""
    chain = tuple(stages)
    for before, after in pairwise(chain):
        repeats = before.kind == after.kind and before.kind.name in ("transform", "predictor")
        if before.kind >= after.kind and not repeats:
            raise SpecError(
                f"'{after}' (a {after.kind.name}) cannot follow '{before}' (a {before.kind.name}): "
                f"the order is transforms, a quantiser, predictors, an encoder. Try '{_in_order(chain)}'"
            )


def _in_order(chain: tuple[Stage, ...]) -> str:
    """The stages that may stay, where they may stand: the first of a kind that cannot repeat."""
    kept: list[Stage] = []
    for stage in sorted(chain, key=lambda stage: stage.kind):
        alone = stage.kind.name in ("quantiser", "encoder")
        if not (alone and any(other.kind is stage.kind for other in kept)):
            kept.append(stage)
    return "|".join(map(str, kept))


def _parse_option(cls: type[Stage], option: str) -> tuple[str, Any]:
    key, equals, value = (piece.strip() for piece in option.partition("="))
    fields = _options(cls)
    if key not in fields or not equals:
        close = difflib.get_close_matches(key, fields, n=1)
        meant = f" Did you mean '{close[0]}'?" if close and equals else ""
        raise SpecError(
            f"'{option.strip()}' is not an option of {cls.name}: it takes {_describe(fields)}.{meant} "
            f"For example '{cls.example}'"
        )
    return key, _parse_value(cls, key, fields[key], value)


@lru_cache(maxsize=256)
def _options(cls: type[Stage]) -> dict[str, Any]:
    """The options that a stage takes, and their types. Every compressed buffer that is read asks for them."""
    types = get_type_hints(cls)
    return {option_name(f): types[f.name] for f in _fields(cls)}


def _parse_value(cls: type[Stage], key: str, kind: Any, text: str) -> Any:
    for choice in _alternatives(kind):
        if get_origin(choice) is Literal:
            matches = [value for value in get_args(choice) if str(value) == text]
            if matches:
                return matches[0]
        elif choice is str and text:
            return text
        elif choice is bool and text in _BOOLS:
            return _BOOLS[text]
        elif choice in (int, float):
            try:
                return choice(text)
            except ValueError:
                continue
    raise SpecError(
        f"{cls.name}:{key}={text}: expected {key} to be {_name(kind)}, got '{text}'. For example '{cls.example}'"
    )


def _check_complete(cls: type[Stage], given: dict[str, Any]) -> None:
    for f in _fields(cls):
        needed = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if needed and option_name(f) not in given:
            raise SpecError(f"'{cls.name}' needs {option_name(f)}=..., for example '{cls.example}'")


def _fields(cls: type[Stage]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls)  # type: ignore[arg-type]  # every concrete stage is a dataclass


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """`int | None` -> (int,): what may be written. None is written by leaving the option out."""
    if get_origin(kind) is Literal or not get_args(kind):
        return (kind,)
    return tuple(choice for choice in get_args(kind) if choice is not type(None))


def _name(kind: Any) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return " or ".join(
        "|".join(map(str, get_args(c))) if get_origin(c) is Literal else names[c] for c in _alternatives(kind)
    )


def _describe(fields: dict[str, Any]) -> str:
    return ", ".join(f"{name} ({_name(kind)})" for name, kind in fields.items()) or "no options"
