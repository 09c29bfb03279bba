"""How fast samples have to come, and whether they do. Both sides of a ratio come from one race.

The peer is what everybody writes first: a copy of each sample out of a mapped file, with the default collation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from laconic.bench.loader.datasets import COMPRESSED, DECODED, RAW
from laconic.bench.loader.plan import COLD, WARM
from laconic.bench.loader.study import Row
from laconic.bench.packing import FLOOR, WORKERS, PackSpeed
from laconic.bench.study import Verdict

CODEC = "dct:chop=4"
WARM_DECODED, WARM_COMPRESSED = 0.8, 2.0
COLD_PART_OF_RATIO = 0.5


def verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    """What the rows without workers say about every floor."""
    alone = [row for row in rows if row.workers == 0]
    warm = {(row.name, row.deliver): row for row in alone if row.cache == WARM}
    cold = {(row.name, row.deliver): row for row in alone if row.cache == COLD}
    for deliver, floor in ((DECODED, WARM_DECODED), (COMPRESSED, WARM_COMPRESSED)):
        if {(RAW, DECODED), (CODEC, deliver)} <= warm.keys():
            yield _over(warm[CODEC, deliver], warm[RAW, DECODED], floor)
    for (name, _), row in cold.items():
        if row.is_ours and (name, COMPRESSED) in cold:
            yield _over(row, cold[RAW, DECODED], row.ratio * COLD_PART_OF_RATIO)


def packing(speed: PackSpeed) -> list[Verdict]:
    """Writing a store takes little longer than reading what goes into it."""
    readings = {"np.load of the source": speed.over_loading, "reading alone, block after block": speed.over_reading}
    return [
        Verdict(f"packing, {WORKERS} workers: speed over {name}", over, FLOOR, None, True, "x")
        for name, over in readings.items()
    ]


def _over(row: Row, raw: Row, floor: float) -> Verdict:
    name = f"{row.cache}, {row.deliver}, {row.name}: samples/s over {raw.name}"
    return Verdict(name, row.samples_per_s / raw.samples_per_s, round(floor, 2), None, True, "x")
