"""The files that tensors come from and go back to: .npy, .safetensors and .png, told apart by their suffix."""

from __future__ import annotations

import os
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from laconic.cli import npy, png
from laconic.errors import CorruptData, FileError, SpecError
from laconic.files import file_errors, replacing

SINGLE = "tensor"
"""The name of a tensor from a file that has no names, where one is needed."""

_READERS = {".npy": npy.read, ".png": png.read}
_WRITERS = {".npy": npy.write, ".png": png.write}
_SUFFIXES = (".npy", ".safetensors", ".png")


def read(path: Path) -> Tensor | dict[str, Tensor]:
    """The tensor in a file; for safetensors, all of them by name."""
    suffix = _suffix(path)
    with file_errors(path, "read"):
        if path.is_dir():
            raise FileError(f"Could not read '{path}': it is a directory")
        return _READERS[suffix](path) if suffix in _READERS else _read_safetensors(path)


def write(path: Path, value: Tensor | dict[str, Tensor]) -> None:
    """Writes tensors in the format that the suffix names; the file is replaced whole or not at all."""
    suffix = _suffix(path)
    with replacing(path) as temporary:
        if suffix in _WRITERS:
            _WRITERS[suffix](temporary, _only(path, value))
        else:
            named = value if isinstance(value, dict) else {SINGLE: value}
            safetensors.torch.save_file(named, temporary, {"format": "pt"})


def check_output(path: Path, source: Path, *, any_suffix: bool) -> None:
    """Raises now what writing would only meet after all the work was done."""
    if not any_suffix:
        _suffix(path)
    if path.exists() and not path.is_file():
        raise FileError(f"Could not write '{path}': it is there, and not a regular file")
    if not path.parent.is_dir():
        raise FileError(f"Could not write '{path}': there is no directory '{path.parent}'")
    if path.exists() and source.exists() and path.samefile(source):
        raise FileError(f"'{path}' is both input and output. Name another output, so that the original is kept")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"Could not write '{path}': no permission in '{path.parent}'")


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        found = f"'{path.suffix}'" if suffix else "none"
        raise SpecError(f"'{path}': expected a name that ends in {', '.join(_SUFFIXES)}, got {found}")
    return suffix


def _only(path: Path, value: Tensor | dict[str, Tensor]) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if len(value) == 1:
        return next(iter(value.values()))
    raise SpecError(f"'{path}' would hold one tensor, and there are {len(value)}. Write them to a .safetensors file")


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            if "laconic" in (file.metadata() or {}):
                raise SpecError(f"'{path}' is compressed by laconic already. Try laconic info, or laconic decompress")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
    except SafetensorError as error:
        raise CorruptData(f"'{path}' is not a sound .safetensors file: {error}") from error
    if not tensors:
        raise SpecError(f"'{path}' holds no tensors")
    return tensors
