"""A chain as the array-to-bytes codec of a Zarr v3 array, found by its entry point wherever laconic is installed.

    chunk (numpy)  --chain-->  Encoded  -->  the wire's bytes, with their checksum

The array's metadata name it as `{"name": "laconic", "configuration": {"codec": "dct:chop=4"}}`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from laconic.chain import Codec, decode
from laconic.chain import codec as to_codec
from laconic.encoded import Encoded
from laconic.errors import CorruptData, MissingExtra
from laconic.stage import TensorSpec

try:
    from zarr.abc.codec import ArrayBytesCodec
    from zarr.registry import register_codec
except ImportError as error:
    raise MissingExtra("zarr", "data", "laconic.data.ZarrCodec") from error

if TYPE_CHECKING:
    from typing import Self

    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

NAME = "laconic"


@dataclass(frozen=True)
class ZarrCodec(ArrayBytesCodec):
    """For `zarr.create_array(..., serializer=ZarrCodec("dct:chop=4"))`. Whoever has laconic opens the array with
    plain `zarr.open`, xarray or Dask."""

    codec: str | Codec
    """As text, spelled as a person would; a Codec is taken for its text."""

    is_fixed_size = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "codec", str(to_codec(self.codec)))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        configuration = data.get("configuration")
        if data.get("name") != NAME or not isinstance(configuration, dict) or set(configuration) != {"codec"}:
            raise CorruptData(f"expected {cls('dct:chop=4').to_dict()} or another codec, found {data}")
        return cls(configuration["codec"])

    def to_dict(self) -> dict[str, Any]:
        return {"name": NAME, "configuration": {"codec": str(self.codec)}}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Refuses what the chain cannot take before a chunk is written."""
        chunks = getattr(chunk_grid, "chunk_shape", shape)
        to_codec(self.codec).out_spec(TensorSpec(chunks, torch_dtype(dtype.to_native_dtype())))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        raise NotImplementedError("a laconic chunk has a header whose size depends on the codec")

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        data = await asyncio.to_thread(encode_chunk, to_codec(self.codec), np.asarray(chunk_data.as_numpy_array()))
        return chunk_spec.prototype.buffer.from_bytes(data)

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        expected = TensorSpec(chunk_spec.shape, torch_dtype(chunk_spec.dtype.to_native_dtype()))
        x = await asyncio.to_thread(decode_chunk, chunk_data.as_numpy_array().data, expected)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(x.numpy())


register_codec(NAME, ZarrCodec)  # for those who run laconic from its sources: the entry point needs an install


def encode_chunk(codec: Codec, chunk: np.ndarray[Any, Any]) -> bytes:
    return codec.encode(to_tensor(chunk)).to_bytes()


def decode_chunk(data: memoryview, expected: TensorSpec) -> Tensor:
    enc = Encoded.from_bytes(data)
    if enc.spec != expected:
        raise CorruptData(f"a chunk: expected {expected}, found {enc.spec}")
    return decode(enc)


def to_tensor(chunk: np.ndarray[Any, Any]) -> Tensor:
    """The same values, in the machine's order of bytes, contiguous and writable as torch wants them."""
    native = np.require(chunk, chunk.dtype.newbyteorder("="), ["C", "W"])
    return torch.from_numpy(native)


def torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    return to_tensor(np.empty(0, dtype)).dtype
