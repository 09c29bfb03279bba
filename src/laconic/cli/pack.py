"""`laconic pack SOURCE OUT.zarr --codec SPEC`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table


def pack(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A .npy, .npz, HDF5 (.h5), NetCDF (.nc) or Zarr file, or FILE::ARRAY; a folder of images, whose "
            "sub-folders are classes; or a torch Dataset, as module:dataset.",
        ),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.zarr", help="The store. What has the name is complete.")],
    codec: Annotated[str, typer.Option(help="Such as 'dct:chop=4'. See: laconic codecs.")],
    array: Annotated[list[str] | None, typer.Option(help="Pack this one. By default the largest; repeatable.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="Leave this one out; repeatable.")] = None,
    memory: Annotated[str, typer.Option(help="At most, beyond the program itself.")] = "1GiB",
    shard: Annotated[str, typer.Option(help="What goes into a file: a size, or a number of samples.")] = "64MiB",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. By default as many as are of use.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="The address of a Dask cluster, to pack there.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted packer left off.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Pack training data into a Zarr store, and say what that saved and what it cost.

    Other arrays of the same length, such as labels, travel beside it, losslessly. The bytes of a store do not depend
    on --memory, --workers or --scheduler. Interrupted, it goes on with --resume.
    """
    from laconic.cli.console import bytes_progress, show, show_json
    from laconic.data.pack import pack as packing

    try:
        with bytes_progress(f"packing {target.name}") as progress:
            found = packing(
                *(source, target, codec),
                arrays=array or (),
                without=without or (),
                memory=memory,
                shard=shard,
                workers=workers,
                scheduler=scheduler,
                resume=resume,
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.echo(f"interrupted: what was packed is kept in {target}.partial. Go on with --resume", err=True)
        raise typer.Exit(130) from None
    if json:
        show_json(found)
    else:
        show(table_of(found), *lines_of(found))


def table_of(found: dict[str, Any]) -> Table:
    """The arrays of a store, by what its attributes say."""
    from rich.markup import escape
    from rich.table import Table

    from laconic.cli.console import size

    table = Table(title=escape(found["codec"]), title_justify="left")
    table.add_column("array", overflow="fold")
    for column in ("before", "after", "ratio", "PSNR, dB", "max error"):
        table.add_column(column, justify="right")
    for name, array in found["arrays"].items():
        psnr = "lossless" if array["psnr"] is None else f"{array['psnr']:.2f}"
        sizes = (size(array["before"]), size(array["after"]), f"{array['ratio']:.2f}x")
        table.add_row(escape(name), *sizes, psnr, f"{array['max_error']:.3g}")
    return table


def lines_of(found: dict[str, Any]) -> list[str]:
    from rich.markup import escape

    from laconic.cli.console import size

    beside = f"; beside it, losslessly: {escape(', '.join(found['beside']))}" if found["beside"] else ""
    speed = f", at {size(round(found['speed']['bytes_per_second']))}/s" if found["speed"] else ""
    total = f"{found['samples']} samples{beside}. {size(found['before'])} -> {size(found['after'])}, every file counted"
    return [f"{total}: [bold]{found['ratio']:.2f}x[/]{speed}"]
