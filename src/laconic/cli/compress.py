"""`laconic compress IN OUT --codec SPEC`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compress(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .npy, .safetensors or .png file.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The compressed file, whatever its name.")],
    codec: Annotated[str, typer.Option(help="Such as 'dct:chop=4|cast:dtype=float16'. See: laconic codecs.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compress the tensors in a file, and say what that saved and what it cost.

    In a .safetensors file, tensors that the codec cannot take are kept as they are.
    """
    from laconic.cli import packing
    from laconic.cli.console import show, show_json

    report = packing.compress_file(source, target, codec)
    if json:
        show_json(report.as_dict())
    else:
        show(*report.lines())
