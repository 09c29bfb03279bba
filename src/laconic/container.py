"""Encoded <-> a safetensors file, specified in docs/format.md.

The metadata hold a description of each Encoded (see `description.py`), and a checksum over every byte of the file,
in which its own digits count as zeros.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from laconic import description
from laconic.encoded import Encoded, promised_parts
from laconic.errors import CorruptData, SpecError
from laconic.files import file_errors, replacing

_KEY = "laconic"  # one key only: safetensors writes several in any order, and equal content should be equal bytes
_DIGITS = "00000000"
STORABLE = frozenset(description.DTYPES.values())
_BEFORE_DIGITS = rb'"laconic":"{\"crc32\":\"'  # as the header has it: JSON within JSON


def save(path: str | os.PathLike[str], value: Encoded | Mapping[str, Encoded | Tensor]) -> None:
    """Writes an Encoded, or a dictionary of them, to a safetensors file. Plain tensors are kept as they are.

    The file at `path` is replaced whole or, on any error, not at all.
    """
    if not isinstance(value, Encoded | Mapping):
        raise SpecError(f"expected an Encoded or a dictionary, got {type(value).__name__}. Try {{'name': tensor}}")
    named = {"": value} if isinstance(value, Encoded) else dict(value)
    tensors: dict[str, Tensor] = {}
    for name, item in named.items():
        _check_name(name, item, single=isinstance(value, Encoded))
        parts = {_part_name(name, k): v for k, v in item.parts.items()} if isinstance(item, Encoded) else {name: item}
        _check_collisions(tensors, parts)
        tensors |= {key: _plain(part) for key, part in parts.items()}
    described = {name: description.describe(item) for name, item in named.items() if isinstance(item, Encoded)}
    content = {"crc32": _DIGITS, "format": description.FORMAT, "encoded": described}
    text = json.dumps(content, separators=(",", ":"))
    with replacing(path) as temporary:
        safetensors.torch.save_file(_unshared(tensors), temporary, {_KEY: text})
        _stamp(temporary)


def load(path: str | os.PathLike[str], device: torch.device | str = "cpu") -> Any:
    """Reads what `save` wrote: an Encoded, or a dictionary. CorruptData if a single byte is not as written."""
    with file_errors(path, "read"):
        stored = _read_metadata(Path(path))
        try:
            tensors = safetensors.torch.load_file(path, device=str(device))
        except (SafetensorError, ValueError, KeyError) as error:
            raise CorruptData(f"'{path}': {error}") from error
    found = {name: _take(name, text, tensors) for name, text in stored.items()}
    return found.get("", {**found, **tensors})


def _take(name: str, text: str, tensors: dict[str, Tensor]) -> Encoded:
    """Moves an Encoded's parts out of a file's tensors."""
    chain, specs = description.parse(text)
    promised = promised_parts(chain, specs)
    parts = {key: tensors.pop(_part_name(name, key), None) for key in promised}
    missing = [key for key, part in parts.items() if part is None]
    if missing:
        raise CorruptData(f"part '{missing[0]}' of '{name}' is missing")
    return Encoded(chain, specs, {key: part for key, part in parts.items() if part is not None})


def _part_name(name: str, part: str) -> str:
    return f"{name}/{part}" if name else part


def _check_name(name: str, item: object, single: bool) -> None:
    if not isinstance(name, str) or (not name and not single):
        raise SpecError(f"expected names that are not empty, got {name!r}")
    if name == "__metadata__":
        raise SpecError("'__metadata__' is a name that safetensors keeps for itself")
    if not isinstance(item, Encoded | Tensor):
        raise SpecError(f"'{name}': expected an Encoded or a torch.Tensor, got {type(item).__name__}")
    for tensor in item.parts.values() if isinstance(item, Encoded) else [item]:
        if tensor.is_meta or tensor.layout is not torch.strided or tensor.dtype not in STORABLE:
            raise SpecError(f"'{name}': safetensors does not hold {tensor.dtype}, {tensor.layout} on {tensor.device}")


def _check_collisions(tensors: Mapping[str, Tensor], parts: Mapping[str, Tensor]) -> None:
    for key in tensors.keys() & parts.keys():
        raise SpecError(f"expected names that do not collide, got '{key}' for both a tensor and an Encoded's part")


def _plain(part: Tensor) -> Tensor:
    """As its bytes in memory say, and no flag beside them."""
    return part.detach().resolve_conj().resolve_neg().cpu().contiguous()


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """safetensors refuses tensors that share memory, as tied weights do: each gets its own."""
    seen: set[int] = set()
    own = {}
    for name, tensor in tensors.items():
        pointer = tensor.untyped_storage().data_ptr()
        own[name] = tensor.clone() if pointer in seen else tensor
        seen.add(pointer)
    return own


def _stamp(path: Path) -> None:
    """Writes the checksum of a finished file over its zeros."""
    header = _read_header(path)
    at = _digits_at(path, header)
    with path.open("r+b") as file:
        crc = _file_crc(file, header, at)
        file.seek(at)
        file.write(f"{crc:08x}".encode())


def _read_metadata(path: Path) -> dict[str, str]:
    """The descriptions by name, once every byte of the file has been checked."""
    header = _read_header(path)
    at = _digits_at(path, header)
    with path.open("rb") as file:
        if f"{_file_crc(file, header, at):08x}".encode() != header[at : at + len(_DIGITS)]:
            raise CorruptData(f"'{path}': the checksum does not match: damaged or truncated")
    try:
        stored = json.loads(json.loads(header[8:])["__metadata__"][_KEY])
        description.check_format(stored["format"])
        return {str(name): str(text) for name, text in stored["encoded"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptData(f"'{path}': the header is not laconic's: {error}") from error


def _read_header(path: Path) -> bytes:
    """The length and the JSON that a safetensors file begins with."""
    with path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > path.stat().st_size:
            raise CorruptData(f"'{path}' is not a safetensors file, or is truncated")
        return start + file.read(length)


def _digits_at(path: Path, header: bytes) -> int:
    at = header.find(_BEFORE_DIGITS)
    if at < 0:
        raise CorruptData(f"'{path}' is not a file that laconic.save wrote: it has no laconic checksum")
    return at + len(_BEFORE_DIGITS)


def _file_crc(file: Any, header: bytes, digits_at: int) -> int:
    blanked = header[:digits_at] + _DIGITS.encode() + header[digits_at + len(_DIGITS) :]
    crc = zlib.crc32(blanked)
    file.seek(len(header))
    while block := file.read(1 << 20):
        crc = zlib.crc32(block, crc)
    return crc
