"""A safetensors file from tensors that need not be in memory together: byte for byte what the safetensors library,
which wants them all at once, would write.

    | length of the header, 8 bytes | header: JSON, spaces to a multiple of 8 | tensor | tensor | ..
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import torch

from laconic.stage import TensorSpec

_TYPES = """uint64=U64 int64=I64 float64=F64 complex64=C64 float32=F32 uint32=U32 int32=I32 bfloat16=BF16 float16=F16
    uint16=U16 int16=I16 float8_e4m3fn=F8_E4M3 float8_e5m2=F8_E5M2 int8=I8 uint8=U8 bool=BOOL"""
TYPES = {getattr(torch, name): code for name, _, code in (pair.partition("=") for pair in _TYPES.split())}
"""What a file may hold, and how it says so; in the order in which its tensors lie."""
_RANKS = {dtype: rank for rank, dtype in enumerate(TYPES)}
_BLOCK = 1 << 20


class Source(NamedTuple):
    """A tensor to be written, and what gives its bytes when their turn comes."""

    spec: TensorSpec
    read: Callable[[], Iterable[bytes | memoryview]]


class Spool:
    """Bytes that wait on the disk until all are known."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = 0

    def keep(self, spec: TensorSpec, data: bytes | memoryview) -> Source:
        """Takes a tensor's bytes, which may then be forgotten."""
        start = self._end
        self._file.write(data)
        self._end += len(data)
        return Source(spec, lambda: self._blocks(start, start + len(data)))

    def _blocks(self, start: int, end: int) -> Iterator[bytes]:
        self._file.seek(start)
        for at in range(start, end, _BLOCK):
            yield self._file.read(min(_BLOCK, end - at))


def write(path: Path, sources: Mapping[str, Source], metadata: Mapping[str, str]) -> None:
    """Writes the file, a tensor after another."""
    names = sorted(sources, key=lambda name: (_RANKS[sources[name].spec.dtype], name))
    with path.open("wb") as file:
        file.write(_header({name: sources[name].spec for name in names}, metadata))
        for name in names:
            file.writelines(sources[name].read())


def _header(specs: Mapping[str, TensorSpec], metadata: Mapping[str, str]) -> bytes:
    fields: dict[str, object] = {"__metadata__": dict(metadata)}
    end = 0
    for name, spec in specs.items():
        start, end = end, end + spec.nbytes
        fields[name] = {"dtype": TYPES[spec.dtype], "shape": list(spec.shape), "data_offsets": [start, end]}
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
