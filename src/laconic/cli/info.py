"""`laconic info FILE`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table


def info(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A compressed file, or a packed store.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check a compressed file, and describe it without decoding: codecs in full, and the parts of every tensor."""
    from rich.markup import escape

    from laconic.cli.console import show, show_json, size

    if file.is_dir():
        _store(file, json)
        return
    found = inspect(file)
    if json:
        show_json(found)
        return
    summary = (
        f"{size(found['before'])} of tensors in {size(found['file_bytes'])}, headers and all: "
        f"[bold]{found['ratio']:.2f}x[/]. Checksum: ok"
    )
    show(_table(found["tensors"]), f"{escape(str(file))}: {summary}")


def _store(path: Path, json: bool) -> None:
    """A packed store: what it says of itself, after a look at each packed array's metadata."""
    from laconic.cli.console import show, show_json
    from laconic.cli.pack import lines_of, table_of
    from laconic.data.pack_finish import report_of
    from laconic.data.store import packed_arrays

    arrays = packed_arrays(path)
    found = report_of(path)
    for name, array in arrays.items():
        found["arrays"][name] |= {"spec": repr(array.spec), "per_shard": array.per_shard, "shards": array.shards}
    if json:
        show_json(found)
    else:
        specs = [f"{name}: {array.spec}, {array.shards} shards of {array.per_shard}" for name, array in arrays.items()]
        show(table_of(found), *specs, *lines_of(found))


def inspect(file: Path) -> dict[str, Any]:
    """What is in a file. Raises CorruptData unless every byte of it is as it was written."""
    import laconic
    from laconic.cli import formats

    stored = laconic.load(file)
    named = {formats.SINGLE: stored} if isinstance(stored, laconic.Encoded) else stored
    tensors = [{"tensor": name, **_describe(item)} for name, item in named.items()]
    before, file_bytes = sum(tensor["before"] for tensor in tensors), file.stat().st_size
    totals = {"file_bytes": file_bytes, "before": before, "ratio": before / file_bytes}
    return {"checksum": "ok", **totals, "tensors": tensors}


def _describe(item: Any) -> dict[str, Any]:
    """A stored tensor. One that was kept as it was has no codec."""
    from laconic import Encoded, TensorSpec
    from laconic.checks import check_parts

    if isinstance(item, Encoded):
        check_parts(item)
    parts = item.parts if isinstance(item, Encoded) else {"main": item}
    spec = item.spec if isinstance(item, Encoded) else TensorSpec.of(item)
    return {
        "codec": "|".join(map(str, item.chain)) if isinstance(item, Encoded) else None,
        "shape": list(spec.shape),
        "dtype": str(spec.dtype).removeprefix("torch."),
        "parts": {name: repr(TensorSpec.of(part)) for name, part in parts.items()},
        "before": spec.nbytes,
        "after": sum(part.nbytes for part in parts.values()),
    }


def _table(tensors: list[dict[str, Any]]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from laconic.cli.console import size

    table = Table()
    for column in ("tensor", "shape", "dtype", "codec@version", "parts"):
        table.add_column(column, overflow="fold")
    for column in ("before", "after", "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    for tensor in tensors:
        before, after = tensor["before"], tensor["after"]
        parts = ", ".join(f"{name} {escape(spec)}" for name, spec in tensor["parts"].items())
        named = (escape(tensor["tensor"]), str(tensor["shape"]), tensor["dtype"], tensor["codec"] or "kept as it was")
        table.add_row(*named, parts, size(before), size(after), f"{before / max(after, 1):.2f}x")
    return table
