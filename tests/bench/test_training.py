from __future__ import annotations

import pytest
import torch

from laconic.bench import training
from laconic.bench.measure import WrongResult
from laconic.bench.resnet import ResNet34


def test_the_network_is_the_resnet_34_of_the_literature():
    model = ResNet34("imagenet", classes=1000)
    assert sum(p.numel() for p in model.parameters()) == 21_797_672


@pytest.mark.parametrize(("stem", "size"), [("cifar", 32), ("imagenet", 64)])
def test_a_step_changes_the_weights_and_its_loss_is_checked(stem, size):
    torch.manual_seed(0)
    step = training._step(torch.rand(2, 3, size, size), stem)
    step.run()
    step.check()


def test_a_diverged_training_is_not_timed():
    step = training._step(torch.full((2, 3, 32, 32), float("nan")), "cifar")
    step.run()
    with pytest.raises(WrongResult, match="nan"):
        step.check()
