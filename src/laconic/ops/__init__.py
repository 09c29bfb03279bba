"""Operators with several bodies: declared here with their fakes, gradients and pure-torch reference.

Faster bodies live in `laconic.backends` and reach these operators by registration only.
"""

from __future__ import annotations

from importlib import import_module

import torch

LIBRARY = torch.library.Library("laconic", "FRAGMENT")
"""Where every operator of laconic is declared, as `torch.ops.laconic.*`."""

BACKENDS = ("native", "triton")


def load_bodies(operator: str) -> None:
    """Lets each backend that works here register its bodies for `ops/<operator>.py`."""
    for backend in BACKENDS:
        package = import_module(f"laconic.backends.{backend}")
        if package.available():
            import_module(f"laconic.backends.{backend}.{operator}")
