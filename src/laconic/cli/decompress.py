"""`laconic decompress IN OUT`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def decompress(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file that laconic compress, or laconic.save, wrote.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="A .npy, .npz, .safetensors or .png file.")],
) -> None:
    """Write the tensors of a compressed file in an ordinary format again."""
    import laconic
    from laconic.cli import formats
    from laconic.cli.console import progress

    formats.check_output(target, source, any_suffix=False)
    stored = laconic.load(source)
    named = {formats.SINGLE: stored} if isinstance(stored, laconic.Encoded) else stored
    with progress(len(named)) as begin:
        formats.write(target, named, begin)
