"""How fast and how small the chains have to be, and whether they are. Both sides of a ratio come from one race."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from laconic import chain
from laconic.bench.measure import Contender, Timing, race
from laconic.bench.peers import copying
from laconic.bench.rate.data import IMAGES, DataSet
from laconic.bench.rate.front import competes, lead
from laconic.bench.rate.plan import Plan
from laconic.bench.rate.study import Row
from laconic.bench.rate.trials import encode_and_decode
from laconic.bench.study import Verdict
from laconic.encoded import Encoded

BITPACK, HUFFMAN = "bound|lorenzo|bitpack", "bound|lorenzo|huffman"
THREE = {name: name.replace("lorenzo", "lorenzo:dims=3") for name in (BITPACK, HUFFMAN)}
AT = 1e-2
FRONT_BOUNDS = (1e-2, 1e-3, 1e-4)

BITPACK_GBS = {"encode": (4.5, 6.0), "decode": (8.0, 12.0)}
BITPACK_OVER_SZ3, BITPACK_RATIO = 8.0, 0.55
HUFFMAN_OVER_SZ3, HUFFMAN_RATIO = (4.0, 6.0), (0.8, 0.9)
HUFFMAN_GBS = {"encode": (1.4, 2.0), "decode": (2.3, 3.0)}
HUFFMAN_OVER_ENTROPY = 1.02
AFFINE = "affine:bits=4,group=128|bitpack:width=4"
AFFINE_GBS = 6.0
TWO_THREADS = 1.7
COPIES = 4
"""Times the images, in one tensor: 31 MB, more than caches hold."""


def verdicts(rows: Sequence[Row]) -> Iterator[Verdict]:
    """What the rows of the study say, on one thread, about the floors of those that were measured."""
    single = [row for row in rows if row.threads == 1]
    at = {row.name: row for row in single if (row.data, row.bound) == (IMAGES, AT)}
    if "SZ3" in at and BITPACK in at:
        yield from _bitpack(at[BITPACK], at["SZ3"])
    if "SZ3" in at and HUFFMAN in at:
        yield from _huffman(at[HUFFMAN], at["SZ3"])
    for data in dict.fromkeys(row.data for row in single if row.data != IMAGES):
        for bound in FRONT_BOUNDS:
            yield from _front([row for row in single if (row.data, row.bound) == (data, bound)])


def _bitpack(row: Row, sz3: Row) -> Iterator[Verdict]:
    """An absolute speed, or a multiple of SZ3's: whichever is met more easily."""
    for what, (floor, aim) in BITPACK_GBS.items():
        name, speed = f"{IMAGES}, bitpack, {what}", _speed(row, what)
        over = speed / _speed(sz3, what)
        if over / BITPACK_OVER_SZ3 > speed / floor:
            yield Verdict(f"{name}: speed over SZ3", over, BITPACK_OVER_SZ3, None, True, "x")
        else:
            yield Verdict(f"{name}: speed", speed, floor, aim, True, " GB/s")
    yield Verdict(f"{IMAGES}, bitpack: ratio over SZ3", row.ratio / sz3.ratio, BITPACK_RATIO, None, True, "x")


def _huffman(row: Row, sz3: Row) -> Iterator[Verdict]:
    for what in ("encode", "decode"):
        over = _speed(row, what) / _speed(sz3, what)
        yield Verdict(f"{IMAGES}, huffman, {what}: speed over SZ3", over, *HUFFMAN_OVER_SZ3, True, "x")
    yield Verdict(f"{IMAGES}, huffman: ratio over SZ3", row.ratio / sz3.ratio, *HUFFMAN_RATIO, True, "x")


def _front(cell: Sequence[Row]) -> Iterator[Verdict]:
    """On a volume the better of two and three dimensions counts."""
    peers = [row for row in cell if not row.is_ours and competes(row)]
    for chain_name, three in THREE.items():
        own = [row for row in cell if row.name in (chain_name, three)]
        if own and peers:
            encoder = chain_name.rpartition("|")[2]
            name = f"{own[0].data}, {encoder}, rel {own[0].bound:g}: lead over the closest peer"
            yield Verdict(name, max(lead(row, peers) for row in own), 1.0, None, True, "x")


