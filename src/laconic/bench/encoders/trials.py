"""One encoder on one load: whether it does its job, how many bytes that takes, and what to time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from laconic import chain
from laconic.batch import EncodedBatch
from laconic.bench.encoders.data import Load
from laconic.bench.encoders.study import OURS, Row
from laconic.bench.measure import Contender, Timing, WrongResult
from laconic.encoded import Encoded
from laconic.encoders.peer import worst_error
from laconic.stage import TensorSpec

Run = Callable[[], object]
Clock = Callable[[int], float]

ONE = "encode and decode, into given tensors"
MANY = "encode_many and decode_many of {} slices"
KNOWN = " (rows known)"
"""Behind an encoder: it is told which row of the table each is, as who looked them up could."""


def chain_of(encoder: str, quantiser: str) -> chain.Codec:
    """The codec behind an encoder's name in the study."""
    return chain.codec(f"{quantiser}|{encoder.removesuffix(KNOWN)}")


@dataclass
class Runner:
    """Both directions of a codec over a load, call by call."""

    codec: chain.Codec
    load: Load
    rows_known: bool = False
    encs: list[Encoded | EncodedBatch] = field(default_factory=list)
    restored: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        singles = [call[0] if len(call) == 1 else None for call in self.load.calls]
        self.rooms = [None if x is None else self.codec.empty(TensorSpec.of(x)) for x in singles]
        self.hints = self.load.hints if self.rows_known else tuple(None for _ in self.load.calls)
        self.outs = [None if x is None else torch.empty_like(x) for x in singles]

    def encode(self) -> None:
        codec, trios = self.codec, zip(self.load.calls, self.rooms, self.hints, strict=True)
        self.encs = [
            codec.encode_many(call, rows=hints)
            if room is None
            else codec.encode(call[0], out=room, rows=None if hints is None else hints[0])
            for call, room, hints in trios
        ]

    def decode(self) -> None:
        found: list[Tensor] = []
        for enc, out in zip(self.encs, self.outs, strict=True):
            found += [chain.decode(enc, out=out)] if isinstance(enc, Encoded) else self.codec.decode_many(enc)
        self.restored = found

    def through_bytes(self) -> tuple[int, list[Tensor]]:
        """What it takes on the wire, and what a receiver would see."""
        wires = [enc.to_bytes() for enc in self.encs]
        found: list[Tensor] = []
        for enc, wire in zip(self.encs, wires, strict=True):
            received = enc.from_bytes(wire)
            found += map(chain.decode, [received] if isinstance(received, Encoded) else received)
        return sum(map(len, wires)), found

    def ran(self) -> str:
        """The chain of most slices: fallbacks and choices show in it."""
        items = [item for enc in self.encs for item in ([enc] if isinstance(enc, Encoded) else enc)]
        chains = Counter("|".join(str(link.stage) for link in item.chain) for item in items)
        return chains.most_common(1)[0][0]

    @property
    def included(self) -> str:
        most = max(map(len, self.load.calls))
        return ONE if most == 1 else MANY.format(most)


class Trial(NamedTuple):
    """What did its job, and its contenders: encode and decode."""

    name: str
    codec: str
    ran: str
    group: str
    encoded_bytes: int
    over_bound: float
    pair: tuple[Contender, Contender]

    def row(self, load: Load, encode: Timing, decode: Timing) -> Row:
        return Row(
            case=load.name,
            name=self.name,
            codec=self.codec,
            ran=self.ran,
            group=self.group,
            threads=self.pair[0].threads or 1,
            nbytes=load.spec.nbytes,
            encoded_bytes=self.encoded_bytes,
            over_bound=self.over_bound,
            encode_seconds=encode.median,
            encode_q1=encode.q1,
            encode_q3=encode.q3,
            decode_seconds=decode.median,
            decode_q1=decode.q1,
            decode_q3=decode.q3,
            rounds=min(encode.rounds, decode.rounds),
            included=self.pair[0].included,
        )


def ours(encoder: str, load: Load, expected: Sequence[Tensor], threads: int) -> Trial:
    """A chain of laconic's. WrongResult where a receiver would see anything but `expected`, what the quantiser
    keeps, or a broken bound; it ends the study."""
    runner = Runner(chain_of(encoder, load.quantiser), load, encoder.endswith(KNOWN))
    runner.encode()
    nbytes, restored = runner.through_bytes()
    check_values(encoder, load, restored, expected)
    pair = contenders(encoder, runner, expected, threads, runner.included)
    return Trial(encoder, str(runner.codec), runner.ran(), OURS, nbytes, over_bound(load, restored), pair)


def quantised_only(load: Load) -> list[Tensor]:
    """What every encoder must give back; WrongResult where that breaks the bound."""
    codec = chain.codec(load.quantiser)
    found = [codec.roundtrip(x) for x in load.tensors]
    if over_bound(load, found) > 1:
        raise WrongResult(f"{load.quantiser} on {load.name} breaks its bound: nothing was timed")
    return found


def contenders(
    name: str,
    runner: Runner,
    expected: Sequence[Tensor],
    threads: int,
    included: str,
    runs: tuple[Run, Run] | None = None,
    clocks: tuple[Clock | None, Clock | None] = (None, None),
) -> tuple[Contender, Contender]:
    """Both directions of a runner, or `runs` that use it; the second is checked after it ran."""
    encode, decode = runs or (runner.encode, runner.decode)
    load = runner.load

    def check() -> None:
        check_values(name, load, runner.restored, expected)

    first = Contender(name, "encode", encode, load.spec, included, threads=threads, clock=clocks[0])
    return first, replace(first, what="decode", run=decode, check=check, clock=clocks[1])


def check_values(name: str, load: Load, restored: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    """Bit for bit. Whoever fell back to the slice as it is may give that."""
    trios = zip(restored, expected, load.tensors, strict=True)
    if not all(_same(found, quantised) or _same(found, x) for found, quantised, x in trios):
        raise WrongResult(f"{name} on {load.name} gives other values than its quantiser keeps: it was not timed")


def _same(x: Tensor, y: Tensor) -> bool:
    return x.shape == y.shape and torch.equal(x.view(torch.int32), y.view(torch.int32))


def over_bound(load: Load, restored: Sequence[Tensor]) -> float:
    """The worst error of all slices, as a share of what each is allowed; where nothing is, nothing may be off."""
    trios = zip(load.tensors, restored, load.limits, strict=True)
    errors = [(worst_error(x.numpy(), y.numpy()), limit) for x, y, limit in trios]
    return max((error / limit if limit else float(error > 0) * 2) for error, limit in errors)
