"""The checksum is zlib's, however it is reckoned."""

from __future__ import annotations

import random
import zlib

import pytest

from laconic.checksum import crc32

BYTES = random.Random(0).randbytes(70_000)


@pytest.mark.parametrize("length", [0, 1, 63, 1023, 1024, 1025, 1039, 1040, 4096 + 16, 65536 + 64, 70_000])
@pytest.mark.parametrize("before", [0, 1, 0x12345678, 0xFFFFFFFF])
def test_folding_gives_another_sum(length, before):
    for start in (0, 3):
        data = memoryview(BYTES)[start:length]
        assert crc32(data, before) == zlib.crc32(data, before)
        assert crc32(bytes(data), before) == zlib.crc32(data, before)


def test_pieces_add_up_to_another_sum():
    cut = 33_333
    assert crc32(BYTES[cut:], crc32(BYTES[:cut])) == zlib.crc32(BYTES)
