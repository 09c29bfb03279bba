"""Numbers that others quote: against closed forms and scikit-image."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import laconic
from laconic import metrics


def test_psnr_uses_another_peak() -> None:
    x = torch.tensor([0.0, 1.0, 2.0, 4.0])
    assert metrics.psnr(x, x + 0.4) == pytest.approx(20)
    assert metrics.psnr(x, x + 0.4, peak=40) == pytest.approx(40)
    pixels = torch.full((11, 11), 100, dtype=torch.uint8)
    assert metrics.psnr(pixels, pixels + 255 // 10) == pytest.approx(20 * math.log10(255 / 25))


def test_equal_tensors_have_an_error() -> None:
    x = torch.tensor([math.nan, math.inf, 1.0])
    assert metrics.max_error(x, x.clone()) == 0
    assert metrics.psnr(torch.ones(3), torch.ones(3)) == math.inf
    assert metrics.psnr(torch.ones(3), torch.zeros(3)) == -math.inf
    assert metrics.psnr(torch.empty(0), torch.empty(0)) == math.inf


def test_a_lost_nan_is_no_error() -> None:
    assert math.isnan(metrics.max_error(torch.tensor([math.nan, 1.0]), torch.tensor([0.0, 1.0])))


def test_uint8_differences_wrap() -> None:
    a, b = torch.tensor([0], dtype=torch.uint8), torch.tensor([255], dtype=torch.uint8)
    assert metrics.max_error(a, b) == 255
    assert metrics.rms_error(a, b) == 255


def test_ssim_is_somebody_elses() -> None:
    structural = pytest.importorskip("skimage.metrics").structural_similarity
    x = torch.rand(40, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = x + 0.1 * torch.rand(40, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    _, full = structural(
        *(x.numpy(), y.numpy()),
        data_range=1.0,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        full=True,
    )
    expected = float(np.mean(full[5:-5, 5:-5]))
    assert metrics.ssim(x, y, peak=1.0) == pytest.approx(expected, abs=1e-6)
    assert metrics.ssim(x, x) == pytest.approx(1)
    assert metrics.ssim(torch.zeros(11, 11), torch.zeros(11, 11)) == pytest.approx(1)


def test_shapes_that_differ_are_broadcast() -> None:
    with pytest.raises(laconic.SpecError, match="one shape"):
        metrics.psnr(torch.ones(3, 3), torch.ones(3))
    with pytest.raises(laconic.SpecError, match="at least 11"):
        metrics.ssim(torch.ones(3, 3), torch.ones(3, 3))
    with pytest.raises(laconic.SpecError, match="at least 11"):
        metrics.ssim(torch.ones(0, 11, 11), torch.ones(0, 11, 11))


def test_the_ratio_forgets_bytes() -> None:
    x = torch.rand(8, 8)
    enc = laconic.encode(x, "dct:chop=4")
    assert metrics.ratio(x, enc.nbytes) == enc.ratio == 256 / len(enc.to_bytes())
