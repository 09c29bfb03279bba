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
    "0.1.0-bound": "bound:rel=1e-2",
    "0.1.0-bound-lorenzo-bitpack": "bound:rel=1e-3|lorenzo|bitpack",
    "0.1.0-bound-row-bitpack": "bound:abs=0.01,per=row|bitpack",
    "0.1.0-lorenzo-bitpack": "lorenzo:dims=3|bitpack",
    "0.1.0-raw": "raw",
    "0.1.0-constant": "constant",
    "0.1.0-affine-group-fixed": "affine:bits=4,group=32|bitpack:width=4",
    "0.1.0-affine-row-fixed-symmetric": "affine:bits=3,per=row,symmetric=true|bitpack:width=5",
    "0.1.0-affine-stochastic": "affine:bits=6,stochastic=true,seed=5",
    "0.1.0-huffman": "affine|huffman",
    "0.1.0-huffman-wide": "cast:dtype=bfloat16|huffman",
    "0.1.0-rans": "affine|rans",
    "0.1.0-rans-wide": "cast:dtype=bfloat16|rans",
    "0.1.0-bound-lorenzo-rans": "bound:rel=1e-3|lorenzo|rans",
    "0.1.0-bound-rows-huffman": "bound:abs=0.01|rows|huffman",
    "0.1.0-bound-vlz": "bound:abs=0.01|vlz:window=32,block=2048",
    "0.1.0-rows-vlz": "rows|vlz",
}
TO_THE_BIT = {"0.1.0-cast-bfloat16", *(name for name in CASES if "bound" in name or "lorenzo" in name)}
TO_THE_BIT |= {"0.1.0-raw", "0.1.0-constant", "0.1.0-affine-group-fixed", "0.1.0-affine-row-fixed-symmetric"}
TO_THE_BIT |= {"0.1.0-affine-stochastic", "0.1.0-rows-vlz"}
"""No float arithmetic, or none that a body may round differently."""


def original(name: str) -> torch.Tensor:
    x = ramp((2, 3, 13, 21))
    if name == "0.1.0-constant":
        return torch.full_like(x, -0.1)
    if name == "0.1.0-lorenzo-bitpack":  # floats whose bits are foretold
        return torch.linspace(1, 1.01, x.numel()).reshape(x.shape)
    if "rows" in name or "vlz" in name:  # some again and again
        x = x[:, :, torch.arange(130 if "bound" in name else 40) ** 2 % 13]
    if "bound" in name:
        x[1, 2, 3, 4:7] = torch.tensor([torch.nan, torch.inf, 1e30 if "row" in name else -torch.inf])
    return x


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", ["wire", "safetensors"])
def test_old_bytes_are_read_as_something_else(name: str, form: str) -> None:
    path = GOLDEN / f"{name}.{form}"
    enc = laconic.Encoded.from_bytes(path.read_bytes()) if form == "wire" else laconic.load(path)
    assert "|".join(str(link.stage) for link in enc.chain) == str(laconic.codec(CASES[name]))
    expected = laconic.codec(CASES[name]).roundtrip(original(name))
    assert torch.allclose(laconic.decode(enc), expected, atol=1e-5 if "affine" not in name else 5e-2, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_the_bytes_written_change_without_a_new_version(name: str) -> None:
    """Headers and integers to the bit; transformed floats may differ by the body's rounding."""
    golden = laconic.Encoded.from_bytes((GOLDEN / f"{name}.wire").read_bytes())
    enc = laconic.encode(original(name), CASES[name])
    assert (enc.chain, enc.specs, list(enc.parts)) == (golden.chain, golden.specs, list(golden.parts))
    for part, tensor in enc.parts.items():
        near = 1 if tensor.dtype in (torch.uint8, torch.int8) else 1e-2 if tensor.dtype.itemsize == 2 else 1e-5
        assert torch.allclose(tensor.double(), golden.parts[part].double(), atol=near, rtol=0, equal_nan=True), part
    if name in TO_THE_BIT:
        assert enc.to_bytes() == (GOLDEN / f"{name}.wire").read_bytes()


def test_a_golden_file_belongs_to_no_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)


def write(name: str) -> None:
    enc = laconic.encode(original(name), CASES[name])
    for path in (GOLDEN / f"{name}.wire", GOLDEN / f"{name}.safetensors"):
        if path.exists():
            raise SystemExit(f"{path.name} is there already, and golden files are never rewritten")
    (GOLDEN / f"{name}.wire").write_bytes(enc.to_bytes())
    laconic.save(GOLDEN / f"{name}.safetensors", enc)


if __name__ == "__main__":
    write(sys.argv[1])
