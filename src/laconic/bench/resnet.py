"""ResNet-34 (He et al. 2016), for something real to train beside the codec."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

Stem = Literal["cifar", "imagenet"]
"""For images of 32 x 32, or for large ones: reduces them by 4 before the first block."""


class BasicBlock(nn.Module):
    """Two convolutions, and a way round them."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_convolution(channels, out, 3, stride), nn.ReLU(inplace=True), *_convolution(out, out, 3, 1)
        )
        reshapes = stride != 1 or channels != out
        self.shortcut = nn.Sequential(*_convolution(channels, out, 1, stride)) if reshapes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.shortcut(x))


class ResNet34(nn.Sequential):
    """Images `[n, 3, h, w]` to scores `[n, classes]`."""

    def __init__(self, stem: Stem, classes: int = 10) -> None:
        layers = _stem(stem)
        channels = 64
        for out, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
            for i in range(blocks):
                layers.append(BasicBlock(channels, out, stride=2 if i == 0 and out > 64 else 1))
                channels = out
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def _stem(stem: Stem) -> list[nn.Module]:
    if stem == "cifar":
        return [*_convolution(3, 64, 3, 1), nn.ReLU(inplace=True)]
    return [*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)]


def _convolution(channels: int, out: int, size: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, out, size, stride, size // 2, bias=False), nn.BatchNorm2d(out)]
