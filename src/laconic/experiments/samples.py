"""The sample images that scikit-image brings along, so that nothing is downloaded."""

from __future__ import annotations

import torch
from skimage import data
from torch import Tensor

SIDE = 256
PICTURES = {"astronaut": (0, 100), "chelsea": (20, 110), "coffee": (70, 180), "rocket": (90, 200)}
"""Colour images, and where their `SIDE x SIDE` crop begins."""


def pictures() -> Tensor:
    """The crops of `PICTURES` in full resolution: float32 `[4, 3, 256, 256]` from 0 to 1."""
    crops = [colour(name)[:, top : top + SIDE, left : left + SIDE] for name, (top, left) in PICTURES.items()]
    return torch.stack(crops)


def colour(name: str) -> Tensor:
    """A whole image, `[3, H, W]` from 0 to 1."""
    return torch.from_numpy(getattr(data, name)()).movedim(-1, 0).contiguous() / 255


def gray(name: str) -> Tensor:
    """A whole image's luminance, `[H, W]` from 0 to 1."""
    pixels = torch.from_numpy(getattr(data, name)()) / 255
    return pixels if pixels.dim() == 2 else pixels @ torch.tensor([0.2126, 0.7152, 0.0722])
