"""One block transform for every basis: a stage is this class and a matrix (see `bases.py`)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from laconic.errors import SpecError
from laconic.memo import remembered
from laconic.ops import block as ops
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec, Tiling
from laconic.transforms.portable import OPERATORS, BlockDecode, BlockEncode

_ENCODE, _DECODE = torch.ops.laconic.block_encode.default, torch.ops.laconic.block_decode.default
_ENCODE_OUT, _DECODE_OUT = torch.ops.laconic.block_encode_out.default, torch.ops.laconic.block_decode_out.default

PIXEL_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8)


@dataclass(frozen=True)
class BlockTransform(Stage):
    """Splits the last two dimensions into blocks, changes basis, and keeps the low frequencies."""

    chop: int
    block: int = 8
    keep: Literal["square", "triangle"] = "square"

    kind: ClassVar[Kind] = Kind.transform
    operators: ClassVar[frozenset[str]] = OPERATORS
    blocks: ClassVar[tuple[int, ...]]
    """The sizes of block that this basis has."""

    @staticmethod
    @abstractmethod
    def analysis(block: int) -> Tensor:
        """The `block x block` matrix, in float64, whose rows are the basis functions, slow ones first."""

    def __post_init__(self) -> None:
        if self.block not in self.blocks:
            sizes = "|".join(map(str, self.blocks))
            raise SpecError(f"{self.name}: expected block={sizes}, got {self.block}. Try '{self.example}'")
        if not 1 <= self.chop <= self.block:
            raise SpecError(
                f"{self.name}: expected chop from 1 to {self.block} (the block's size), got {self.chop}. "
                f"Try '{self.example}'"
            )

    @property
    def triangle(self) -> bool:
        return self.keep == "triangle"

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        if len(x.shape) < 2:
            raise SpecError(f"{self}: expected at least two dimensions (height, width), got {x}")
        if x.dtype not in PIXEL_DTYPES:
            raise SpecError(
                f"{self}: expected float32, float64, float16, bfloat16 or uint8, got {x}. Convert it first, "
                "for example with x.float()"
            )
        self.refuse_empty(x)
        shape = ops.coefficient_shape(x.shape, self.block, self.chop, self.triangle)
        return PartsSpec(PartSpec(TensorSpec(tuple(shape), ops.coefficient_dtype(x.dtype))))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        basis = matrix(type(self), self.block, "analysis", x.device)
        if out is None:
            return Parts(_ENCODE(x, basis, self.chop, self.triangle))
        _ENCODE_OUT(x, basis, self.chop, self.triangle, out.main)
        return out

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        basis = matrix(type(self), self.block, "synthesis", parts.main.device)
        if out is None:
            return _DECODE(  # type: ignore[no-any-return]  # torch.ops is untyped
                parts.main, basis, self.chop, self.triangle, *x.shape[-2:], x.dtype
            )
        _DECODE_OUT(parts.main, basis, self.chop, self.triangle, out)
        return out

    def portable(self, x: TensorSpec, tiling: Tiling) -> tuple[nn.Module, nn.Module]:
        self.out_spec(x)
        cpu = torch.device("cpu")
        rows = matrix(type(self), self.block, "analysis", cpu)[: self.chop]
        columns = matrix(type(self), self.block, "synthesis", cpu)[:, : self.chop]
        return (BlockEncode(rows, x, self.triangle, tiling), BlockDecode(columns, x, self.triangle, tiling))


@remembered
def matrix(
    basis: type[BlockTransform], block: int, side: Literal["analysis", "synthesis"], device: torch.device
) -> Tensor:
    """A basis's matrix, or its inverse, on a device. One copy serves every codec."""
    analysis = basis.analysis(block)
    exact = (analysis if side == "analysis" else torch.linalg.inv(analysis)).contiguous()
    return exact.to(device, torch.float32 if device.type == "mps" else torch.float64)  # mps has no float64
