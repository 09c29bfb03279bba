"""What is stored beside the parts, as text: the chain with every field spelled out, and the specs.

    dct:chop=4,block=8,keep=square@1|cast:dtype=float16@1;float32[3,256,256]

After the chain come the spec of what went in and that of every boundary that the data decided, in order; the
others follow from the stages' own promises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch

from laconic import grammar
from laconic.encoded import Encoded, Link
from laconic.errors import CorruptData, LaconicError, VersionError
from laconic.stage import TensorSpec

FORMAT = 1
"""Of the wire and of the file. Raised when either changes in a way that an older laconic would misread."""

_SPEC = re.compile(r"(\w+)\[((?:\d{1,18}(?:,\d{1,18}){0,63})?)\]")
_LINK = re.compile(r"(.*)@([1-9]\d{0,5})")
_MAX_NUMEL = 2**60

_NAMES = """bool uint8 uint16 uint32 uint64 int8 int16 int32 int64
    float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 complex64"""
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in _NAMES.split()}
"""What a description may name, and a file may hold."""


def describe(enc: Encoded) -> str:
    undecided = [
        repr(after)
        for link, before, after in zip(enc.chain, enc.specs, enc.specs[1:], strict=False)
        if not link.stage.out_spec(before).main.exact
    ]
    return ";".join(["|".join(map(str, enc.chain)), repr(enc.spec), *undecided])


def parse(text: str | bytes) -> tuple[tuple[Link, ...], tuple[TensorSpec, ...]]:
    """The chain and the specs of all boundaries."""
    try:
        text = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as error:
        raise CorruptData(f"The description is not text: {error}") from error
    chain_text, *spec_texts = text.split(";")
    chain = tuple(_parse_link(link) for link in chain_text.split("|"))
    grammar.check_order(link.stage for link in chain)
    given = [_parse_spec(spec) for spec in spec_texts]
    try:
        specs = _thread(chain, given)
    except VersionError:
        raise
    except LaconicError as error:
        raise CorruptData(f"The description '{text}' contradicts itself: {error}") from error
    return chain, specs


def _thread(chain: Sequence[Link], given: list[TensorSpec]) -> tuple[TensorSpec, ...]:
    pending = iter(given)
    specs = [next(pending, TensorSpec((), torch.float32))]
    for link in chain:
        main = link.promise(specs[-1]).main
        specs.append(main.tensor if main.exact else next(pending, main.tensor))
    used = 1 + sum(not link.stage.out_spec(x).main.exact for link, x in zip(chain, specs, strict=False))
    if len(given) != used:
        raise CorruptData(f"expected {used} specs, found {len(given)}")
    return tuple(specs)


def _parse_link(text: str) -> Link:
    match = _LINK.fullmatch(text)
    if match is None:
        raise CorruptData(f"'{text}' names no version of its stage")
    return Link(grammar.parse_stage(match[1]), int(match[2]))


def _parse_spec(text: str) -> TensorSpec:
    match = _SPEC.fullmatch(text)
    dtype = DTYPES.get(match[1]) if match else None
    if match is None or dtype is None:
        raise CorruptData(f"'{text}' is not the spec of a tensor")
    spec = TensorSpec(tuple(int(size) for size in match[2].split(",") if size), dtype)
    if spec.numel > _MAX_NUMEL:
        raise CorruptData(f"{spec} is larger than any memory")
    return spec


def check_format(version: int) -> None:
    if version > FORMAT:
        raise VersionError(f"This was written in format {version}; this laconic reads up to {FORMAT}. Upgrade laconic")
