"""`laconic compress IN OUT --codec SPEC`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compress(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .npy, .npz, .safetensors or .png file.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The compressed file, whatever its name.")],
    codec: Annotated[
        str | None, typer.Option(help="Such as 'dct:chop=4|cast:dtype=float16'. See: laconic codecs.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="--codec for tensors with such names alone: '*.weight'. May be repeated."),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN=SPEC",
            help="A codec, or keep, for tensors with such names. May be repeated: the first that fits decides.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compress the tensors in a file, and say what that saved and what it cost.

    Of many tensors (.npz, .safetensors) each gets the first rule that fits its name, then --codec, or is kept as it
    is. So are those that the codec cannot take or makes no smaller, and whole numbers where it is lossy.
    """
    from laconic.cli import packing
    from laconic.cli.console import show, show_json

    report = packing.compress_file(source, target, codec, only or (), rule or ())
    if json:
        show_json(report.as_dict())
    else:
        show(*report.lines())
