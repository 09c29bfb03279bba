"""What the rate study compresses: named groups of tensors of one shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from laconic.errors import MissingExtra, SpecError
from laconic.stage import TensorSpec

SEED = 0
IMAGES = "images"
"""The name of the data set that needs no file."""
PICTURES = ("astronaut", "coffee", "cat", "rocket", "chelsea")
CROPS, SIDE, NOISE = 2, 256, 1 / 255


@dataclass(frozen=True, eq=False)
class DataSet:
    """Tensors that are compressed one by one, as a loader would; a volume is one tensor."""

    name: str
    tensors: tuple[Tensor, ...]
    pixels: bool = False
    """Whether these are images, from 0 to 1: SSIM and JPEG mean something."""

    @property
    def spec(self) -> TensorSpec:
        """All of it as one."""
        first = self.tensors[0]
        shape = tuple(first.shape) if len(self.tensors) == 1 else (len(self.tensors), *first.shape)
        return TensorSpec(shape, first.dtype)

    @property
    def nbytes(self) -> int:
        return self.spec.nbytes

    @cached_property
    def stacked(self) -> Tensor:
        return torch.stack(self.tensors)

    @cached_property
    def ranges(self) -> tuple[float, ...]:
        """max - min of each tensor's finite values, in float64."""
        return tuple(_range(x) for x in self.tensors)

    @property
    def is_volume(self) -> bool:
        """Whether all three dimensions are worth predicting along."""
        x = self.tensors[0]
        return x.dim() == 3 and min(x.shape) >= 8

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.tensors[0].shape)) or "1"
        return f"{self.name}, " + f"{len(self.tensors)} of " * (len(self.tensors) > 1) + shape


def measurable(name: str, x: Tensor) -> DataSet:
    """A tensor from somebody's file; images in uint8 become floats from 0 to 1."""
    if x.dtype == torch.uint8:
        return DataSet(name, (x.contiguous() / 255,), pixels=x.dim() == 2 or (x.dim() == 3 and x.shape[0] in (1, 3)))
    if x.dtype not in (torch.float32, torch.float64) or x.numel() < 2:
        raise SpecError(
            f"'{name}' is {TensorSpec.of(x)}: expected float32 or float64, or uint8 pixels, and more than one element"
        )
    if not x.isfinite().all() or _range(x) == 0:
        raise SpecError(f"'{name}' is constant, or has NaN or Inf: peers have no bound for these. Measure other data")
    return DataSet(name, (x.contiguous(),))


def images() -> DataSet:
    """Two random crops of each picture in [0, 1], with the noise of a sensor: 10 of float32 `[3, 256, 256]`."""
    try:
        from skimage import data
    except ImportError as error:
        raise MissingExtra("scikit-image", "demo", f"The data set '{IMAGES}'") from error
    generator = torch.Generator().manual_seed(SEED)
    crops = [
        crop for name in PICTURES for crop in _crops(torch.from_numpy(getattr(data, name)()).movedim(-1, 0), generator)
    ]
    noise = torch.randn((len(crops), *crops[0].shape), generator=generator) * NOISE
    return DataSet(IMAGES, tuple((torch.stack(crops) + noise).unbind()), pixels=True)


def _crops(picture: Tensor, generator: torch.Generator) -> Sequence[Tensor]:
    def corner(size: int) -> int:
        return int(torch.randint(0, size - SIDE + 1, (), generator=generator))

    corners = [(corner(picture.shape[1]), corner(picture.shape[2])) for _ in range(CROPS)]
    return [picture[:, top : top + SIDE, left : left + SIDE] / 255 for top, left in corners]


def _range(x: Tensor) -> float:
    finite = x[x.isfinite()]
    return float(finite.max().double() - finite.min().double()) if finite.numel() else 0.0
