"""What compression gains on a link: encoding, transfer and decoding one after another, beside transfer alone.

    speed-up = 1 / (1 / ratio + link * (1 / encode + 1 / decode))        link and speeds in GB/s of the floats

Its inverse is the sum of three shares of the time that the floats as they are would take: what the figures stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import harmonic_mean
from typing import Any, NamedTuple, Protocol

from laconic.bench.encoders.study import Case, EncodersStudy, Row


class Measured(Protocol):
    """A row, or the mean of several."""

    @property
    def ratio(self) -> float: ...
    @property
    def encode_gb_per_s(self) -> float: ...
    @property
    def decode_gb_per_s(self) -> float: ...


class Shares(NamedTuple):
    """Of the time that the floats as they are would take."""

    encode: float
    transfer: float
    decode: float


@dataclass(frozen=True)
class Mean:
    """An encoder over all tables that were cut alike: harmonic means, as if each table had the same size."""

    name: str
    is_ours: bool
    ratio: float
    encode_gb_per_s: float
    decode_gb_per_s: float


@dataclass(frozen=True)
class Choice:
    """The encoders that take the least modelled time on a link: one for all tables, and one for each."""

    rows: int
    pad: int
    link: float
    single: str
    single_speed_up: float
    per_table: dict[str, str]
    per_table_speed_up: float
    peer: str | None
    """The best of the peers, as one for all tables."""
    peer_speed_up: float | None


def shares(row: Measured, link: float) -> Shares:
    return Shares(link / row.encode_gb_per_s, 1 / row.ratio, link / row.decode_gb_per_s)


def speed_up(row: Measured, link: float) -> float:
    return 1 / sum(shares(row, link))


def means(study: EncodersStudy, cut: tuple[int, int]) -> list[Mean]:
    """Those that ran on every table of this cut, the smallest first."""
    cases = study.cases_of(cut)
    by_name: dict[str, list[Row]] = {}
    for case in cases:
        for row in study.rows_of(case):
            by_name.setdefault(row.name, []).append(row)
    found = [_mean(rows) for rows in by_name.values() if len(rows) == len(cases)]
    return sorted(found, key=lambda mean: -mean.ratio)


def _mean(rows: Sequence[Row]) -> Mean:
    columns = zip(*((row.ratio, row.encode_gb_per_s, row.decode_gb_per_s) for row in rows), strict=True)
    return Mean(rows[0].name, rows[0].is_ours, *map(harmonic_mean, columns))


def choices(study: EncodersStudy) -> list[Choice]:
    """For each cut and link, among laconic's own encoders."""
    return [_choice(study, cut, link) for cut in study.cuts() for link in study.links if _ours(means(study, cut))]


def _choice(study: EncodersStudy, cut: tuple[int, int], link: float) -> Choice:
    averages = means(study, cut)
    single = max(_ours(averages), key=lambda mean: speed_up(mean, link))
    best = {case.dump: best_on(study, case, link) for case in study.cases_of(cut)}
    peers = [mean for mean in averages if not mean.is_ours]
    peer = max(peers, key=lambda mean: speed_up(mean, link), default=None)
    return Choice(
        *cut,
        link,
        single.name,
        speed_up(single, link),
        {dump: row.name for dump, row in best.items()},
        harmonic_mean([speed_up(row, link) for row in best.values()]),
        peer.name if peer else None,
        speed_up(peer, link) if peer else None,
    )


def best_on(study: EncodersStudy, case: Case, link: float) -> Row:
    """Laconic's encoder that takes the least modelled time on one table."""
    return max((row for row in study.rows_of(case) if row.is_ours), key=lambda row: speed_up(row, link))


def summary(study: EncodersStudy) -> dict[str, Any]:
    """What the JSON says beside what was measured."""
    averages = [
        {"rows": rows, "pad": pad} | asdict(mean) | {"speed_ups": [speed_up(mean, link) for link in study.links]}
        for rows, pad in study.cuts()
        for mean in means(study, (rows, pad))
    ]
    return {"means": averages, "choices": [asdict(choice) for choice in choices(study)]}


def _ours(averages: Iterable[Mean]) -> list[Mean]:
    return [mean for mean in averages if mean.is_ours]
