"""`laconic codecs`"""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from laconic.stage import Stage


def codecs(json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False) -> None:
    """List the stages that codecs are made of, with their options."""
    from laconic import registry
    from laconic.cli.console import show, show_json
    from laconic.stage import Kind

    stages = [describe(registry.find(name)) for name in registry.names()]
    if json:
        show_json(stages)
        return
    by_kind = {kind.name: [stage for stage in stages if stage["kind"] == kind.name] for kind in Kind}
    tables = [_table(kind, found) for kind, found in by_kind.items() if found]
    show(
        *tables,
        "A codec is stages joined by '|', in this order: transforms, a quantiser, predictors, an encoder. "
        "All are optional. For example [bold]dct:chop=4|affine:bits=8[/]",
    )


def describe(stage: type[Stage]) -> dict[str, Any]:
    """A stage as its class documents it."""
    types = get_type_hints(stage)
    fields = dataclasses.fields(stage)  # type: ignore[arg-type]  # every concrete stage is a dataclass
    return {
        "name": stage.name,
        "kind": stage.kind.name,
        "summary": (inspect.getdoc(stage) or "").partition("\n\n")[0].replace("\n", " "),
        "options": [_describe_option(field, types[field.name]) for field in fields],
        "example": stage.example,
    }


def _describe_option(field: dataclasses.Field[Any], hint: Any) -> dict[str, Any]:
    required = field.default is dataclasses.MISSING
    default = None if required else field.default
    from laconic.stage import option_name

    return {"name": option_name(field), "values": _values(hint), "required": required, "default": default}


def _values(hint: Any) -> str:
    """What may be written for an option of this type. None is written by leaving the option out."""
    if get_origin(hint) is Literal:
        return "|".join(map(str, get_args(hint)))
    choices = [choice for choice in get_args(hint) if choice is not type(None)]
    if choices:
        return "|".join(map(_values, choices))
    return {bool: "true|false", str: "text"}.get(hint) or str(hint.__name__)


def _table(kind: str, stages: list[dict[str, Any]]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{kind}s", title_justify="left", title_style="bold", show_lines=True)
    for column in ("stage", "options", "what it does", "example"):
        table.add_column(column, overflow="fold")
    for stage in stages:
        options = "\n".join(map(_option_text, stage["options"]))
        table.add_row(stage["name"], escape(options), escape(stage["summary"]), escape(stage["example"]))
    return table


def _option_text(option: dict[str, Any]) -> str:
    default = option["default"]
    shown = str(default).lower() if isinstance(default, bool) else default
    note = " (required)" if option["required"] else f" = {shown}" if shown is not None else ""
    return f"{option['name']}: {option['values']}{note}"
