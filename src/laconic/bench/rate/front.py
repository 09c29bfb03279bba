"""Who is on the Pareto front: small and fast both ways at once.

A row is behind another that is at least as small and at least as fast in both directions, and better in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from laconic.bench.rate.study import Row

TOLERANCE = 1.01
"""Some peers break a tight bound by the last bit of float32. Up to this share they still compete, and are marked."""

Merits = tuple[float, float, float]


def merits(row: Row) -> Merits:
    """What there is to be better in: ratio, and GB/s of encoding and decoding."""
    return row.ratio, row.encode_gb_per_s, row.decode_gb_per_s


def competes(row: Row) -> bool:
    return row.over_bound <= TOLERANCE


def is_behind(row: Row, other: Row) -> bool:
    pairs = list(zip(merits(row), merits(other), strict=True))
    return all(theirs >= own for own, theirs in pairs) and any(theirs > own for own, theirs in pairs)


def front(rows: Sequence[Row]) -> list[Row]:
    """Those that nobody is ahead of, the smallest first."""
    able = [row for row in rows if competes(row)]
    ahead = [row for row in able if not any(is_behind(row, other) for other in able)]
    return sorted(ahead, key=lambda row: -row.ratio)


def lead(row: Row, peers: Iterable[Row]) -> float:
    """How far a row is from being behind the peer that comes closest to it: by what factor that peer would have to
    improve in what it is worst at. At least 1 is on the front of all these peers."""
    leads = [max(own / theirs for own, theirs in zip(merits(row), merits(peer), strict=True)) for peer in peers]
    return min(leads, default=1.0)
