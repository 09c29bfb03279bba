"""Other people's compressors as a stage, so that studies treat them like laconic's own."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from laconic.encoders.memory import from_bytes, from_library
from laconic.encoders.peers import job
from laconic.encoders.peers.child import CHILD, PeerError
from laconic.encoders.peers.wrapper import Settings, Wrapper, find
from laconic.errors import CorruptData, DataError, SpecError
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec

Name = Literal["sz3", "zfp", "sperr", "lerc", "pco", "blosc2", "jpeg", "zstd", "lz4"]


@dataclass(frozen=True)
class Peer(Stage):
    """Somebody else's compressor, with its own bound, `level` and `bits`. What it gives back is checked as it encodes.

    `rel` is a share of max - min. sz3, zfp, sperr, lerc and blosc2 take a bound; without one they are lossless, except
    sz3 and sperr, which need it. Those that bad bytes could kill run in a process of their own.
    """

    peer: Name = field(metadata={"option": "name"})
    abs: float | None = None
    rel: float | None = None
    level: int | None = None
    bits: int | None = None
    check: bool = True

    name: ClassVar[str] = "peer"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "peer:name=sz3,rel=1e-3"

    def __post_init__(self) -> None:
        wrapper = self.wrapper
        bounds = [bound for bound in (self.abs, self.rel) if bound is not None]
        if len(bounds) > 1 or not all(0 < bound < math.inf for bound in bounds):
            raise SpecError(f"{self}: expected one of abs= and rel=, above 0. Try '{self.example}'")
        if bounds and (not wrapper.bounded or self.bits is not None):
            raise SpecError(f"{self}: {self.peer} takes no bound here. Try '{self.example}'")
        if not bounds and wrapper.bounded and not wrapper.lossless:
            raise SpecError(f"{self}: {self.peer} needs a bound. Try 'peer:name={self.peer},rel=1e-3'")
        if self.level is not None and (wrapper.levels is None or self.level not in wrapper.levels):
            ends = f"from {wrapper.levels[0]} to {wrapper.levels[-1]}" if wrapper.levels else "no level"
            raise SpecError(f"{self}: {self.peer} takes {ends}, got level={self.level}")
        if self.bits is not None and not (wrapper.takes_bits and self.bits >= 1):
            raise SpecError(f"{self}: bits= is for blosc2, and at least 1. Try 'peer:name=blosc2,bits=7'")

    @property
    def wrapper(self) -> Wrapper:
        return find(self.peer)

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        taken = self.wrapper.dtypes
        if str(x.dtype).removeprefix("torch.") not in taken:
            raise SpecError(f"{self}: expected {' or '.join(sorted(taken))}, got {x}")
        refusal = self.wrapper.refusal(x.shape)
        if refusal is not None:
            raise SpecError(f"{self}: expected {refusal}, got {x}")
        return PartsSpec(PartSpec.up_to(2 * x.nbytes + 65536, torch.uint8))

    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        array = np.ascontiguousarray(x.detach().cpu().numpy())
        room = None if out is None else out.main
        if not x.numel():
            return Parts(from_library(b"", x.device, room))
        settings = self.settings(array)
        try:
            data = compress(self.peer, array, settings)
            restored = decompress(self.peer, data, array.shape, str(array.dtype), settings) if self.check else None
        except PeerError as error:
            raise DataError(f"{self}: {self.peer} could not take {TensorSpec.of(x)}: {error}") from error
        if restored is not None:
            self._hold_to_bound(array, restored, settings)
        return Parts(from_library(data, x.device, room))

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        data, restored = parts.main.cpu().numpy().tobytes(), np.empty(0, np.uint8)
        if not x.numel and data:
            raise CorruptData(f"{self}: expected no bytes for {x}, found {len(data)}")
        if x.numel:
            dtype = str(x.dtype).removeprefix("torch.")
            self.wrapper.load()
            try:
                restored = decompress(self.peer, data, x.shape, dtype, Settings()).reshape(-1).view(np.uint8)
            except PeerError as error:
                raise CorruptData(f"{self}: {self.peer} could not read {len(data)} bytes as {x}: {error}") from error
        return from_bytes(from_library(restored, parts.main.device), x, out)

    def settings(self, x: Any) -> Settings:
        """With the bound that these values make absolute."""
        self.wrapper.load()
        bound = self.abs
        if self.rel is not None:
            bound = max(self.rel * value_range(x), float(np.finfo(np.float32).tiny))
        return Settings(bound, self.level, self.bits)

    def _hold_to_bound(self, x: Any, restored: Any, settings: Settings) -> None:
        if settings.bits is not None or not (self.wrapper.bounded or self.wrapper.lossless):
            return  # it promised nothing
        bound = settings.bound or 0.0
        error = worst_error(x, restored)
        if not error <= bound:
            raise DataError(
                f"{self}: {self.peer} is off by {error:g}, and {bound:g} was to be kept. Lower the bound, "
                "remove NaN and Inf, or give check=false to take it as it comes"
            )


def compress(peer: str, x: Any, settings: Settings) -> bytes:
    """A peer's bytes, from a process of its own where it is fragile; PeerError for whatever it raises."""
    if find(peer).fragile:
        header = {"do": "compress", "peer": peer, "settings": settings._asdict()}
        return CHILD.call(header | {"dtype": str(x.dtype), "shape": x.shape}, [x])[1][0]
    try:
        return job.compress(peer, x, settings)
    except Exception as error:  # each library has its own kinds
        raise PeerError(f"{type(error).__name__}: {error}") from error


def decompress(peer: str, data: bytes, shape: tuple[int, ...], dtype: str, settings: Settings) -> Any:
    """The way back."""
    if find(peer).fragile:
        room = math.prod(shape) * np.dtype(dtype).itemsize
        header = {"do": "decompress", "peer": peer, "settings": settings._asdict(), "room": room}
        return np.frombuffer(CHILD.call(header | {"dtype": dtype, "shape": shape}, [data])[1][0], dtype).reshape(shape)
    try:
        return job.decompress(peer, data, shape, dtype, settings)
    except Exception as error:
        raise PeerError(f"{type(error).__name__}: {error}") from error


def value_range(x: Any) -> float:
    """max - min of the finite values, in float64."""
    finite = x[np.isfinite(x)]
    return float(finite.max()) - float(finite.min()) if finite.size else 0.0


def worst_error(x: Any, restored: Any) -> float:
    """The largest |x - x'| in float64; Inf where NaN or Inf came back as something else."""
    a, b = x.astype(np.float64), restored.astype(np.float64)
    with np.errstate(invalid="ignore"):
        off = np.abs(a - b)
    off[np.isnan(off)] = np.inf
    off[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
    return float(off.max(initial=0.0))
