"""What is stored beside the parts, as text: the chain with every field spelled out, and the specs.

    dct:chop=4,block=8,keep=square@1|cast:dtype=float16@1;float32[3,256,256]

After the chain come the spec of what went in and that of every boundary that the data decided, in order; the
others follow from the stages' own promises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import torch

from laconic import grammar
from laconic.encoded import Encoded, Link
from laconic.errors import CorruptData, LaconicError, VersionError
from laconic.stage import PartSpec, TensorSpec

FORMAT = 1
"""Of the wire and of the file. Raised when either changes in a way that an older laconic would misread."""

_SPEC = re.compile(r"(\w+)\[((?:\d{1,18}(?:,\d{1,18}){0,63})?)\]")
_LINK = re.compile(r"(.*)@([1-9]\d{0,5})")
_MAX_NUMEL = 2**60

_NAMES = """bool uint8 uint16 uint32 uint64 int8 int16 int32 int64
    float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 complex64"""
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in _NAMES.split()}
"""What a description may name, and a file may hold."""


Chain = tuple[Link, ...]


def describe(enc: Encoded) -> str:
    return ";".join([outline(enc), *(repr(after) for _, after in decided(enc))])


def outline(enc: Encoded) -> str:
    """Without what the data decided."""
    return "|".join(map(str, enc.chain)) + f";{enc.spec!r}"


def decided(enc: Encoded) -> list[tuple[PartSpec, TensorSpec]]:
    """What was promised of each boundary that the data decided, and what it became."""
    boundaries = zip(enc.chain, enc.specs, enc.specs[1:], strict=False)
    promised = [(link.stage.out_spec(before).main, after) for link, before, after in boundaries]
    return [(main, after) for main, after in promised if not main.exact]


def parse(text: str | bytes) -> tuple[Chain, tuple[TensorSpec, ...]]:
    """The chain and the specs of all boundaries."""
    chain, given = _parse(text)
    pending = iter(given[1:])
    specs = thread(chain, given[0], lambda promised: next(pending, promised.tensor))
    if len(given) != (used := 1 + sum(not main.exact for main in _promised(chain, specs))):
        raise CorruptData(f"expected {used} specs, found {len(given)}")
    return chain, specs


def parse_outline(text: bytes) -> tuple[Chain, TensorSpec]:
    """The chain and the spec of what went in."""
    chain, given = _parse(text)
    if len(given) != 1:
        raise CorruptData(f"expected the spec of what went in alone, found {len(given)}")
    return chain, given[0]


def _parse(text: str | bytes) -> tuple[Chain, list[TensorSpec]]:
    try:
        text = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as error:
        raise CorruptData(f"The description is not text: {error}") from error
    chain_text, *spec_texts = text.split(";")
    chain = tuple(_parse_link(link) for link in chain_text.split("|"))
    grammar.check_order(link.stage for link in chain)
    if not spec_texts:
        raise CorruptData(f"'{text}' does not say what went in")
    return chain, [_parse_spec(spec) for spec in spec_texts]


def thread(chain: Chain, x: TensorSpec, decide: Callable[[PartSpec], TensorSpec]) -> tuple[TensorSpec, ...]:
    """The specs of all boundaries; `decide` says what became of those that the data decided."""
    specs = [x]
    try:
        for link in chain:
            main = link.promise(specs[-1]).main
            specs.append(main.tensor if main.exact else decide(main))
    except VersionError:
        raise
    except LaconicError as error:
        raise CorruptData(f"The description of {x} contradicts itself: {error}") from error
    return tuple(specs)


def _promised(chain: Chain, specs: Sequence[TensorSpec]) -> list[PartSpec]:
    return [link.stage.out_spec(x).main for link, x in zip(chain, specs, strict=False)]


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
