"""Bodies for CPUs, in C++. Optional: without them everything works, slower."""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module
from types import ModuleType

import torch

DTYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3, torch.uint8: 4}
"""The dtypes' numbers, as the C++ side knows them."""


@cache
def core() -> ModuleType | None:
    """The compiled module; None where it was not built, or where `LACONIC_NATIVE=0` switches it off."""
    if os.environ.get("LACONIC_NATIVE") == "0":
        return None
    try:
        return import_module("laconic.backends.native._core")
    except ImportError as error:
        warnings.warn(
            f"laconic runs in pure Python, many times slower: its native part is not there ({error}). "
            "Install it where a C++17 compiler is, or set LACONIC_NATIVE=0 to run so on purpose",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def available() -> bool:
    return core() is not None
