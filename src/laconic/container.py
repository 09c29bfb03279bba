"""Encoded <-> a safetensors file, specified in docs/format.md.

The metadata hold a description of each Encoded (see `description.py`), and a checksum over every byte of the file,
in which its own digits count as zeros.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from laconic import chain, description, tensor_file
from laconic.checksum import crc32
from laconic.encoded import Encoded, promised_parts
from laconic.errors import CorruptData, SpecError
from laconic.files import file_errors, replacing
from laconic.stage import TensorSpec
from laconic.tensor_file import Source, Spool
from laconic.wire import raw_bytes

_KEY = "laconic"  # one key only: safetensors writes several in any order, and equal content should be equal bytes
_DIGITS = "00000000"
STORABLE = frozenset(tensor_file.TYPES)
_BEFORE_DIGITS = rb'"laconic":"{\"crc32\":\"'  # as the header has it: JSON within JSON


def save(path: str | os.PathLike[str], value: Encoded | Mapping[str, Encoded | Tensor]) -> None:
    """Writes an Encoded, or a dictionary of them, to a safetensors file. Plain tensors are kept as they are.

    The file at `path` is replaced whole or, on any error, not at all.
    """
    if not isinstance(value, Encoded | Mapping):
        raise SpecError(f"expected an Encoded or a dictionary, got {type(value).__name__}. Try {{'name': tensor}}")
    content = _Content(lambda spec, part: Source(spec, lambda: [raw_bytes(_plain(part))]))
    if isinstance(value, Encoded):
        content.add("", value)
    else:
        for name, item in value.items():
            _check_name(name)
            content.add(name, item)
    with replacing(path) as temporary:
        content.write(temporary)


@contextmanager
def saving(path: str | os.PathLike[str]) -> Iterator[Callable[[str, Encoded | Tensor], None]]:
    """`save` for what is not in memory together. What it gives is called with a name and an item at a time, which
    wait on the disk; the file is there, whole, when the block ends well."""
    with replacing(path) as temporary, tempfile.TemporaryFile(dir=temporary.parent) as file:
        spool = Spool(file)
        content = _Content(lambda spec, part: spool.keep(spec, raw_bytes(_plain(part))))
        yield content.add
        content.write(temporary)


class _Content:
    """What a file will hold: every part by its name in it, and a description of every Encoded."""

    def __init__(self, keep: Callable[[TensorSpec, Tensor], Source]) -> None:
        self._keep = keep
        self._sources: dict[str, Source] = {}
        self._described: dict[str, str] = {}

    def add(self, name: str, item: Encoded | Tensor) -> None:
        if name or self._sources:  # no name is that of a file's only Encoded
            _check_name(name)
        _check_item(name, item)
        parts = {_part_name(name, k): v for k, v in item.parts.items()} if isinstance(item, Encoded) else {name: item}
        for key, part in parts.items():
            if key in self._sources:
                raise SpecError(f"expected names that do not collide, got '{key}' twice")
            self._sources[key] = self._keep(TensorSpec.of(part), part)
        if isinstance(item, Encoded):
            self._described[name] = description.describe(item)

    def write(self, path: Path) -> None:
        content = {"crc32": _DIGITS, "format": description.FORMAT, "encoded": self._described}
        tensor_file.write(path, self._sources, {_KEY: json.dumps(content, separators=(",", ":"))})
        _stamp(path)


def load(path: str | os.PathLike[str], device: torch.device | str = "cpu", *, decode: bool = False) -> Any:
    """Reads what `save` wrote: an Encoded, or a dictionary. CorruptData if a single byte is not as written.

    With `decode=True` tensors only, as they went in: a state dict for `load_state_dict`.
    """
    with file_errors(path, "read"):
        stored = _read_metadata(Path(path))
        try:
            tensors = safetensors.torch.load_file(path, device=str(device))
        except (SafetensorError, ValueError, KeyError) as error:
            raise CorruptData(f"'{path}': {error}") from error
    found: dict[str, Encoded | Tensor] = {}
    for name, text in stored.items():
        enc = _take(name, text, tensors)
        found[name] = chain.decode(enc) if decode else enc
    return found.get("", {**found, **tensors})


def _take(name: str, text: str, tensors: dict[str, Tensor]) -> Encoded:
    """Moves an Encoded's parts out of a file's tensors."""
    links, specs = description.parse(text)
    promised = promised_parts(links, specs)
    parts = {key: tensors.pop(_part_name(name, key), None) for key in promised}
    missing = [key for key, part in parts.items() if part is None]
    if missing:
        raise CorruptData(f"part '{missing[0]}' of '{name}' is missing")
    return Encoded(links, specs, {key: part for key, part in parts.items() if part is not None})


def _part_name(name: str, part: str) -> str:
    return f"{name}/{part}" if name else part


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise SpecError(f"expected names that are not empty, got {name!r}")
    if name == "__metadata__":
        raise SpecError("'__metadata__' is a name that safetensors keeps for itself")


def _check_item(name: str, item: object) -> None:
    if not isinstance(item, Encoded | Tensor):
        raise SpecError(f"'{name}': expected an Encoded or a torch.Tensor, got {type(item).__name__}")
    for tensor in item.parts.values() if isinstance(item, Encoded) else [item]:
        if tensor.is_meta or tensor.layout is not torch.strided or tensor.dtype not in STORABLE:
            raise SpecError(f"'{name}': safetensors does not hold {tensor.dtype}, {tensor.layout} on {tensor.device}")


def _plain(part: Tensor) -> Tensor:
    """As its bytes in memory say, and no flag beside them."""
    return part.detach().resolve_conj().resolve_neg().cpu().contiguous()


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
    crc = crc32(blanked)
    file.seek(len(header))
    while block := file.read(1 << 20):
        crc = crc32(block, crc)
    return crc
