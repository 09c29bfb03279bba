"""Encoders that others have written: zstd and lz4, over the codes' bytes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import torch
from torch import Tensor

from laconic.encoders.memory import from_bytes, from_library, refuse_wide, to_library
from laconic.errors import CorruptData, MissingExtra, SpecError
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec


@dataclass(frozen=True)
class LibraryEncoder(Stage):
    """Bytes to fewer bytes, by somebody's library."""

    kind: ClassVar[Kind] = Kind.encoder
    densest: ClassVar[int]
    """The most bytes that one byte can stand for."""
    largest: ClassVar[int] = 2**62
    """The most bytes that go in at once."""

    @abstractmethod
    def worst_size(self, nbytes: int) -> int:
        """The most bytes that come out."""

    @abstractmethod
    def compress(self, data: Any) -> Any:
        """Bytes to bytes."""

    @abstractmethod
    def decompress(self, data: bytes, nbytes: int) -> bytes:
        """The way back, to exactly so many; CorruptData for any others."""

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        refuse_wide(self, x)
        if x.nbytes > self.largest:
            raise SpecError(f"{self}: expected at most {self.largest} bytes, got {x.nbytes} in {x}. Try 'zstd'")
        return PartsSpec(PartSpec.up_to(self.worst_size(x.nbytes), torch.uint8))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        return Parts(from_library(self.compress(to_library(x)), x.device, None if out is None else out.main))

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        if x.nbytes > self.densest * parts.main.nbytes:  # before anything is allocated by its word
            raise CorruptData(f"{self}: expected more than {parts.main.nbytes} bytes for {x}")
        data = self.decompress(to_library(parts.main).tobytes(), x.nbytes)
        if len(data) != x.nbytes:
            raise CorruptData(f"{self}: expected {x.nbytes} bytes for {x}, found {len(data)}")
        return from_bytes(from_library(data, parts.main.device), x, out)


@dataclass(frozen=True)
class Zstd(LibraryEncoder):
    """Zstandard: for repeats of any length and skewed bytes, at any `level` from -7 (fast) to 22 (small)."""

    level: int = 3

    name: ClassVar[str] = "zstd"
    example: ClassVar[str] = "bound:rel=1e-3|zstd:level=1"
    densest: ClassVar[int] = 2**15  # a block of 128 KiB in four bytes

    def __post_init__(self) -> None:
        if not -7 <= self.level <= 22:
            raise SpecError(f"zstd: expected level from -7 to 22, got {self.level}. Try '{self.example}'")

    def worst_size(self, nbytes: int) -> int:
        return nbytes + (nbytes >> 8) + 1024

    def compress(self, data: Any) -> Any:
        return _library("zstandard", "zstd").ZstdCompressor(level=self.level).compress(data)

    def decompress(self, data: bytes, nbytes: int) -> bytes:
        library = _library("zstandard", "zstd")
        try:
            if library.frame_content_size(data) != nbytes:
                raise CorruptData(f"zstd: expected a frame of {nbytes} bytes")
            return library.ZstdDecompressor().decompress(data, allow_extra_data=False)  # type: ignore[no-any-return]
        except library.ZstdError as error:
            raise CorruptData(f"zstd: {error}") from error


@dataclass(frozen=True)
class Lz4(LibraryEncoder):
    """LZ4: for repeats, very fast. `level` 0 is the fast one; 1 to 12 search longer."""

    level: int = 0

    name: ClassVar[str] = "lz4"
    example: ClassVar[str] = "bound:rel=1e-3|lz4"
    densest: ClassVar[int] = 255
    largest: ClassVar[int] = 0x7E000000

    def __post_init__(self) -> None:
        if not 0 <= self.level <= 12:
            raise SpecError(f"lz4: expected level from 0 to 12, got {self.level}. Try '{self.example}'")

    def worst_size(self, nbytes: int) -> int:
        return nbytes + nbytes // 255 + 16

    def compress(self, data: Any) -> Any:
        mode = {"mode": "high_compression", "compression": self.level} if self.level else {"mode": "default"}
        return _library("lz4.block", "lz4").compress(data, store_size=False, **mode)

    def decompress(self, data: bytes, nbytes: int) -> bytes:
        library = _library("lz4.block", "lz4")
        try:
            return library.decompress(data, uncompressed_size=nbytes)  # type: ignore[no-any-return]
        except library.LZ4BlockError as error:
            raise CorruptData(f"lz4: {error}") from error


def _library(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(module.partition(".")[0], extra, f"The stage '{extra}'") from error
