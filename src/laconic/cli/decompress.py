"""`laconic decompress IN OUT`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def decompress(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file that laconic compress, or laconic.save, wrote.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="A .npy, .safetensors or .png file.")],
) -> None:
    """Write the tensors of a compressed file in an ordinary format again."""
    import laconic
    from laconic.cli import formats
    from laconic.cli.console import progress

    formats.check_output(target, source, any_suffix=False)
    stored = laconic.load(source)
    if isinstance(stored, laconic.Encoded):
        formats.write(target, laconic.decode(stored))
        return
    restored = {}
    with progress(len(stored)) as begin:
        for name, item in stored.items():
            begin(name)
            restored[name] = laconic.decode(item) if isinstance(item, laconic.Encoded) else item
    formats.write(target, restored)
