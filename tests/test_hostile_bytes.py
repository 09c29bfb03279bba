"""Bytes that are not what laconic wrote: every byte of a buffer and of a file, changed and cut."""

from __future__ import annotations

import contextlib
import json
import struct
import zlib
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

import laconic
from laconic import CorruptData, Encoded, LaconicError
from laconic.errors import FileError, VersionError
from laconic.wire import HEADER

from .table import ramp


def sample() -> Encoded:
    return laconic.encode(ramp((3, 9, 10)), "dct:chop=2,keep=triangle|affine:per=channel")


def resealed(data: bytes) -> bytes:
    """The same bytes with a checksum that fits: what a careful attacker sends."""
    data = data[:10] + data[10:12] + struct.pack("<Q", len(data)) + b"\0\0\0\0" + data[24:]
    return data[:20] + struct.pack("<I", zlib.crc32(data[24:], zlib.crc32(data[:20]))) + data[24:]


def test_a_buffer_with_one_changed_byte_is_read() -> None:
    data = sample().to_bytes()
    for at in range(len(data)):
        for change in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= change
            with pytest.raises(CorruptData):
                Encoded.from_bytes(damaged)


def test_a_truncated_or_longer_buffer_is_read() -> None:
    data = sample().to_bytes()
    for length in range(len(data)):
        with pytest.raises(CorruptData):
            Encoded.from_bytes(data[:length])
    with pytest.raises(CorruptData):
        Encoded.from_bytes(data + b"\0")


@given(st.binary(max_size=200))
def test_any_bytes_crash_the_reader(data: bytes) -> None:
    with pytest.raises(CorruptData):
        Encoded.from_bytes(data)


@given(st.data())
def test_sealed_nonsense_crashes_the_reader(data: st.DataObject) -> None:
    """With the checksum right, what is inside must still be doubted: decoded safely, or refused."""
    good = bytearray(sample().to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(HEADER.size, len(good) - 1))
        good[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(LaconicError):
        laconic.decode(Encoded.from_bytes(resealed(bytes(good))))


@pytest.mark.parametrize(
    "description",
    [
        "",
        ";",
        "dct:chop=4@1",
        "dct:chop=4@1;float32[3,9]x",
        "dct:chop=4@1;float32[8,8];float32[8,8]",
        "dct:chop=4@x;float32[8,8]",
        "dct:chop=4;float32[8,8]",
        "dct:chop=99@1;float32[8,8]",
        "nonsense@1;float32[8,8]",
        "dct:chop=4@1;strided[8,8]",
        "dct:chop=4@1;__name__[8,8]",
        "dct:chop=4@1;int32[8,8]",
        "dct:chop=4@1;float32[4611686018427387904,4611686018427387904]",
        "dct:chop=4@1;float32[1000000000,1000000000]",
        "dct:chop=4@1;float32[-8,8]",
        "dct:chop=4,block=8,keep=square@1;float32[0,8]",
        "dct:chop=4,block=8,keep=triangle@1;float32[0,8]",
        "cast:dtype=float16@1;float32[0,9999999999999999999]",
        "cast:dtype=float16@1;float32[0,999999999999999999,999999999999999999]",
        "cast:dtype=float16@" + "9" * 5000 + ";float32[16]",
        "cast:dtype=float16@0;float32[32]",
        "cast:dtype=float16@1;float32[" + ",".join(["1"] * 82) + "]",
        "cast:dtype=float16@1;float4_e2m1fn_x2[16]",
        "cast:dtype=float16@1;complex64[8]",
        "affine:bits=8@1|dct:chop=4@1;float32[8,8]",
    ],
)
def test_a_description_that_lies_is_believed(description: str) -> None:
    text = description.encode()
    body = HEADER.pack(b"\x89laconic", 1, 1, len(text), 0, 0) + text + struct.pack("<Q", 64) + bytes(64)
    with pytest.raises(LaconicError):
        laconic.decode(Encoded.from_bytes(resealed(body)))


def test_a_newer_format_passes_for_damage() -> None:
    data = bytearray(laconic.encode(ramp((8, 8)), "dct:chop=4").to_bytes())
    data[8] = 2
    with pytest.raises(VersionError, match="Upgrade"):
        Encoded.from_bytes(resealed(bytes(data)))
    newer_stage = bytes(data).replace(b"@1", b"@2")
    with pytest.raises(VersionError, match="Upgrade"):
        Encoded.from_bytes(resealed(newer_stage[:8] + b"\x01" + newer_stage[9:]))


def test_a_file_with_one_changed_byte_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    laconic.save(path, {"a": sample(), "b": torch.arange(3)})
    data = path.read_bytes()
    for at in range(len(data)):
        for change in (0x01, 0x80):
            path.write_bytes(data[:at] + bytes([data[at] ^ change]) + data[at + 1 :])
            with pytest.raises(CorruptData):
                laconic.load(path)


def test_a_truncated_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    laconic.save(path, sample())
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(CorruptData):
            laconic.load(path)


def write_file(path: Path, stored: object, tensors: dict[str, torch.Tensor]) -> None:
    """A file with a checksum that fits, and metadata of one's own."""
    from laconic.container import _stamp

    text = stored if isinstance(stored, str) else json.dumps(stored, separators=(",", ":"))
    safetensors.torch.save_file(tensors, path, {"laconic": '{"crc32":"00000000",' + text.removeprefix("{")})
    _stamp(path)


@pytest.mark.parametrize(
    "stored",
    [
        "",
        '"a":' + "[" * 100_000,
        {},
        {"format": "1", "encoded": {}},
        {"format": 1, "encoded": []},
        {"format": 1, "encoded": {"": 7}},
        {"format": 1, "encoded": {"": "dct:chop=4@1;float32[8,8]", "x": "dct:chop=4@1;float32[8,8]"}},
        {"format": 1, "encoded": {"": "dct:chop=4@1;float32[800,800]"}},
        {"format": 2, "encoded": {}},
    ],
)
def test_metadata_that_lie_are_believed(tmp_path: Path, stored: object) -> None:
    write_file(tmp_path / "x", stored, {"main": torch.zeros(4, 4)})
    with pytest.raises(LaconicError):
        laconic.decode(laconic.load(tmp_path / "x"))


def test_somebody_elses_file_is_read_as_ours(tmp_path: Path) -> None:
    safetensors.torch.save_file({"a": torch.zeros(3)}, tmp_path / "x")
    with pytest.raises(CorruptData, match=r"not a file that laconic\.save wrote"):
        laconic.load(tmp_path / "x")


def test_a_missing_file_is_no_laconic_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="Could not read"):
        laconic.load(tmp_path / "missing")
    with pytest.raises(FileError, match="Could not read"):
        laconic.load(tmp_path)
    with pytest.raises(FileError, match="Could not write"):
        laconic.save(tmp_path / "no" / "folder", sample())
