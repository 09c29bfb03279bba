"""CRC-32, as zlib has it: the checksum of the wire and of files."""

from __future__ import annotations

import zlib
from typing import Any

from laconic.backends.native import core

_WORTH_FOLDING = 1024  # bytes
_WHOLE = 16

_core: Any = core()
_folds = _core is not None and _core.has_checksum()


def crc32(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Of bytes that follow others with the checksum `value`.

    >>> crc32(b"laconic") == zlib.crc32(b"laconic")
    True
    """
    if not _folds or len(data) < _WORTH_FOLDING:
        return zlib.crc32(data, value)
    whole = len(data) - len(data) % _WHOLE
    value = _core.checksum(data, whole, value)
    return value if whole == len(data) else zlib.crc32(memoryview(data)[whole:], value)
