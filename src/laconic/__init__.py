"""laconic: say it in fewer bytes. Lossy compression of every tensor that training moves or keeps."""

from laconic import metrics, nn
from laconic.chain import Codec, codec, decode, encode
from laconic.container import load, save
from laconic.encoded import Encoded, stack
from laconic.errors import CorruptData, LaconicError, SpecError
from laconic.stage import TensorSpec
from laconic.version import __version__

__all__ = [
    "Codec",
    "CorruptData",
    "Encoded",
    "LaconicError",
    "SpecError",
    "TensorSpec",
    "__version__",
    "codec",
    "decode",
    "encode",
    "load",
    "metrics",
    "nn",
    "save",
    "stack",
]
