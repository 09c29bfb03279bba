"""`laconic bench encoders` and `laconic bench analyze`: which encoder, and which bounds, a training run's look-ups call
for."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laconic.cli import console
from laconic.errors import SpecError
from laconic.files import replacing

if TYPE_CHECKING:
    from laconic.bench.encoders.plan import Kind
    from laconic.schedule import TableBounds

Dumps = Annotated[
    list[str],
    typer.Argument(
        help="Files or folders: raw float32 (.bin), .npy, or .npz with an array for each table. The table, and the "
        "iteration where there is one, are read from the name: table_5_iter_2000.bin, EMB_5_iter_2000.bin."
    ),
]
Width = Annotated[int, typer.Option(min=1, help="Values in a row, for files that do not say.")]
Out = Annotated[Path | None, typer.Option(help="Write the JSON here.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON instead of tables.")]


def encoders(
    dumps: Dumps,
    width: Width = 64,
    bound: Annotated[
        str | None, typer.Option(help="rel=, abs= or rms=: of the class base. rel=0.03 when no class file says.")
    ] = None,
    classes: Annotated[Path | None, typer.Option(help="Bounds of tables, as 'laconic bench analyze' writes.")] = None,
    stage: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=10,
            help="For dumps whose name has no iteration: bounds as where this one of ten stages of the schedule "
            "begins (of the class file, else step from 2 to 1); 10, as without it: after the decay.",
        ),
    ] = None,
    rows: Annotated[str, typer.Option(help="Rows of a slice. What is less than 2048 goes by encode_many.")] = "2048,64",
    pad: Annotated[
        str, typer.Option(help="Repeat slices of the most rows so often; takes longer, and flatters dictionary coders.")
    ] = "1",
    link: Annotated[str, typer.Option(help="GB/s for which speed-ups are modelled.")] = "1,4,12.5",
    codes: Annotated[str, typer.Option(help="Bits of a code: auto, 8, 16 or 32.")] = "auto",
    encoders: Annotated[list[str] | None, typer.Option(help="One more, such as 'rows|lz4'; may be repeated.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Most peers have but one.")] = 1,
    out: Out = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds: to try, not to quote.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ratio, speed and modelled gain of every encoder on dumped embedding look-ups, beside every peer."""
    from laconic.bench.encoders.measure import measure, steps
    from laconic.bench.encoders.plan import Plan
    from laconic.bench.encoders.tables import tables
    from laconic.cli.bench import report
    from laconic.cli.dumps import dumps as read

    bounds, kind = table_bounds(bound, classes)
    plan = Plan(
        dumps=read(dumps, width),
        sources=tuple(dumps),
        bounds=bounds,
        kind=kind,
        classes=None if classes is None else str(classes),
        stage=stage,
        rows=_whole("rows", rows),
        pads=_whole("pad", pad),
        links=_numbers("link", link),
        codes=codes,
        encoders=tuple(encoders or ()),
        threads=threads,
        quick=quick,
    )
    with console.progress(steps(plan)) as begin:
        result = measure(plan, begin)
    report(result, lambda: tables(result), out, as_json)


def analyze(
    dumps: Dumps,
    width: Width = 64,
    bound: Annotated[str, typer.Option(help="rel= of the class base.")] = "rel=0.03",
    tighten: Annotated[float | None, typer.Option(help="Of the class tighten; a third of the base.")] = None,
    loosen: Annotated[float | None, typer.Option(help="Of the class loosen; five thirds of the base.")] = None,
    bounds: Annotated[str, typer.Option(help="Count unique rows at these, too.")] = "0.01,0.02,0.03,0.05,0.1",
    merged: Annotated[
        float, typer.Option(help="Tighten where the base merges more than this share of the distinct rows.")
    ] = 0.1,
    kept: Annotated[float, typer.Option(help="Loosen where that merges at most this share of them.")] = 0.01,
    smooth: Annotated[
        float, typer.Option(help="Tighten where the base is wider than so many standard deviations; loosen to no more.")
    ] = 1.0,
    decay: Annotated[
        str | None, typer.Option(help="Write a schedule too: step, linear, log, cosine or constant.")
    ] = None,
    factor: Annotated[float, typer.Option(help="What bounds are multiplied with at first.")] = 2,
    until: Annotated[int, typer.Option(help="The iteration from which on they are as given.")] = 65536,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Find the class of each table (tighten, base, loosen) from its dumps, and write the file that --classes reads."""
    from laconic.bench.encoders.analysis import Rule
    from laconic.bench.encoders.analysis import analyze as run
    from laconic.bench.encoders.plan import parse_bound
    from laconic.cli.dumps import dumps as read
    from laconic.schedule import EbSchedule, TableBounds

    kind, base = parse_bound(bound)
    if kind != "rel":
        raise SpecError(f"--bound {bound}: expected rel=, such as rel=0.03: tables are compared by their own ranges")
    schedule = None if decay is None else EbSchedule(decay, factor, until)  # type: ignore[arg-type]  # it checks
    tighten = _nice(base / 3) if tighten is None else tighten
    loosen = _nice(base * 5 / 3) if loosen is None else loosen
    given = TableBounds(base, tighten, loosen, schedule=schedule)
    rule, at, found = Rule(merged, kept, smooth), _numbers("bounds", bounds), read(dumps, width)
    command = " ".join(["laconic bench analyze", *(shlex.quote(Path(source).name) for source in dumps)])
    with console.progress(len({dump.table for dump in found})) as begin:
        result = run(found, given, at, rule, f"{command} --bound {bound}", begin)
    if out is not None:
        with replacing(out) as temporary:
            temporary.write_text(console.json_text(result.to_json()) + "\n")
    if as_json:
        console.show_json(result.to_json())
    else:
        console.show(result.table())


def _nice(bound: float) -> float:
    """Without what dividing left behind the digits that matter."""
    return float(f"{bound:.4g}")


def table_bounds(bound: str | None, classes: Path | None) -> tuple[TableBounds, Kind]:
    """The class file's bounds; what was typed takes the place of its base."""
    from laconic.bench.encoders.plan import parse_bound
    from laconic.schedule import TableBounds

    found = TableBounds() if classes is None else TableBounds.from_json(classes)
    if bound is None:
        return found, "rel"
    kind, value = parse_bound(bound)
    return replace(found, base=value), kind


def _whole(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(int(number) for number in text.split(",")))
    except ValueError as error:
        raise SpecError(f"--{option} {text}: expected whole numbers, such as 1,32") from error


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(dict.fromkeys(float(number) for number in text.split(",")))
    except ValueError as error:
        raise SpecError(f"--{option} {text}: expected numbers, such as 4,12.5") from error
