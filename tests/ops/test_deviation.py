"""How far samples are from what came back: the same bits from whichever body, and in whatever blocks."""

from __future__ import annotations

import pytest
import torch

from laconic.ops.deviation import reference_deviation

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8]


def pair(dtype, shape, scale=1.0):
    x = torch.rand(shape, generator=torch.Generator().manual_seed(1)) * 200
    y = (x + torch.randn(shape, generator=torch.Generator().manual_seed(2))).clamp(0, 255)
    return (x.to(dtype), y.to(dtype)) if dtype == torch.uint8 else ((x * scale).to(dtype), (y * scale).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (2, 31), (3, 32), (4, 33), (2, 3, 37, 41)], ids=str)
@pytest.mark.parametrize("scale", [1.0, 2.0**-10, 1e-30, 1e30])
def test_a_body_adds_in_another_order(dtype, shape, scale):
    x, y = pair(dtype, shape, scale)
    found, expected = torch.ops.laconic.deviation(x, y), reference_deviation(x, y)
    if not x.isfinite().all():  # float16 cannot hold the largest
        assert not found[:, 3].isfinite().any()
        return
    assert torch.equal(found, expected)
    alone = [torch.ops.laconic.deviation(*each) for each in zip(x.split(1), y.split(1), strict=True)]
    assert torch.equal(found, torch.cat(alone))


def test_the_numbers_are_others():
    x, y = pair(torch.float32, (3, 5, 7))
    d = (x.double() - y.double()).flatten(1)
    low, high, largest, squares = torch.ops.laconic.deviation(x, y).T
    assert torch.equal(torch.stack([low, high]), torch.stack([x.flatten(1).amin(1), x.flatten(1).amax(1)]).double())
    assert torch.allclose(largest, d.abs().amax(1))
    assert torch.allclose(squares, d.square().sum(1))


@pytest.mark.parametrize("place", [0, 5, 31, 32, 39])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("where", ["x", "y", "both"])
def test_something_that_is_not_finite_goes_unseen(place, value, where):
    x, y = torch.zeros(2, 40), torch.zeros(2, 40)
    for name, tensor in (("x", x), ("y", y)):
        if where in (name, "both"):
            tensor[1, place] = value
    for body in (torch.ops.laconic.deviation, reference_deviation):
        assert body(x, y)[:, 3].isfinite().tolist() == [True, False]
