"""The bases of the block transform. A new one is a class here and a row in the registry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from laconic.transforms.block import BlockTransform


@dataclass(frozen=True)
class Dct(BlockTransform):
    """The orthonormal DCT-II, as in JPEG: smooth data ends up in few coefficients."""

    name: ClassVar[str] = "dct"
    example: ClassVar[str] = "dct:chop=4"
    blocks: ClassVar[tuple[int, ...]] = (4, 8, 16, 32)

    @staticmethod
    def analysis(block: int) -> Tensor:
        i = torch.arange(block, dtype=torch.float64, device="cpu")[:, None]
        waves = torch.cos(math.pi * (2 * i.T + 1) * i / (2 * block)) * math.sqrt(2 / block)
        waves[0] = 1 / math.sqrt(block)
        return waves


@dataclass(frozen=True)
class Zfp(BlockTransform):
    """The transform of the ZFP compressor, on its blocks of 4 x 4: nearly the DCT's compaction, in small fractions."""

    block: int = 4

    name: ClassVar[str] = "zfp"
    example: ClassVar[str] = "zfp:chop=2"
    blocks: ClassVar[tuple[int, ...]] = (4,)

    @staticmethod
    def analysis(block: int) -> Tensor:
        sixteenths = [[4, 4, 4, 4], [5, 1, -1, -5], [-4, 4, 4, -4], [-2, 6, -6, 2]]
        return torch.tensor(sixteenths, dtype=torch.float64, device="cpu") / 16


@dataclass(frozen=True)
class Hadamard(BlockTransform):
    """Walsh functions: only additions. Ordered by their changes of sign, so that the slow ones are kept."""

    name: ClassVar[str] = "hadamard"
    example: ClassVar[str] = "hadamard:chop=4"
    blocks: ClassVar[tuple[int, ...]] = (4, 8, 16, 32)

    @staticmethod
    def analysis(block: int) -> Tensor:
        signs = torch.ones(1, 1, dtype=torch.float64, device="cpu")
        while signs.shape[0] < block:
            signs = torch.kron(torch.tensor([[1, 1], [1, -1]], dtype=torch.float64, device="cpu"), signs)
        changes = (signs[:, 1:] != signs[:, :-1]).sum(dim=1)
        return signs[changes.argsort()] / math.sqrt(block)
