"""What the entropy coders ask of tensors before they read or write a stream: in every body, the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from laconic.errors import SpecError

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32}


def capacity(codes: Tensor) -> int:
    """The most bytes that encoding gives."""
    return 1 + codes.numel() * codes.element_size()


def check_codes(codes: Tensor) -> None:
    """Raises unless these are codes as they lie in memory. Every body asks first."""
    if codes.element_size() not in INTEGERS or not codes.is_contiguous():
        raise SpecError(f"expected contiguous codes of 1, 2 or 4 bytes, got {codes.dtype} of strides {codes.stride()}")


def check_bytes(stream: Tensor, least: int = 0) -> None:
    if stream.dtype != torch.uint8 or stream.dim() != 1 or not stream.is_contiguous() or stream.numel() < least:
        raise SpecError(f"expected a contiguous row of at least {least} uint8, got {stream.dtype}{list(stream.shape)}")


def check_book(book: Tensor | None) -> None:
    if book is not None:
        check_bytes(book)


def check_batch(batch: Sequence[Tensor]) -> int:
    """The size of all codes; raises where it is not the same, or there are none."""
    for codes in batch:
        check_codes(codes)
    sizes = {codes.element_size() for codes in batch}
    if len(sizes) != 1:
        raise SpecError(f"expected tensors of codes of one size, got sizes {sorted(sizes)}")
    return sizes.pop()


# For the references, which work in numpy on any device, by way of the CPU.


def row_of(codes: Tensor) -> NDArray[Any]:
    row: NDArray[Any] = codes.cpu().reshape(-1).view(INTEGERS[codes.element_size()]).numpy()
    return row


def bytes_of(book: Tensor | None) -> NDArray[Any]:
    return np.zeros(0, np.uint8) if book is None else book.cpu().numpy()
