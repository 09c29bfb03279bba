"""What a codec saves on pictures, what that costs in likeness, and how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

import laconic
from laconic import metrics
from laconic.bench.measure import Contender, Effort, race
from laconic.stage import TensorSpec

FAMILIES = {
    "dct": ("dct:chop={chop}", range(1, 8)),
    "dct, triangle": ("dct:chop={chop},keep=triangle", range(1, 9)),
    "zfp": ("zfp:chop={chop}", range(1, 4)),
    "hadamard": ("hadamard:chop={chop}", range(1, 8)),
    "dct, float16": ("dct:chop={chop}|cast:dtype=float16", range(1, 8)),
    "dct, 8 bits": ("dct:chop={chop}|affine:bits=8", range(1, 8)),
}
"""What the rate-distortion plot follows: a spec with one number left open, and the numbers."""


@dataclass(frozen=True)
class Point:
    """One codec on the rate-distortion plot. `ratio` counts every byte, headers too; `psnr` has a peak of 1."""

    family: str
    codec: str
    ratio: float
    psnr: float


@dataclass(frozen=True)
class Rate:
    """One codec in the table. GB/s are of uncompressed float32: median, warm, into memory that is there already."""

    codec: str
    ratio: float
    psnr: float
    ssim: float
    encode_gbs: float
    decode_gbs: float


def sweep(pictures: Tensor) -> list[Point]:
    """Every codec of `FAMILIES`."""
    points = []
    for family, (spec, chops) in FAMILIES.items():
        for chop in chops:
            codec = laconic.codec(spec.format(chop=chop))
            enc = codec.encode(pictures)
            points.append(Point(family, str(codec), enc.ratio, metrics.psnr(pictures, laconic.decode(enc), peak=1.0)))
    return points


def measure(codecs: Sequence[str], pictures: Tensor, effort: Effort, begin: Callable[[str], None]) -> list[Rate]:
    """Likeness of each codec, then the speed of all, in turns."""
    likeness = {}
    for name in codecs:
        begin(f"likeness: {name}")
        enc = laconic.encode(pictures, name)
        restored = laconic.decode(enc)
        likeness[name] = (
            enc.ratio,
            metrics.psnr(pictures, restored, peak=1.0),
            metrics.ssim(pictures, restored, peak=1.0),
        )
    begin("speed of all codecs, in turns")
    speeds = _speeds(codecs, pictures.repeat(6, 1, 1, 1), effort)
    return [Rate(name, *likeness[name], *speeds[name]) for name in codecs]


def _speeds(codecs: Sequence[str], x: Tensor, effort: Effort) -> dict[str, tuple[float, float]]:
    """GB/s of encoding and decoding."""
    jobs = [job for name in codecs for job in _contenders(name, x)]
    gbs = [x.nbytes / 1e9 / timing.median for timing in race(jobs, effort, x.device)]
    return {name: (gbs[2 * i], gbs[2 * i + 1]) for i, name in enumerate(codecs)}


def _contenders(name: str, x: Tensor) -> tuple[Contender, Contender]:
    codec, spec = laconic.codec(name), TensorSpec.of(x)
    enc = codec.encode(x, out=codec.empty(spec))
    restored = torch.empty_like(x)
    return (
        Contender(f"{name}, encode", name, lambda: codec.encode(x, out=enc), spec, "into memory that is there"),
        Contender(f"{name}, decode", name, lambda: codec.decode(enc, out=restored), spec, "into memory that is there"),
    )
