"""`laconic bench`: how fast codecs are on this machine, as tables, JSON, and figures drawn from the JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laconic.cli import console, embeddings
from laconic.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import torch
    from rich.console import RenderableType

    from laconic.bench.encoders.study import EncodersStudy
    from laconic.bench.plan import Plan
    from laconic.bench.rate.study import RateStudy
    from laconic.bench.study import Study

app = typer.Typer(help="Measure speed: tables, JSON, and figures from the JSON.", no_args_is_help=True)
app.command()(embeddings.encoders)
app.command()(embeddings.analyze)


@app.command()
def blocks(
    out: Annotated[Path | None, typer.Option(help="Write the JSON here.")] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda.")] = "cpu",
    threads: Annotated[int | None, typer.Option(min=1, help="All cores when not given.")] = None,
    chops: Annotated[str | None, typer.Option(help="Such as 2,4,7. By default 1 to 8; 2,4,7 when quick.")] = None,
    serial: Annotated[str, typer.Option(help="Tiles along each axis of the image.")] = "1,2,4",
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything: to try, not to quote.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON instead of tables.")] = False,
) -> None:
    """Time the block transform beside a copy, dense products and training."""
    from laconic.bench.blocks import measure, races
    from laconic.bench.tables import tables

    plan = _plan(device, threads, chops or ("2,4,7" if quick else "1,2,3,4,5,6,7,8"), serial, quick)
    with console.progress(len(list(races(plan)))) as begin:
        result = measure(plan, begin)
    report(result, lambda: tables(result), out, as_json)


@app.command()
def rate(
    data: Annotated[
        list[str], typer.Argument(help="images, or files: .npy, .npz (or A.npz:NAME), .safetensors, .png.")
    ],
    bounds: Annotated[str, typer.Option(help="Shares of max - min: 1e-1..1e-5 (decades), or a list.")] = "1e-1..1e-5",
    codecs: Annotated[list[str] | None, typer.Option(help="One more chain; may be repeated.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the JSON here.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Beside one. All cores when not given.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds: to try, not to quote.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON instead of tables.")] = False,
) -> None:
    """Ratio, quality and speed at each error bound, for laconic's chains and every peer that is installed."""
    import torch

    from laconic.bench.rate.measure import measure, steps
    from laconic.bench.rate.plan import Plan, parse_bounds
    from laconic.bench.rate.tables import tables
    from laconic.cli.rate_data import data_sets

    limits, threads = parse_bounds(bounds), threads or torch.get_num_threads()
    plan = Plan(data_sets(data), tuple(data), limits, tuple(codecs or ()), threads, quick)
    with console.progress(steps(plan)) as begin:
        result = measure(plan, begin)
    report(result, lambda: tables(result), out, as_json)


@app.command()
def plot(
    file: Annotated[Path, typer.Argument(help="What '--out' of 'laconic bench blocks', 'rate' or 'encoders' wrote.")],
    out: Annotated[Path, typer.Option(help="A folder for the figures (SVG).")],
) -> None:
    """Draw the figures of a measurement, from its JSON alone."""
    from laconic.bench.plot import draw

    for path in draw(file, out):
        typer.echo(path)


def report(
    result: Study | RateStudy | EncodersStudy,
    tables: Callable[[], Iterable[RenderableType]],
    out: Path | None,
    as_json: bool,
) -> None:
    """Writes a study where it was asked for, and shows it."""
    if out is not None:
        result.save(out)
    if as_json:
        console.show_json(result.to_json())
    else:
        console.show(*tables())


def _plan(device: str, threads: int | None, chops: str, serial: str, quick: bool) -> Plan:
    import torch

    from laconic.bench.plan import Plan

    return Plan(
        _device(device), threads or torch.get_num_threads(), _numbers("chops", chops), _numbers("serial", serial), quick
    )


def _device(name: str) -> torch.device:
    import torch

    if name not in ("cpu", "cuda") or (name == "cuda" and not torch.cuda.is_available()):
        raise SpecError(f"--device {name}: expected cpu" + ", or cuda, which this machine has not" * (name == "cuda"))
    return torch.device(name)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(int(number) for number in text.split(",")))
    except ValueError as error:
        raise SpecError(f"--{option} {text}: expected whole numbers, such as 1,2,4") from error
