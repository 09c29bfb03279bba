"""`laconic verify OUT.zarr [--against SOURCE]`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def verify(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="What laconic pack wrote.")],
    against: Annotated[str | None, typer.Option(metavar="SOURCE", help="Compare with what was packed.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check every sample of a packed store by its checksum; exit code 2 if one is damaged.

    With --against, check as well that error bounds hold, that the quality is what the store says, and that what
    travels beside is the same to the bit.
    """
    from laconic.cli.console import bytes_progress, show_json
    from laconic.data.verify import verify as verifying
    from laconic.errors import CorruptData

    with bytes_progress(f"verifying {store.name}") as progress:
        found = verifying(store, against, progress)
    if json:
        show_json(found)
    else:
        for line in _lines(found):
            typer.echo(line)
    if found["damaged"] or found["wrong"]:
        samples = f"{len(found['damaged'])} of {found['samples']} samples are damaged"
        raise CorruptData(f"'{store}': {'; '.join([samples] * bool(found['damaged']) + found['wrong'])}")


def _lines(found: dict[str, Any]) -> list[str]:
    damaged = [f"damaged: {d['array']}, sample {d['sample']}, in {d['shard']}: {d['reason']}" for d in found["damaged"]]
    quality = [
        f"{name}: PSNR {'lossless' if array['psnr'] is None else format(array['psnr'], '.2f') + ' dB'}, "
        f"largest error {array['max_error']:.3g}"
        for name, array in found["arrays"].items()
    ]
    sound = [] if found["damaged"] or found["wrong"] else [f"{found['samples']} samples: sound"]
    return [*damaged, *quality, *sound]
