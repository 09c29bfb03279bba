"""Operators with several bodies: declared here with their fakes, gradients and pure-torch reference.

Faster bodies live in `laconic.backends` and reach these operators by registration only.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import torch

LIBRARY = torch.library.Library("laconic", "FRAGMENT")
"""Where every operator of laconic is declared, as `torch.ops.laconic.*`."""

BACKENDS = ("native", "triton")


def load_bodies(operator: str) -> None:
    """Lets each backend that works here register the bodies it has for `ops/<operator>.py`."""
    for backend in BACKENDS:
        package, bodies = import_module(f"laconic.backends.{backend}"), f"laconic.backends.{backend}.{operator}"
        if package.available() and find_spec(bodies):
            import_module(bodies)
