"""Does a network learn as well from images that were stored compressed? A denoiser, as for electron micrographs.

    clean patch --shot noise--> noisy --codec.roundtrip--> what the training set holds --network--> clean?

The images to test with are never seen in training. Within a seed, all codecs meet the same patches, noise, initial
weights and order, so that their losses differ by the codec alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

import laconic
from laconic.experiments import samples
from laconic.experiments.train import Curve, Recipe, fit

TRAIN = ("astronaut", "brick", "chelsea", "coffee", "coins", "gravel", "immunohistochemistry", "rocket")
TEST = ("camera", "cell", "grass")
PATCH = 40
TRAIN_PATCHES = 256
TEST_PATCHES = 36
DOSE = 30
"""Quanta that a white pixel counts, on average: the fewer, the noisier."""
UNCOMPRESSED = "uncompressed"
SHOWN = ("camera", 40, 180, 144)
"""The image, top, left and side of the sample that the page shows."""


@dataclass(frozen=True)
class Outcome:
    """What training on inputs of one codec came to: mean squared errors after the last step, one for each seed."""

    codec: str
    test: list[float] = field(default_factory=list)
    """Of test inputs that went through the codec too: all data are stored compressed."""
    test_raw: list[float] = field(default_factory=list)
    """Of test inputs as they are: only the training set is stored compressed."""
    curves: list[Curve] = field(default_factory=list)


@dataclass(frozen=True)
class Sample:
    """One test image: as the network reads it, and as the network of the first seed cleans it."""

    stored: Tensor
    cleaned: Tensor


@dataclass(frozen=True)
class Denoising:
    outcomes: list[Outcome]
    clean: Tensor
    samples: dict[str, Sample]


class Denoiser(nn.Module):
    """Four convolutions that guess the noise, which is then subtracted."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        inner = [layer for _ in range(2) for layer in (nn.Conv2d(width, width, 3, padding=1), nn.ReLU())]
        self.noise = nn.Sequential(
            *(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), *inner, nn.Conv2d(width, 1, 3, padding=1))
        )

    def forward(self, x: Tensor) -> Tensor:
        return x.sub(self.noise(x))


def run(codecs: Sequence[str], seeds: Sequence[int], recipe: Recipe, begin: Callable[[str], None]) -> Denoising:
    """Trains once for each codec and seed, and uncompressed."""
    outcomes = {name: Outcome(name) for name in (UNCOMPRESSED, *codecs)}
    shown, found = _shown(), {}
    for seed in seeds:
        clean, noisy = _patches(TRAIN, TRAIN_PATCHES, seed)
        test_clean, test_noisy = _patches(TEST, TEST_PATCHES, seed + 1000)
        for name, outcome in outcomes.items():
            begin(f"training, seed {seed}: {name}")
            stored = _roundtrip(name, noisy)
            test_stored = _roundtrip(name, test_noisy)
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                model = Denoiser()
            evaluate = _Loss(model, test_stored, test_clean)
            outcome.curves.append(fit(model, stored, clean, evaluate, recipe, seed))
            outcome.test.append(evaluate())
            outcome.test_raw.append(_Loss(model, test_noisy, test_clean)())
            if seed == seeds[0]:
                found[name] = _sample(model, name, shown)
    return Denoising(list(outcomes.values()), shown, found)


@dataclass(frozen=True)
class _Loss:
    """The mean squared error of a model, whenever it is asked for."""

    model: nn.Module
    inputs: Tensor
    targets: Tensor

    @torch.no_grad()
    def __call__(self) -> float:
        return functional.mse_loss(self.model(self.inputs), self.targets).item()


def _patches(names: Sequence[str], count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Clean and noisy patches `[count, 1, PATCH, PATCH]`, as many from each image."""
    generator = torch.Generator().manual_seed(seed)
    images = [samples.gray(name) for name in names]
    clean = torch.stack([_patch(images[i % len(images)], generator) for i in range(count)])[:, None]
    return clean, _add_noise(clean, generator)


def _patch(image: Tensor, generator: torch.Generator) -> Tensor:
    top, left = (int(torch.randint(size - PATCH + 1, (), generator=generator)) for size in image.shape)
    return image[top : top + PATCH, left : left + PATCH]


def _add_noise(clean: Tensor, generator: torch.Generator) -> Tensor:
    """Shot noise: each pixel counts whole quanta."""
    return torch.poisson(clean * DOSE, generator) / DOSE


def _roundtrip(name: str, x: Tensor) -> Tensor:
    return x if name == UNCOMPRESSED else laconic.codec(name).roundtrip(x)


def _shown() -> Tensor:
    name, top, left, side = SHOWN
    return samples.gray(name)[top : top + side, left : left + side].contiguous()


@torch.no_grad()
def _sample(model: nn.Module, name: str, clean: Tensor) -> Sample:
    noisy = _add_noise(clean, torch.Generator().manual_seed(0))
    stored = _roundtrip(name, noisy[None, None])
    return Sample(stored[0, 0], model(stored)[0, 0])
