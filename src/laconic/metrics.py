"""How much a codec saved, and what it cost: ratio, error, PSNR, SSIM."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from laconic.errors import SpecError

_PIECE = 1 << 16  # that fits the cache in float64


def ratio(original: Tensor, nbytes: int) -> float:
    """Bytes of a tensor over the bytes it was stored in."""
    return original.nbytes / nbytes


def max_error(original: Tensor, restored: Tensor) -> float:
    """The largest |x - x'|, in float64. NaN where only one of the two is NaN."""
    worst = [_largest(a, b) for a, b in _pieces(original, restored)]
    return float(torch.tensor(worst, dtype=torch.float64).max()) if worst else 0.0


def rms_error(original: Tensor, restored: Tensor) -> float:
    """The root of the mean squared error."""
    squares = [float((a - b).square_().sum()) for a, b in _pieces(original, restored)]
    return math.sqrt(sum(squares) / original.numel()) if squares else 0.0


def psnr(original: Tensor, restored: Tensor, peak: float | None = None) -> float:
    """Peak signal-to-noise ratio in dB. The peak is 255 for uint8, otherwise max - min of the original."""
    error = rms_error(original, restored)
    if error == 0:
        return math.inf
    peak = _peak(original) if peak is None else peak
    return 20 * math.log10(peak / error) if peak > 0 else -math.inf


def ssim(original: Tensor, restored: Tensor, peak: float | None = None) -> float:
    """Structural similarity over the last two dimensions (Wang et al. 2004: 11 x 11 Gaussian, sigma 1.5)."""
    a, b = _pair(original, restored)
    if a.dim() < 2 or min(a.shape[-2:]) < 11 or not a.numel():
        raise SpecError(f"ssim needs images of at least 11 x 11, got a shape of {list(original.shape)}")
    peak = _peak(original) if peak is None else peak
    a, b = (x.reshape(-1, 1, *x.shape[-2:]) for x in (a, b))
    mean_a, mean_b = _blur(a), _blur(b)
    var_a, var_b = _blur(a * a) - mean_a**2, _blur(b * b) - mean_b**2
    covariance = _blur(a * b) - mean_a * mean_b
    peak = peak or 1.0  # a flat image: any peak does, but none would divide zero by zero
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    likeness = (2 * mean_a * mean_b + c1) * (2 * covariance + c2)
    return float((likeness / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))).mean())


def _peak(x: Tensor) -> float:
    if x.dtype == torch.uint8:
        return 255.0
    low, high = x.detach().aminmax()
    return float(high) - float(low)


def _blur(x: Tensor) -> Tensor:
    taps = torch.arange(-5, 6, dtype=x.dtype, device=x.device)
    window = torch.exp(-(taps**2) / (2 * 1.5**2))
    window = window / window.sum()
    rows = functional.conv2d(x, window.view(1, 1, -1, 1))
    return functional.conv2d(rows, window.view(1, 1, 1, -1))


def _largest(a: Tensor, b: Tensor) -> float:
    worst = float((a - b).abs().max())
    if not math.isnan(worst):
        return worst
    same = (a == b) | (a.isnan() & b.isnan())  # Inf - Inf is NaN
    return float((a - b).abs().masked_fill(same, 0.0).max())


def _pieces(original: Tensor, restored: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs in float64, a piece of both after another: no copy of all of a large tensor."""
    _check_shapes(original, restored)
    rows = (x.detach().reshape(-1).split(_PIECE) for x in (original, restored))
    for a, b in zip(*rows, strict=True):
        if a.numel():
            yield a.to(torch.float64), b.to(torch.float64)


def _pair(original: Tensor, restored: Tensor) -> tuple[Tensor, Tensor]:
    _check_shapes(original, restored)
    return original.detach().to(torch.float64), restored.detach().to(torch.float64)


def _check_shapes(original: Tensor, restored: Tensor) -> None:
    if original.shape != restored.shape:
        raise SpecError(f"expected two tensors of one shape, got {list(original.shape)} and {list(restored.shape)}")
