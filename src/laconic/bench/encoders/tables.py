"""An encoders study as tables for people: verdicts, each case, the means, and whom to choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from laconic.bench import machine
from laconic.bench.encoders.model import Choice, Measured, choices, means, speed_up
from laconic.bench.encoders.study import Case, EncodersStudy
from laconic.bench.tables import plain_number, plain_table, verdict_table

NOTE = """Speeds in GB/s of the float32, quantising included
Speed-up: of encode, transfer and decode one after another, over the transfer of the float32
Below 1 the float32 as they are get there sooner
"""
PADDED = "PADDED: every slice is repeated {} times, which flatters dictionary coders"


def tables(study: EncodersStudy) -> Iterator[Table]:
    hardware = machine.summary(study.machine)
    caption = f"{NOTE}{hardware}\n{study.command}"
    if study.verdicts:
        yield verdict_table(study.verdicts, caption)
    for cut in study.cuts():
        for case in study.cases_of(cut):
            rows = sorted(study.rows_of(case), key=lambda row: -row.ratio)
            table = _encoders(study, _title(case), f"{facts(case)}\n{hardware}")
            for row in rows:
                _add(table, study, row.name, row.is_ours, row, row.ran if row.ran != row.codec else "")
            yield table
        yield _means(study, cut, caption)
    yield _choices(choices(study), caption)
    if study.refused:
        yield _refusals(study)


def facts(case: Case) -> str:
    """What is known of a case before anything is encoded."""
    unique = f"unique rows {case.unique_before:.1%} before, {case.unique_after:.1%} after quantising"
    text = f"{case.table_class}, {case.kind}={case.bound:.4g}, {case.code_bits}-bit codes; {unique}"
    text += f"; entropy {case.entropy:.2f} bits a code"
    return text if case.pad == 1 else f"{text}\n{PADDED.format(case.pad)}"


def _title(case: Case) -> str:
    shape = " x ".join(map(str, case.shape))
    cut = "" if case.is_whole else f" in {case.slices} slices of {case.rows}, {case.slices_in_a_call} a call"
    return f"{case.dump} ({shape}){cut}" + f", padded {case.pad} times" * (case.pad > 1)


def _means(study: EncodersStudy, cut: tuple[int, int], caption: str) -> Table:
    rows, pad = cut
    title = f"Harmonic mean of {len(study.cases_of(cut))} tables, {rows} rows" + f", padded {pad} times" * (pad > 1)
    table = _encoders(study, title, (PADDED.format(pad) + "\n" if pad > 1 else "") + caption)
    for mean in means(study, cut):
        _add(table, study, mean.name, mean.is_ours, mean)
    return table


def _encoders(study: EncodersStudy, title: str, caption: str) -> Table:
    table = plain_table(title, caption)
    table.add_column("encoder", no_wrap=True)
    for column in ("ratio", "encode", "decode", *(f"speed-up\n{link:g} GB/s" for link in study.links)):
        table.add_column(column, justify="right")
    table.add_column("ran as")
    return table


def _add(table: Table, study: EncodersStudy, name: str, is_ours: bool, row: Measured, ran: str = "") -> None:
    values = [row.ratio, row.encode_gb_per_s, row.decode_gb_per_s, *(speed_up(row, link) for link in study.links)]
    note = "" if is_ours else "peer"
    table.add_row(escape(name), *map(plain_number, values), escape(ran or note), style="bold" if is_ours else None)


def _choices(found: Sequence[Choice], caption: str) -> Table:
    table = plain_table("Least modelled time, among laconic's encoders", caption)
    for column in ("rows", "padded", "link, GB/s"):
        table.add_column(column, justify="right")
    for column in ("best for all", "speed-up", "best for each", "speed-up", "best peer", "speed-up"):
        table.add_column(column, justify="right" if column == "speed-up" else "left")
    for choice in found:
        each = "\n".join(f"{table_name}: {name}" for table_name, name in choice.per_table.items())
        peer = ("", "") if choice.peer_speed_up is None else (choice.peer or "", plain_number(choice.peer_speed_up))
        table.add_row(
            str(choice.rows),
            str(choice.pad) if choice.pad > 1 else "",
            f"{choice.link:g}",
            escape(choice.single),
            plain_number(choice.single_speed_up),
            escape(each),
            plain_number(choice.per_table_speed_up),
            *peer,
        )
    return table


def _refusals(study: EncodersStudy) -> Table:
    table = plain_table("Not measured", "")
    for column in ("case", "encoder", "why"):
        table.add_column(column)
    for refusal in study.refused:
        table.add_row(refusal.case or "all", escape(refusal.name), escape(refusal.reason))
    return table
