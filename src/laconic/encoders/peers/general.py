"""Peers for any bytes, any numbers, and pictures."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from laconic.encoders.peers.wrapper import Array, Settings, Wrapper, mantissa_bits

_NUMBERS = frozenset({"float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64"})


class Pco(Wrapper):
    """pcodec: lossless, for numbers of any kind."""

    library: ClassVar[str] = "pcodec"
    package: ClassVar[str] = "pcodec"
    dtypes: ClassVar[frozenset[str]] = _NUMBERS
    levels: ClassVar[range | None] = range(13)
    fragile: ClassVar[bool] = False

    def compress(self, x: Array, settings: Settings) -> Any:
        level = {} if settings.level is None else {"compression_level": settings.level}
        config = self.load().ChunkConfig(enable_8_bit=True, **level)
        return self.load().standalone.simple_compress(x.reshape(-1), config)

    def decompress(self, data: Any, room: Array, settings: Settings) -> Array:
        progress = self.load().standalone.simple_decompress_into(bytes(data), room.reshape(-1))
        if progress.n_processed != room.size or not progress.finished:
            raise ValueError(f"expected {room.size} values, found {progress.n_processed} or more")
        return room


class Blosc2(Wrapper):
    """Blosc2 with bitshuffle and LZ4. With a bound, or with `bits`, the mantissa is cut first (trunc_prec)."""

    library: ClassVar[str] = "blosc2"
    package: ClassVar[str] = "blosc2"
    dtypes: ClassVar[frozenset[str]] = _NUMBERS
    bounded: ClassVar[bool] = True
    levels: ClassVar[range | None] = range(10)
    takes_bits: ClassVar[bool] = True
    threaded: ClassVar[bool] = True

    def compress(self, x: Array, settings: Settings) -> Any:
        library = self.load()
        bits = settings.bits
        if bits is None and settings.bound is not None:
            bits = mantissa_bits(x, settings.bound)
        cut = x.dtype.kind == "f" and bits is not None and bits < np.finfo(x.dtype).nmant
        filters = [library.Filter.TRUNC_PREC] * cut + [library.Filter.BITSHUFFLE]
        options = library.CParams(
            codec=library.Codec.LZ4,
            clevel=5 if settings.level is None else settings.level,
            typesize=x.itemsize,
            nthreads=settings.threads,
            filters=filters,
            filters_meta=[bits] * cut + [0],
        )
        return library.compress2(x, cparams=options)

    def decompress(self, data: Any, room: Array, settings: Settings) -> Array:
        library = self.load()
        library.decompress2(data, dst=room, dparams=library.DParams(nthreads=settings.threads))
        return room


class Jpeg(Wrapper):
    """JPEG of `level` as its quality (95 when not given), for uint8 images: `[H, W]`, or `[1 or 3, H, W]`."""

    library: ClassVar[str] = "simplejpeg"
    package: ClassVar[str] = "simplejpeg"
    dtypes: ClassVar[frozenset[str]] = frozenset({"uint8"})
    lossless: ClassVar[bool] = False
    levels: ClassVar[range | None] = range(1, 101)
    fragile: ClassVar[bool] = False

    def refusal(self, shape: tuple[int, ...]) -> str | None:
        fits = (len(shape) == 2 or (len(shape) == 3 and shape[0] in (1, 3))) and max(shape[-2:]) < 2**16
        return None if fits else "images of [H, W] or [1 or 3, H, W], and fewer than 65536 pixels a side"

    def compress(self, x: Array, settings: Settings) -> Any:
        pixels = np.ascontiguousarray(np.moveaxis(x.reshape(-1, *x.shape[-2:]), 0, -1))
        quality = 95 if settings.level is None else settings.level
        return self.load().encode_jpeg(pixels, quality, colorspace="RGB" if pixels.shape[-1] == 3 else "GRAY")

    def decompress(self, data: Any, room: Array, settings: Settings) -> Array:
        colours = "RGB" if room.ndim == 3 and room.shape[0] == 3 else "GRAY"
        height, width, *_ = self.load().decode_jpeg_header(data)
        if (height, width) != room.shape[-2:]:
            raise ValueError(f"expected {room.shape[-2]} x {room.shape[-1]} pixels, found {height} x {width}")
        return np.moveaxis(self.load().decode_jpeg(data, colorspace=colours), -1, 0)


class Zstd(Wrapper):
    """Zstandard of the bytes as they are; the stage `zstd` without laconic around it."""

    library: ClassVar[str] = "zstandard"
    package: ClassVar[str] = "zstandard"
    dtypes: ClassVar[frozenset[str]] = _NUMBERS
    levels: ClassVar[range | None] = range(-7, 23)
    fragile: ClassVar[bool] = False

    def compress(self, x: Array, settings: Settings) -> Any:
        return self.load().ZstdCompressor(level=3 if settings.level is None else settings.level).compress(x)

    def decompress(self, data: Any, room: Array, settings: Settings) -> Array:
        library = self.load()
        if library.frame_content_size(data) != room.nbytes:
            raise ValueError(f"expected a frame of {room.nbytes} bytes")
        return np.frombuffer(library.ZstdDecompressor().decompress(data), room.dtype)


class Lz4(Wrapper):
    """LZ4 of the bytes as they are; the stage `lz4` without laconic around it."""

    library: ClassVar[str] = "lz4.block"
    package: ClassVar[str] = "lz4"
    dtypes: ClassVar[frozenset[str]] = _NUMBERS
    fragile: ClassVar[bool] = False

    def compress(self, x: Array, settings: Settings) -> Any:
        return self.load().compress(x, store_size=False)

    def decompress(self, data: Any, room: Array, settings: Settings) -> Array:
        return np.frombuffer(self.load().decompress(data, uncompressed_size=room.nbytes), room.dtype)
