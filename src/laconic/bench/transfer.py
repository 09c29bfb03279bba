"""From the host to a GPU and back: the tensor as it is, against its compressed form and the codec's work."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from laconic import chain
from laconic.bench.measure import Contender, Race
from laconic.bench.peers import dct, round_trip_check
from laconic.bench.plan import Plan
from laconic.bench.sweeps import title
from laconic.encoded import Encoded
from laconic.stage import TensorSpec


def races(plan: Plan) -> Iterator[Race]:
    """None on a CPU: nothing is transferred there."""
    if plan.on_gpu:
        shape = (8 if plan.quick else 100, 3, 256, 256)
        for chop in plan.chops:
            yield Race("transfer", title(shape, chop), partial(contenders, plan, shape, chop))


def contenders(plan: Plan, shape: tuple[int, ...], chop: int) -> list[Contender]:
    """All tensors on the host are pinned, and all on both sides are there before the clock starts."""
    x = plan.images(*shape)
    codec, spec = chain.codec(dct(chop)), TensorSpec.of(x)
    y, near = torch.empty_like(x), codec.encode(x)
    host_x, far = x.cpu().pin_memory(), near.to("cpu").pin_memory()

    def upload() -> None:
        _copy_parts(far, near)
        chain.decode(near, out=y)

    def download() -> None:
        codec.encode(x, out=near)
        _copy_parts(near, far)

    check, text, about = round_trip_check("laconic", x, lambda: y, chop), str(codec), {"chop": chop}
    raw, down, up = "transfer of the tensor", "encode, transfer of the parts", "transfer of the parts, decode"
    return [
        Contender("raw", "encode", lambda: host_x.copy_(x, non_blocking=True), spec, raw, parameters=about),
        Contender("raw", "decode", lambda: x.copy_(host_x, non_blocking=True), spec, raw, parameters=about),
        Contender("laconic", "encode", download, spec, down, codec=text, parameters=about),
        Contender("laconic", "decode", upload, spec, up, check, text, parameters=about),
    ]


def _copy_parts(source: Encoded, target: Encoded) -> None:
    for name, part in source.parts.items():
        target.parts[name].copy_(part, non_blocking=True)
