"""One codec on one data set at one bound: what it gives, and what to time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from laconic import chain, metrics
from laconic.bench.measure import Contender, Timing, WrongResult
from laconic.bench.rate.data import DataSet
from laconic.bench.rate.study import OURS, Row
from laconic.encoders.peer import worst_error
from laconic.stage import TensorSpec

INTO_ROOM = "the calls, one for each tensor, into given tensors"


@dataclass(frozen=True)
class Outcome:
    """What became of the data: every byte counted, and the largest error as a share of the bound."""

    encoded_bytes: int
    over_bound: float
    psnr: float | None
    ssim: float | None

    @classmethod
    def of(cls, data: DataSet, bound: float, restored: Sequence[Tensor], encoded_bytes: int) -> Outcome:
        back = torch.stack(list(restored)).to(data.stacked.dtype)
        worst = over_bound(data, bound, restored)
        alike = 1.0 if worst == 0 else None
        if data.pixels and worst > 0 and min(back.shape[-2:]) >= 11:
            alike = metrics.ssim(data.stacked, back)
        psnr = metrics.psnr(data.stacked, back) if worst > 0 else None
        return cls(encoded_bytes, worst, psnr, alike if data.pixels else None)


@dataclass(frozen=True)
class Trial:
    """A codec that did its job, and its contenders: encode and decode in turn, for each number of threads."""

    name: str
    codec: str
    group: str
    outcome: Outcome
    contenders: tuple[Contender, ...]

    def rows(self, data: DataSet, bound: float, timings: Sequence[Timing]) -> list[Row]:
        encodes, decodes = timings[::2], timings[1::2]
        return [
            self._row(data, bound, contender, encode, decode)
            for contender, encode, decode in zip(self.contenders[::2], encodes, decodes, strict=True)
        ]

    def _row(self, data: DataSet, bound: float, contender: Contender, encode: Timing, decode: Timing) -> Row:
        return Row(
            data=data.name,
            shape=list(data.spec.shape),
            dtype=str(data.spec.dtype).removeprefix("torch."),
            bound=bound,
            name=self.name,
            codec=self.codec,
            group=self.group,
            threads=contender.threads or 1,
            nbytes=data.nbytes,
            encoded_bytes=self.outcome.encoded_bytes,
            psnr=self.outcome.psnr,
            ssim=self.outcome.ssim,
            over_bound=self.outcome.over_bound,
            encode_seconds=encode.median,
            encode_q1=encode.q1,
            encode_q3=encode.q3,
            decode_seconds=decode.median,
            decode_q1=decode.q1,
            decode_q3=decode.q3,
            rounds=min(encode.rounds, decode.rounds),
            included=contender.included,
        )


def over_bound(data: DataSet, bound: float, restored: Sequence[Tensor]) -> float:
    """The worst of all tensors, each against its own bound."""
    trios = zip(data.tensors, restored, data.ranges, strict=True)
    return max(worst_error(x.numpy(), y.numpy()) / (bound * span) for x, y, span in trios)


def ours(name: str, codec: str, data: DataSet, bound: float, threads: Sequence[int]) -> Trial:
    """A chain of laconic's, by way of the front door. Breaking its bound is an error, and ends the study."""
    pair = encode_and_decode(name, codec, data.tensors)
    for contender in pair:
        contender.run()
    pair[1].check()
    encs = [chain.codec(codec).encode(x) for x in data.tensors]
    outcome = Outcome.of(data, bound, [chain.decode(enc) for enc in encs], sum(enc.nbytes for enc in encs))
    if "bound" in codec and outcome.over_bound > 1:
        raise WrongResult(f"{codec} on {data} is off by {outcome.over_bound:g} times its bound: it was not timed")
    contenders = [replace(contender, threads=count) for count in threads for contender in pair]
    return Trial(name, str(chain.codec(codec)), OURS, outcome, tuple(contenders))


def encode_and_decode(name: str, text: str, tensors: Sequence[Tensor]) -> tuple[Contender, Contender]:
    """Both directions over all tensors, with memory that is there already."""
    codec, spec = chain.codec(text), DataSet(name, tuple(tensors)).spec
    rooms = [codec.empty(TensorSpec.of(x)) for x in tensors]
    encs = [codec.encode(x, out=room) for x, room in zip(tensors, rooms, strict=True)]
    outs = [torch.empty_like(x) for x in tensors]
    expected = [chain.decode(codec.encode(x)) for x in tensors]

    def encode() -> None:
        for i, (x, room) in enumerate(zip(tensors, rooms, strict=True)):
            encs[i] = codec.encode(x, out=room)

    def decode() -> None:
        for enc, out in zip(encs, outs, strict=True):
            chain.decode(enc, out=out)

    def check() -> None:
        if not all(torch.equal(out, y) for out, y in zip(outs, expected, strict=True)):
            raise WrongResult(f"{text} gives other values into given memory: it was not timed")

    return (
        Contender(name, "encode", encode, spec, INTO_ROOM, codec=text),
        Contender(name, "decode", decode, spec, INTO_ROOM, check, text),
    )