def _speed(row: Row, what: str) -> float:
    return row.encode_gb_per_s if what == "encode" else row.decode_gb_per_s


def huffman_alone(data: DataSet, plan: Plan) -> Iterator[Verdict]:
    """On the int8 codes that the images give: speed of codes, and size beside their entropy."""
    codes = int8_codes(data)
    codec = chain.codec("huffman")
    timed = _raced(encode_and_decode("huffman", str(codec), [codes]), plan, threads=1)
    for what, timing in timed.items():
        yield Verdict(
            f"huffman alone, {what}: speed", codes.nbytes / timing.median / 1e9, *HUFFMAN_GBS[what], True, " GB/s"
        )
    over = codec.encode(codes).nbytes / entropy_bytes(codes)
    yield Verdict("huffman alone: size over the entropy", over, HUFFMAN_OVER_ENTROPY, None, False, "x")


def int8_codes(data: DataSet) -> Tensor:
    """What the images leave to an encoder at the bound of the floors."""
    codec = chain.codec(f"bound:rel={AT},width=8|lorenzo")
    return torch.cat([_main(codec.encode(x)).reshape(-1) for x in data.tensors] * COPIES)


def _main(enc: Encoded) -> Tensor:
    return enc.parts["main"]


def entropy_bytes(codes: Tensor) -> float:
    """The order-0 entropy of all codes, in bytes."""
    counts = torch.bincount(codes.reshape(-1).to(torch.int64) + 128, minlength=256).double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log2()).sum() * codes.numel() / 8)


def fixed_size(data: DataSet, plan: Plan) -> Iterator[Verdict]:
    """`affine` into 4 bits, beside a copy."""
    x = _large(data)
    copy = replace(copying(x), what="copy")
    timed = _raced([*encode_and_decode(AFFINE, AFFINE, [x]), copy], plan, threads=1)
    speed = {what: x.nbytes / timing.median / 1e9 for what, timing in timed.items()}
    for what in ("encode", "decode"):
        name = f"affine, 4 bits, {what}: speed (copy_: {speed['copy']:.1f})"
        yield Verdict(name, speed[what], AFFINE_GBS, speed["copy"], True, " GB/s")


def two_threads(data: DataSet, plan: Plan) -> Iterator[Verdict]:
    """Both main chains on one large tensor."""
    if plan.threads < 2:
        return
    x = _large(data)
    for text in (BITPACK, HUFFMAN):
        bounded = text.replace("bound", f"bound:rel={AT:g}")
        pair = encode_and_decode(text, bounded, [x])
        both = [replace(contender, threads=count) for count in (1, 2) for contender in pair]
        one, other = _halves(race(both, plan.effort, torch.device("cpu")))
        for what, before, after in zip(("encode", "decode"), one, other, strict=True):
            name = f"{text.rpartition('|')[2]}, {what}: speed of 2 threads over 1"
            yield Verdict(name, before.median / after.median, TWO_THREADS, None, True, "x")


def check() -> None:
    """Refuses now what could not be measured after minutes of measuring."""
    for text in ("huffman", AFFINE, BITPACK.replace("bound", f"bound:rel={AT:g}")):
        chain.codec(text)


RACES: dict[str, Callable[[DataSet, Plan], Iterator[Verdict]]] = {
    "huffman alone": huffman_alone,
    "fixed size": fixed_size,
    "two threads": two_threads,
}


def _large(data: DataSet) -> Tensor:
    return data.stacked.repeat(COPIES, *[1] * (data.stacked.dim() - 1))


def _halves(timings: list[Timing]) -> tuple[list[Timing], list[Timing]]:
    return timings[: len(timings) // 2], timings[len(timings) // 2 :]


def _raced(contenders: Sequence[Contender], plan: Plan, threads: int) -> dict[str, Timing]:
    """By what each does."""
    timings = race([replace(c, threads=threads) for c in contenders], plan.effort, torch.device("cpu"))
    return {contender.what: timing for contender, timing in zip(contenders, timings, strict=True)}
