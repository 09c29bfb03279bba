"""The train loop that every experiment shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Recipe:
    """How long to train, and how: Adam, its rate falling to zero along a cosine."""

    steps: int
    batch: int = 16
    learning_rate: float = 4e-3
    evaluations: int = 6


@dataclass(frozen=True)
class Curve:
    """Mean squared errors on the way: the training loss since the last evaluation, and the test loss then."""

    step: list[int]
    train: list[float]
    test: list[float]


def fit(
    model: nn.Module, inputs: Tensor, targets: Tensor, test: Callable[[], float], recipe: Recipe, seed: int
) -> Curve:
    """Trains in place. The seed decides the order of the samples."""
    optimiser = torch.optim.Adam(model.parameters(), recipe.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, recipe.steps)
    order = torch.Generator().manual_seed(seed)
    curve, since = Curve([], [], []), []
    evaluate_at = {max(1, recipe.steps * i // recipe.evaluations) for i in range(1, recipe.evaluations + 1)}
    for step in range(1, recipe.steps + 1):
        chosen = torch.randint(len(inputs), (recipe.batch,), generator=order)
        loss = functional.mse_loss(model(inputs[chosen]), targets[chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        since.append(loss.item())
        if step in evaluate_at:
            curve.step.append(step)
            curve.train.append(sum(since) / len(since))
            curve.test.append(test())
            since.clear()
    return curve
