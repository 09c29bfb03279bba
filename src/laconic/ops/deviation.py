"""How far each sample is from what came back of it: all that its quality is reckoned from, in one pass.

Squares are summed in float64, in an order that every body keeps: down 32 lanes, in which the values of a sample take
turns; then the second half of the lanes is added to the first, until one is left.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from laconic.ops import LIBRARY, load_bodies

LANES = 32

LIBRARY.define("deviation(Tensor x, Tensor y) -> Tensor")


def reference_deviation(x: Tensor, y: Tensor) -> Tensor:
    """Rows of float64, one for each sample: the least and the greatest of x, the largest of |x - y|, and the sum of
    (x - y)^2. This last is not finite where something in x or y is not; the others are of no use then.

    Differences are taken in float32; of float64 and wide integers in float64.
    """
    wide = torch.float64 if x.dtype in (torch.float64, torch.int32, torch.int64) else torch.float32
    values, other = (each.detach().reshape(len(x), -1).to(wide) for each in (x, y))
    difference = values - other
    low, high = values.aminmax(dim=1)
    largest = difference.abs().amax(1)
    return torch.stack([low.double(), high.double(), largest.double(), _squares(difference)], 1).add_(0.0)


def _squares(difference: Tensor) -> Tensor:
    numbers = torch.nn.functional.pad(difference.double(), (0, -difference.shape[1] % LANES)).square()
    rows = numbers.reshape(len(numbers), -1, LANES).cpu().numpy()
    lanes = np.stack([np.add.accumulate(sample, axis=0)[-1] for sample in rows])
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return torch.from_numpy(lanes[:, 0].copy()).to(difference.device)


LIBRARY.impl("deviation", reference_deviation, "CompositeExplicitAutograd")
torch.library.register_fake(
    "laconic::deviation", lambda x, y: x.new_empty((len(x), 4), dtype=torch.float64), lib=LIBRARY
)

load_bodies("deviation")
