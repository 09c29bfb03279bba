"""`laconic bench calibrate` and `laconic bench auto`: what encoders cost here, and whether `auto` knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laconic.cli import console

Threads = Annotated[int | None, typer.Option(min=1, help="Beside one. All cores when not given.")]
Json = Annotated[bool, typer.Option("--json", help="Print the JSON instead of tables.")]


def calibrate(
    out: Annotated[Path | None, typer.Option(help="Write the model here, and not where 'auto' looks for it.")] = None,
    threads: Threads = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds: to try, not to keep.")] = False,
    as_json: Json = False,
) -> None:
    """Time every encoder on this machine: the cost model by which 'auto' chooses (about a minute)."""
    import torch

    from laconic.bench.costs import calibrate as costs
    from laconic.bench.costs.tables import model_table
    from laconic.encoders.costs import user_file

    path, threads = out or user_file(), threads or torch.get_num_threads()
    with console.progress(costs.steps(threads)) as begin:
        model = costs.calibrate(threads, costs.QUICK if quick else costs.FULL, begin)
    costs.save(model, path)
    if as_json:
        console.show_json(model.to_json())
    else:
        console.show(
            model_table(model), f"'auto' goes by '{path}' from now on" if out is None else f"Written to '{path}'"
        )


def auto(
    data: Annotated[list[str] | None, typer.Argument(help="Files: .npy, .npz (or A.npz:NAME), .safetensors.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the JSON here.")] = None,
    threads: Threads = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds: to try, not to quote.")] = False,
    as_json: Json = False,
) -> None:
    """Hold 'auto' against every single encoder, and its forecasts against the clock."""
    import torch

    from laconic.bench.costs.check import check, steps
    from laconic.bench.costs.tables import tables
    from laconic.cli.rate_data import data_sets

    tensors = {found.name: found.stacked.squeeze(0) for found in data_sets(data or [])}
    threads = threads or torch.get_num_threads()
    with console.progress(steps(tensors, threads)) as begin:
        study = check(tensors, threads, quick, begin)
    if out is not None:
        study.save(out)
    if as_json:
        console.show_json(study.to_json())
    else:
        console.show(*tables(study))
