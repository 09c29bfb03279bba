"""How small and how fast the encoders have to be, and whether they are. Both sides of a ratio come from one race."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from laconic import chain
from laconic.bench.encoders.data import entropy, quantised
from laconic.bench.encoders.plan import Plan
from laconic.bench.encoders.study import Case, Row
from laconic.bench.measure import Contender, Timing, WrongResult, race
from laconic.bench.study import Verdict
from laconic.stage import TensorSpec

SEED = 0
BASE = "zstd:level=1"
WHOLE_RATIO, SLICED_RATIO = 1.3, 1.2
SLICED_ROWS = 64
RANS_GBS = {"encode": 1.0, "decode": 1.5}
RANS_OVER_ENTROPY = 1.01
VLZ_DECODE, VLZ_OVER_HUFFMAN = 2.0, 0.9
ALONE = ("huffman", "rans", "vlz")
ROWS, QUICK_ROWS, WIDTH, SIGMA = 262144, 2048, 64, 6.0
"""16 MB of codes without a repeated row, or 128 kB to try; and how far they spread."""


def verdicts(cases: Sequence[Case], rows: Sequence[Row]) -> Iterator[Verdict]:
    """What the rows of the study say: on whole tables and on slices, never on what is padded."""
    for case in cases:
        if case.pad == 1 and (case.is_whole or case.rows == SLICED_ROWS):
            ours = {row.name: row for row in rows if row.case == case.name and row.is_ours}
            if BASE in ours:
                yield _smallest(case, ours)


def _smallest(case: Case, ours: dict[str, Row]) -> Verdict:
    """Of those that are at least as fast both ways."""
    base = ours[BASE]
    able = [row for row in ours.values() if _is_as_fast(row, base)]
    best = max(able, key=lambda row: row.ratio)
    floor = WHOLE_RATIO if case.is_whole else SLICED_RATIO
    name = f"{case.name}, {best.name}: ratio over {BASE} at its speed both ways"
    return Verdict(name, best.ratio / base.ratio, floor, None, True, "x")


def _is_as_fast(row: Row, base: Row) -> bool:
    return row.encode_seconds <= base.encode_seconds and row.decode_seconds <= base.decode_seconds


def without_repeats(plan: Plan, encoders: Sequence[str]) -> Iterator[Verdict]:
    """Entropy coders alone, on int8 codes as a normal distribution gives them."""
    codes = normal_codes(QUICK_ROWS if plan.quick else ROWS)
    names = [name for name in ALONE if name in encoders]
    if names == ["huffman"]:
        return
    speed = _speeds(names, codes, plan)
    if "rans" in names:
        for what, floor in RANS_GBS.items():
            yield Verdict(f"rans alone, {what}: speed of codes", speed["rans", what], floor, None, True, " GB/s")
        over = chain.encode(codes, "rans").nbytes * 8 / (entropy([codes]) * codes.numel())
        yield Verdict("rans alone: size over the entropy", over, RANS_OVER_ENTROPY, None, False, "x")
    if "vlz" in names and "huffman" in names:
        for what in ("encode", "decode"):
            over = speed["vlz", what] / speed["huffman", what]
            name = f"vlz without repeats, {what}: speed over huffman"
            yield Verdict(name, over, VLZ_OVER_HUFFMAN, None, True, "x")


def repeats(plan: Plan, encoders: Sequence[str]) -> Iterator[Verdict]:
    """`vlz` alone, on the codes of each whole table."""
    for load in plan.loads():
        if "vlz" in encoders and len(load.slices) == load.pad == 1:
            (parts,) = quantised(load.tensors, load.quantiser)
            speed = _speeds(["vlz"], parts.main, plan)
            name = f"{load.name}, vlz alone: speed of decode over encode"
            yield Verdict(name, speed["vlz", "decode"] / speed["vlz", "encode"], VLZ_DECODE, None, True, "x")


RACES: dict[str, Callable[[Plan, Sequence[str]], Iterator[Verdict]]] = {
    "codes without repeats": without_repeats,
    "codes of whole tables": repeats,
}
"""Floors that need a race of their own, each told which encoders run here."""


def normal_codes(rows: int) -> Tensor:
    generator = torch.Generator().manual_seed(SEED)
    return (torch.randn(rows, WIDTH, generator=generator) * SIGMA).round().clamp(-128, 127).to(torch.int8)


def _speeds(names: Sequence[str], codes: Tensor, plan: Plan) -> dict[tuple[str, str], float]:
    """GB/s of codes, by encoder and direction."""
    pairs = [one for name in names for one in _pair(name, codes)]
    if not pairs:
        return {}
    timings: list[Timing] = race(pairs, plan.effort, torch.device("cpu"))
    return {(c.name, c.what): codes.nbytes / t.median / 1e9 for c, t in zip(pairs, timings, strict=True)}


def _pair(name: str, codes: Tensor) -> tuple[Contender, Contender]:
    codec, spec = chain.codec(name), TensorSpec.of(codes)
    room, out = codec.empty(spec), torch.empty_like(codes)
    enc = codec.encode(codes)

    def check() -> None:
        if not torch.equal(out, codes):
            raise WrongResult(f"{name} gives other codes back: it was not timed")

    encode = Contender(name, "encode", lambda: codec.encode(codes, out=room), spec, "the call, into a given tensor")
    return encode, replace(encode, what="decode", run=lambda: chain.decode(enc, out=out), check=check)
