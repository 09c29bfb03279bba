"""One row for each chain that must keep every promise. A new stage adds a row."""

from __future__ import annotations

import torch

import laconic
from laconic.backends import native
from laconic.run import Run

FIXED_SIZE = [
    "dct:chop=4",
    "dct:chop=7,keep=triangle",
    "dct:chop=16,block=16",
    "dct:chop=5,block=32,keep=triangle",
    "zfp:chop=2",
    "zfp:chop=4,keep=triangle",
    "hadamard:chop=3",
    "hadamard:chop=4,block=4",
    "cast:dtype=bfloat16",
    "dct:chop=4|cast:dtype=float16",
    "dct:chop=8|zfp:chop=2",
    "affine",
    "dct:chop=4|affine:bits=8",
    "dct:chop=4|affine:bits=4,per=sample",
    "dct:chop=2|affine:bits=6,per=channel,symmetric=true",
    "lorenzo:dims=1",
    "affine:per=sample|lorenzo",
    "affine:bits=4,per=row",
    "affine:bits=5,group=32",
    "affine:bits=3,group=100,symmetric=true",
    "affine:bits=4,group=32|bitpack:width=4",
    "affine:bits=3,per=sample,symmetric=true|bitpack:width=5",
]

VARIABLE_SIZE = [
    "bound:rel=1e-2",
    "bound:abs=0.01,per=row|bitpack",
    "bound:rel=1e-3|lorenzo|bitpack",
    "bound:rms=1e-2,per=channel,width=16|lorenzo:dims=3",
    "bound:rel=1e-3,width=32|lorenzo:dims=1|bitpack",
    "bound:rel=1e-2|lorenzo|zstd",
    "bound:rel=1e-2,per=row|lz4",
    "cast:dtype=float16|lorenzo|bitpack",
    "lorenzo|zstd:level=1",
    "lz4:level=1",
    "affine|huffman",
    "affine:bits=4,per=channel,symmetric=true|huffman",
    "cast:dtype=bfloat16|huffman",
    "cast:dtype=float32|huffman",
    "bound:rel=1e-2|lorenzo|huffman",
    "affine|rans",
    "cast:dtype=bfloat16|rans",
    "bound:rel=1e-2|lorenzo|rans",
    "bound:rel=1e-1|rows",
    "bound:rel=0.5|rows|huffman",
    "rows|zstd",
    "cast:dtype=float32|vlz",
    "bound:rel=0.3|vlz:window=2,block=3",
    "bound:rel=1e-2|auto",
    "cast:dtype=bfloat16|auto:prefer=link:0.1",
    "auto:prefer=speed",
]

CHAINS = FIXED_SIZE + VARIABLE_SIZE

PORTABLE = [spec for spec in FIXED_SIZE if "lorenzo" not in spec]  # no compiler for accelerators takes integers so

SHAPES = [(2, 3, 16, 24), (2, 3, 13, 21), (1, 1, 1, 9), (4, 8, 8), (5, 7)]

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def ramp(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Smooth, deterministic data in [0, 1], or [0, 255] for uint8, that no two samples share."""
    count = torch.Size(shape).numel()
    values = (torch.arange(count, dtype=torch.float64) * 0.37).sin().mul(0.5).add(0.5).reshape(shape)
    return (values * 255).to(dtype) if dtype == torch.uint8 else values.to(dtype)


def stored(codec: laconic.Codec, x: torch.Tensor) -> laconic.Encoded:
    """What the stages themselves give, also where `encode` would store the tensor as it is."""
    return Run(x).over(codec.links).encoded(codec.links)


def agree(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two ways to the same values gave them: to the bit where the kernels are ours. A matrix product in
    its place rounds by the layout of what it multiplies, and a code that is taken from it may be the next one."""
    if native.available():
        return torch.equal(a, b)
    return a.shape == b.shape and torch.allclose(a.double(), b.double(), atol=1e-5 if a.is_floating_point() else 1)
