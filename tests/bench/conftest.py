"""A whole study, of tensors so small that it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from laconic.bench import blocks, floors, training
from laconic.bench.measure import Effort
from laconic.bench.plan import Plan
from laconic.bench.study import Study


@pytest.fixture(scope="session")
def tiny_shapes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(floors, "SHAPE", (4, 64, 64))
        patch.setattr(training, "ResNet34", lambda stem, classes: nn.Sequential(nn.Flatten(), nn.LazyLinear(classes)))
        patch.setattr(Plan, "effort", lambda plan, section: Effort(seconds=0, rounds=3))
        yield


@pytest.fixture(scope="session")
def study(tiny_shapes: None) -> Study:
    plan = Plan(torch.device("cpu"), threads=1, chops=(4,), serial=(1, 2), quick=True)
    return blocks.measure(plan, begin=lambda what: None)
