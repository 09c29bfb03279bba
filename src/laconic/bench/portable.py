"""The pure-torch form that static compilers take: cut into serial tiles, and by the span of its matrices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from laconic.bench.measure import Contender, Race
from laconic.bench.peers import BLOCK, copying, dct, dense_pair, round_trip_check
from laconic.bench.plan import SERIAL_IMAGE, Plan
from laconic.bench.sweeps import title
from laconic.nn import Compress, Decompress
from laconic.ops import block as ops
from laconic.stage import TensorSpec
from laconic.transforms.bases import Dct
from laconic.transforms.block import matrix

SPANS = (8, 16, 32, 64, 128, None)
CHOPS = (2, 4, 7)


def serial(plan: Plan) -> Iterator[Race]:
    """Tiles one after another: smaller matrices, for accelerators whose memory is small."""
    images = 2 if plan.quick else 100 if plan.on_gpu else 16
    shape = (images, *SERIAL_IMAGE)
    for chop in plan.chops:
        yield Race("serial", title(shape, chop), partial(_serials, plan, shape, chop))


def spans(plan: Plan) -> Iterator[Race]:
    """How many pixels a matrix should cover: the evidence for `SPAN` in `ops/block.py`."""
    shape = (8 if plan.quick else 100, 3, 256, 256)
    for chop in CHOPS:
        yield Race("portable", title(shape, chop), partial(_spans, plan, shape, chop))


def _serials(plan: Plan, shape: tuple[int, ...], chop: int) -> list[Contender]:
    x = plan.images(*shape)
    return [c for serial in plan.serial for c in module_pair(f"serial={serial}", chop, x, serial, None)]


def _spans(plan: Plan, shape: tuple[int, ...], chop: int) -> list[Contender]:
    x = plan.images(*shape)
    contenders = [copying(x), *dense_pair(chop, x), *reference_pair(chop, x)]
    for span in SPANS:
        contenders += module_pair(f"span={span or 'whole'}", chop, x, 1, span)
    return contenders


def module_pair(name: str, chop: int, x: Tensor, serial: int, span: int | None) -> list[Contender]:
    """`laconic.nn.Compress` and `Decompress`."""
    codec, spec = dct(chop), TensorSpec.of(x)
    compress = Compress(codec, x.shape, serial, span=span).to(x.device)
    decompress = Decompress(codec, x.shape, serial, span=span).to(x.device)
    y = compress(x)
    check = round_trip_check(name, x, lambda: decompress(y), chop)
    about = {"chop": chop, "serial": serial, "span": span or x.shape[-1] // serial}
    included = "the module's call, its result allocated"

    def contender(what: str, module: torch.nn.Module, argument: Tensor) -> Contender:
        parameters = about | {"matrix_bytes": sum(buffer.nbytes for buffer in module.buffers())}
        return Contender(name, what, lambda: module(argument), spec, included, check, codec, parameters=parameters)

    return [contender("encode", compress, x), contender("decode", decompress, y)]


def reference_pair(chop: int, x: Tensor) -> list[Contender]:
    """What `encode` and `decode` run where there is no faster body: makes its matrices in every call."""
    spec = TensorSpec.of(x)
    analysis, synthesis = (matrix(Dct, BLOCK, side, x.device) for side in ("analysis", "synthesis"))
    y = x.new_empty(ops.coefficient_shape(x.shape, BLOCK, chop, False))
    back = torch.empty_like(x)
    check = round_trip_check("reference", x, lambda: back, chop)
    about, included = {"chop": chop, "span": ops.SPAN}, "the operator's reference body, into a given tensor"

    def encode() -> None:
        ops.reference_encode(x, analysis, chop, False, y)

    def decode() -> None:
        ops.reference_decode(y, synthesis, chop, False, back)

    return [
        Contender("reference", "encode", encode, spec, included, codec=dct(chop), parameters=about),
        Contender("reference", "decode", decode, spec, included, check, dct(chop), parameters=about),
    ]
