"""On what `auto` is held against every single encoder: tensors, with a chain before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from laconic import chain
from laconic.bench.costs import data
from laconic.run import Run

TABLE_WIDTH = 256
"""At most so many columns make a matrix a table of embeddings, whose rows may come in any order."""
TABLE_CHAIN = "bound:rel=0.03|"
FIELD_CHAINS = ("bound:rel=0.01|lorenzo|", "bound:rel=0.0001|lorenzo|")
MANY = 4 << 20
"""Values of a table that is tiled."""
CODES = 4 << 20
"""Bytes of synthetic codes."""
CODES_CHAIN = "bound:abs=0.499|"
"""What makes codes of whole numbers, these themselves."""


class Case(NamedTuple):
    """A tensor, and the beginning of the chain that `auto` ends."""

    name: str
    before: str
    x: Tensor

    @property
    def codes(self) -> Tensor:
        """What an encoder meets."""
        return Run(self.x).over(chain.codec(self.before[:-1]).links).main


def cases(tensors: Mapping[str, Tensor]) -> Iterator[Case]:
    """Each tensor that was given, and some that are made here."""
    for name, x in tensors.items():
        if x.dim() == 2 and x.shape[1] <= TABLE_WIDTH:
            yield Case(name, TABLE_CHAIN, x)
            yield Case(f"{name}, shuffled", TABLE_CHAIN, shuffles(x))
        else:
            for before in FIELD_CHAINS:
                dims = ":dims=3" * (x.dim() >= 3)
                yield Case(name, before[:-1] + dims + "|", x)
    for name, codes in synthetic():
        yield Case(name, CODES_CHAIN, codes.to(torch.float32))


def synthetic() -> Iterator[tuple[str, Tensor]]:
    for sigma in (0.5, 2.0, 5.0, 20.0):
        yield f"normal, sigma {sigma:g}", data.normal(CODES, 1, sigma)
    yield "normal, sigma 50", data.normal(CODES // 2, 2, 50.0)
    yield "uniform", data.uniform(CODES, 1)
    yield "runs", data.runs(CODES, 1)
    yield "repeated rows", data.rows(CODES, 1)


def shuffles(x: Tensor) -> Tensor:
    """The rows again and again, each time in another order."""
    random = torch.Generator().manual_seed(data.SEED)
    times = max(2, MANY // max(x.numel(), 1))
    return torch.cat([x[torch.randperm(len(x), generator=random)] for _ in range(times)])
