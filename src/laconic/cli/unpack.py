"""`laconic unpack OUT.zarr TARGET`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def unpack(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="What laconic pack wrote.")],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A .npy, .npz or .zarr.")],
    array: Annotated[list[str] | None, typer.Option(help="This one alone; repeatable.")] = None,
) -> None:
    """Write the arrays of a packed store in an ordinary format again."""
    from laconic.cli.console import bytes_progress
    from laconic.data.unpack import unpack as unpacking

    with bytes_progress(f"unpacking {store.name}") as progress:
        unpacking(store, target, array or (), progress)
