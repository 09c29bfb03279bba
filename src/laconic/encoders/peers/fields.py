"""Peers made for scientific fields: each keeps to an absolute bound."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from laconic.encoders.peers.wrapper import Array, Settings, Wrapper, folded

_FLOATS = frozenset({"float32", "float64"})


class Sz3(Wrapper):
    """SZ3. `level` is its algorithm: 0 Lorenzo and regression, 1 interpolation and Lorenzo (its own choice),
    2 interpolation, 3 no prediction."""

    library: ClassVar[str] = "pysz"
    package: ClassVar[str] = "pysz"
    dtypes: ClassVar[frozenset[str]] = _FLOATS
    bounded: ClassVar[bool] = True
    lossless: ClassVar[bool] = False
    levels: ClassVar[range | None] = range(4)

    def compress(self, x: Array, settings: Settings) -> Any:
        library = self.load()
        config = library.szConfig()
        config.errorBoundMode = library.szErrorBoundMode.ABS
        config.absErrorBound = settings.bound
        if settings.level is not None:
            config.cmprAlgo = settings.level
        return library.sz.compress(x.reshape(folded(x.shape, 1, 4)), config)[0]

    def decompress(self, data: Any, room: Array, settings: Settings) -> Array:
        bytes_in = np.frombuffer(data, np.uint8)
        found, _ = self.load().sz.decompress(bytes_in, room.dtype, folded(room.shape, 1, 4))
        return np.asarray(found)


class Zfp(Wrapper):
    """zfp, with a tolerance: at most this error for finite values of similar size. NaN and Inf spoil their block."""

    library: ClassVar[str] = "zfpy"
    package: ClassVar[str] = "zfpy"
    dtypes: ClassVar[frozenset[str]] = _FLOATS
    bounded: ClassVar[bool] = True

    def compress(self, x: Array, settings: Settings) -> Any:
        tolerance = -1 if settings.bound is None else settings.bound
        return self.load().compress_numpy(x.reshape(folded(x.shape, 1, 4)), tolerance=tolerance)

    def decompress(self, data: Any, room: Array, settings: Settings) -> Array:
        return np.asarray(self.load().decompress_numpy(data))


class Sperr(Wrapper):
    """SPERR, with a point-wise error."""

    library: ClassVar[str] = "imagecodecs"
    package: ClassVar[str] = "imagecodecs"
    dtypes: ClassVar[frozenset[str]] = _FLOATS
    bounded: ClassVar[bool] = True
    lossless: ClassVar[bool] = False

    def compress(self, x: Array, settings: Settings) -> Any:
        return self.load().sperr_encode(x.reshape(folded(x.shape, 2, 3)), settings.bound, "pwe", numthreads=1)

    def decompress(self, data: Any, room: Array, settings: Settings) -> Array:
        return np.asarray(self.load().sperr_decode(data, numthreads=1, out=room.reshape(folded(room.shape, 2, 3))))


class Lerc(Wrapper):
    """LERC; `level` puts Zstandard of that level behind it."""

    library: ClassVar[str] = "imagecodecs"
    package: ClassVar[str] = "imagecodecs"
    dtypes: ClassVar[frozenset[str]] = _FLOATS
    bounded: ClassVar[bool] = True
    levels: ClassVar[range | None] = range(1, 23)

    def compress(self, x: Array, settings: Settings) -> Any:
        behind = {} if settings.level is None else {"compression": "zstd", "compressionargs": {"level": settings.level}}
        bands = x.reshape((1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x.reshape(-1, *x.shape[-2:])
        return self.load().lerc_encode(bands, level=settings.bound or 0.0, planar=True, **behind)

    def decompress(self, data: Any, room: Array, settings: Settings) -> Array:
        return np.asarray(self.load().lerc_decode(data))
