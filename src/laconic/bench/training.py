"""Is the codec hidden behind training? A ResNet-34's step, and encode and decode of the batch it trains on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from laconic.bench.measure import Contender, Race, WrongResult
from laconic.bench.peers import codec_pair
from laconic.bench.plan import SEED, Plan
from laconic.bench.resnet import ResNet34, Stem
from laconic.stage import TensorSpec

CLASSES = 10
CHOPS = (2, 4, 7)


def races(plan: Plan) -> Iterator[Race]:
    for stem, size, batch in _workloads(plan):
        shape = (batch, 3, size, size)
        yield Race("training", f"{batch} x 3 x {size} x {size}", partial(_contenders, plan, stem, shape))


def _workloads(plan: Plan) -> list[tuple[Stem, int, int]]:
    """Stem, size of image and of batch."""
    if plan.quick:
        return [("cifar", 32, 4)]
    return [("cifar", 32, 128), ("imagenet", 224, 64)] if plan.on_gpu else [("cifar", 32, 32), ("imagenet", 224, 8)]


def _contenders(plan: Plan, stem: Stem, shape: tuple[int, ...]) -> list[Contender]:
    x = plan.images(*shape)
    pairs = [contender for chop in CHOPS for contender in codec_pair(chop, x, name=f"chop={chop}")]
    return [_step(x, stem), *pairs]


def _step(x: Tensor, stem: Stem) -> Contender:
    torch.manual_seed(SEED)
    model = ResNet34(stem, CLASSES).to(x.device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    labels = torch.arange(x.shape[0], device=x.device) % CLASSES
    loss = torch.zeros((), device=x.device)

    def run() -> None:
        nonlocal loss
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimiser.step()

    def check() -> None:
        if not loss.isfinite():
            raise WrongResult(f"ResNet-34's loss is {loss.item()} after a step: it was not timed")

    included = f"forward, backward and SGD in float32, {stem} stem; no loading of data"
    return Contender("ResNet-34", "train", run, TensorSpec.of(x), included, check)
