"""One tensor <-> a .png file: uint8, `[H, W]` for gray, otherwise `[channels, H, W]`."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from laconic.errors import CorruptData, MissingExtra, SpecError
from laconic.stage import TensorSpec

_CHANNELS = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}
_MODES = {channels: mode for mode, channels in _CHANNELS.items()}
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_DEPTH_AT = 24
"""Where the header keeps the bits of each sample."""


def read(path: Path) -> Tensor:
    """The pixels. Palettes and 1-bit images are converted; 16 bits are refused, since Pillow drops half of them."""
    pillow = _pillow()
    _check_header(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # large images are our trade
            with pillow.open(path, formats=["PNG"]) as image:
                pixels = np.array(image.convert(_mode(image.mode, "transparency" in image.info)))
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        raise CorruptData(f"'{path}' is not a sound .png file: {error}") from error
    x = torch.from_numpy(pixels)
    return x if x.dim() == 2 else x.movedim(-1, 0).contiguous()


def write(path: Path, x: Tensor) -> None:
    pillow = _pillow()
    channels = x.shape[0] if x.dim() == 3 else 1 if x.dim() == 2 else 0
    if x.dtype != torch.uint8 or channels not in _MODES or x.numel() == 0:
        raise SpecError(
            f"A .png file holds uint8 of [H,W] or [1 to 4,H,W], not {TensorSpec.of(x)}. "
            "Write it to a .npy or .safetensors file"
        )
    pixels = x.reshape(x.shape[-2:]) if channels == 1 else x.movedim(0, -1)
    pillow.fromarray(pixels.contiguous().numpy()).save(path, format="PNG")


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra("Pillow", extra="images", purpose="Reading and writing .png") from error
    return Image


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(_DEPTH_AT + 1)
    if len(start) <= _DEPTH_AT or not start.startswith(_SIGNATURE):
        raise CorruptData(f"'{path}' is not a .png file, or is truncated")
    if start[_DEPTH_AT] == 16:
        raise SpecError(f"'{path}' has 16 bits per channel: expected 8. Save it as a .npy file of float32 instead")


def _mode(mode: str, transparent: bool) -> str:
    """The mode that holds all of an image: gray or colour, with alpha if anything is transparent."""
    if mode in ("1", "L", "LA"):
        return "LA" if transparent or mode == "LA" else "L"
    return "RGBA" if transparent or mode in ("PA", "RGBA") else "RGB"
