"""Answers that depend on specs alone are worked out once: a training loop asks the same again and again."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """An `lru_cache` that tracing looks through."""
    cached = lru_cache(maxsize=1024)(function)

    @wraps(function)
    def answer(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():  # fake tensors are not for keeping
            return function(*args, **kwargs)
        return cached(*args, **kwargs)  # type: ignore[arg-type]  # lru_cache says itself what cannot be hashed

    return answer
