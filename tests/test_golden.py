"""Files named for the version that introduced them, never rewritten: every later version reads them.

To add one: `python -m tests.test_golden NAME`, once, for a chain in CASES that has no file yet.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import laconic

from .table import ramp

GOLDEN = Path(__file__).parent / "golden"
CASES = {
    "0.1.0-dct": "dct:chop=4",
    "0.1.0-dct-triangle": "dct:chop=5,keep=triangle",
    "0.1.0-dct-block16": "dct:chop=6,block=16",
    "0.1.0-zfp": "zfp:chop=2",
    "0.1.0-hadamard": "hadamard:chop=4",
    "0.1.0-cast-float16": "dct:chop=4|cast:dtype=float16",
    "0.1.0-cast-bfloat16": "cast:dtype=bfloat16",
    "0.1.0-affine": "dct:chop=4|affine:bits=8",
    "0.1.0-affine-channel-symmetric": "affine:bits=5,per=channel,symmetric=true",
    "0.1.0-huffman": "affine|huffman",
    "0.1.0-huffman-wide": "cast:dtype=bfloat16|huffman",
}


def original() -> torch.Tensor:
    return ramp((2, 3, 13, 21))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", ["wire", "safetensors"])
def test_old_bytes_are_read_as_something_else(name: str, form: str) -> None:
    path = GOLDEN / f"{name}.{form}"
    enc = laconic.Encoded.from_bytes(path.read_bytes()) if form == "wire" else laconic.load(path)
    assert "|".join(str(link.stage) for link in enc.chain) == str(laconic.codec(CASES[name]))
    expected = laconic.codec(CASES[name]).roundtrip(original())
    assert torch.allclose(laconic.decode(enc), expected, atol=1e-5 if "affine" not in name else 5e-2)


@pytest.mark.parametrize("name", CASES)
def test_the_bytes_written_change_without_a_new_version(name: str) -> None:
    """Headers and integers to the bit; transformed floats may differ by the body's rounding."""
    golden = laconic.Encoded.from_bytes((GOLDEN / f"{name}.wire").read_bytes())
    enc = laconic.encode(original(), CASES[name])
    assert (enc.chain, enc.specs, list(enc.parts)) == (golden.chain, golden.specs, list(golden.parts))
    for part, tensor in enc.parts.items():
        near = 1 if tensor.dtype in (torch.uint8, torch.int8) else 1e-2 if tensor.dtype.itemsize == 2 else 1e-5
        assert torch.allclose(tensor.double(), golden.parts[part].double(), atol=near, rtol=0), part
    if name == "0.1.0-cast-bfloat16":  # no float arithmetic: every byte
        assert enc.to_bytes() == (GOLDEN / f"{name}.wire").read_bytes()


def test_a_golden_file_belongs_to_no_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)


def write(name: str) -> None:
    enc = laconic.encode(original(), CASES[name])
    for path in (GOLDEN / f"{name}.wire", GOLDEN / f"{name}.safetensors"):
        if path.exists():
            raise SystemExit(f"{path.name} is there already, and golden files are never rewritten")
    (GOLDEN / f"{name}.wire").write_bytes(enc.to_bytes())
    laconic.save(GOLDEN / f"{name}.safetensors", enc)


if __name__ == "__main__":
    write(sys.argv[1])
