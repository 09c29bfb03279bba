"""A decoder written from docs/format.md alone: no torch, no numpy, no laconic.

A tensor is its bytes in memory and a spec, `(dtype, shape)`. A stage takes the bytes of `main`, its own side parts by
name, its options, and the specs before and after it, and gives the bytes of what went in.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Callable

from .encoders import plain_huffman, plain_rans, plain_rows

Spec = tuple[str, tuple[int, ...]]
Options = dict[str, str]
Stage = tuple[str, Options]

SIZES = {"bool": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "float16": 2, "bfloat16": 2}
SIZES |= {"uint32": 4, "int32": 4, "float32": 4, "uint64": 8, "int64": 8, "float64": 8}
SIGNED = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
LETTERS = {"int8": "b", "uint8": "B", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d"}
LETTERS |= {"uint16": "H", "uint32": "I", "uint64": "Q", "float16": "e"}
FLOATS = ("float16", "bfloat16", "float32", "float64")
RESTART = {1: 4096, 2: 64, 3: 16}


def decode(data: bytes) -> tuple[Spec, bytes]:
    """The tensor that a buffer for the wire holds."""
    description, parts = read_wire(data)
    stages, given = read_description(description)
    specs = thread(stages, given.pop(0), lambda name, before: given.pop(0))
    assert not given
    return restored(stages, specs, parts)


def restored(stages: list[Stage], specs: list[Spec], parts: list[bytes]) -> tuple[Spec, bytes]:
    main, sides = parts[0], parts[1:]
    owners = [i for i, stage in enumerate(stages) for _ in side_names(*stage)]
    assert len(owners) == len(sides)
    for i in reversed(range(len(stages))):
        name, options = stages[i]
        mine = [part for part, owner in zip(sides, owners, strict=True) if owner == i]
        side = dict(zip(side_names(name, options), mine, strict=True))
        main = STAGES[name](main, side, options, specs[i], specs[i + 1])
        assert len(main) == nbytes(specs[i])
    return specs[0], main


def decode_many(data: bytes) -> list[tuple[Spec, bytes]]:
    """The tensors that a buffer for the wire of many holds."""
    read_header(data, b"\x89lacmany")
    reader = Reader(data, 24)
    items, outlines, pieces = reader.number(), reader.number(), reader.number()
    described = [read_description(reader.take(reader.number()).decode()) for _ in range(outlines)]
    sizes = [reader.number() for _ in range(pieces)]
    rows = []
    for _ in range(items):
        stages, (x,) = described[reader.number()]
        specs = thread(stages, x, lambda name, before: decided(name, before, reader.number()))
        names = ["main", *(side for stage in stages for side in side_names(*stage))]
        rows.append((stages, specs, [reader.number() for _ in names]))
    found = [reader.take(size) for size in sizes]
    assert reader.at == len(data)
    return [restored(stages, specs, [found[number] for number in numbers]) for stages, specs, numbers in rows]


def decided(name: str, before: Spec, number: int) -> Spec:
    """What became of a stage's output that the data decided: which of the widths, or how many elements."""
    if name == "bound":
        return ("int8", "int16", "int32")[number], before[1]
    if name == "rows":
        return before[0] if before[0] in LETTERS and before[0] not in FLOATS else SIGNED[SIZES[before[0]]], (number,)
    return "uint8", (number,)


class Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        assert self.at + count <= len(self.data)
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        (byte,) = self.take(1)
        return byte if byte < 128 else (byte & 127) + (self.number() << 7)


def read_description(text: str) -> tuple[list[Stage], list[Spec]]:
    """The stages, and the specs behind them."""
    chain, *given = text.split(";")
    return [read_stage(stage) for stage in chain.split("|")], [read_spec(spec) for spec in given]


def read_header(data: bytes, expected: bytes) -> tuple[int, int]:
    magic, version, count, length, total, crc = struct.unpack("<8sBBHQI", data[:24])
    assert magic == expected
    assert version == 1
    assert total == len(data)
    assert crc == zlib.crc32(data[24:], zlib.crc32(data[:20]))
    return count, length


def read_wire(data: bytes) -> tuple[str, list[bytes]]:
    count, length = read_header(data, b"\x89laconic")
    at = 24 + length
    lengths = struct.unpack(f"<{count}Q", data[at : at + 8 * count])
    at += 8 * count
    parts = []
    for size in lengths:
        parts.append(data[at : at + size])
        at += size
    assert at == len(data)
    return data[24 : 24 + length].decode(), parts


def read_stage(text: str) -> Stage:
    text, _, version = text.rpartition("@")
    assert version == "1"
    name, _, options = text.partition(":")
    return name, dict(option.split("=") for option in options.split(",") if option)  # type: ignore[misc]


def read_spec(text: str) -> Spec:
    match = re.fullmatch(r"(\w+)\[([\d,]*)\]", text)
    assert match
    return match[1], tuple(int(size) for size in match[2].split(",") if size)


def thread(stages: list[Stage], x: Spec, decide: Callable[[str, Spec], Spec]) -> list[Spec]:
    """The spec before the first stage and after each; `decide` says those that the data decided."""
    specs = [x]
    for name, options in stages:
        dtype, shape = specs[-1]
        if name == "bound" and options["width"] != "auto":
            specs.append((f"int{options['width']}", shape))
        elif name == "lorenzo":
            specs.append((SIGNED[SIZES[dtype]], shape))
        elif name == "affine":
            specs.append(("int8" if options["symmetric"] == "true" else "uint8", shape))
        elif name == "bitpack" and "width" in options:
            *rows, width = shape or (1,)
            specs.append(("uint8", (*rows, int(options["width"]) * -(-width // 8))))
        elif name == "raw":
            specs.append(("uint8", (nbytes(specs[-1]),)))
        elif name == "constant":
            specs.append(("uint8", (SIZES[dtype] * min(1, math.prod(shape)),)))
        else:
            specs.append(decide(name, specs[-1]))
    return specs


def nbytes(spec: Spec) -> int:
    return SIZES[spec[0]] * math.prod(spec[1])


def unpack(data: bytes, dtype: str) -> list[float]:
    return list(struct.unpack(f"<{len(data) // SIZES[dtype]}{LETTERS[dtype]}", data))


def rounded(value: float, dtype: str) -> bytes:
    """One element, rounded half to even; too large ones are infinite."""
    if dtype == "bfloat16":
        (word,) = struct.unpack("<I", rounded(value, "float32"))
        return struct.pack("<H", (word + 0x7FFF + (word >> 16 & 1)) >> 16 if value == value else 0x7FC0)
    try:
        return struct.pack("<" + LETTERS[dtype], value)
    except OverflowError:
        return struct.pack("<" + LETTERS[dtype], math.copysign(math.inf, value))


def number(value: float, dtype: str) -> float:
    """As a variable of this type would have it."""
    return float(struct.unpack("<" + LETTERS[dtype], rounded(value, dtype))[0])


def bound(main: bytes, side: dict[str, bytes], options: Options, before: Spec, after: Spec) -> bytes:
    dtype, shape = before
    arithmetic = "float64" if dtype == "float64" else "float32"
    steps, codes = unpack(side["step"], arithmetic), unpack(main, after[0])
    size = SIZES[dtype]
    restored = bytearray()
    for place, code in enumerate(codes):
        step = steps[place * len(steps) // len(codes)]
        restored += rounded(number(number(code, arithmetic) * step, arithmetic), dtype)
    places = unpack(side["index"], "int32" if math.prod(shape) < 2**31 else "int64")
    assert len(side["values"]) == size * len(places)
    for k, place in enumerate(map(int, places)):
        assert 0 <= place < len(codes)
        restored[size * place : size * (place + 1)] = side["values"][size * k : size * (k + 1)]
    return bytes(restored)


def affine(main: bytes, side: dict[str, bytes], options: Options, before: Spec, after: Spec) -> bytes:
    dtype, shape = before
    arithmetic = "float64" if dtype == "float64" else "float32"
    scales = unpack(side["scale"], arithmetic)
    offsets = unpack(side["offset"], arithmetic) if "offset" in side else [0.0] * len(scales)
    inner = {"tensor": len(shape), "sample": 3, "channel": 2, "row": 1}[options["per"]]
    scope = math.prod(shape[len(shape) - min(inner, len(shape)) :])
    width, group = (shape or (1,))[-1], int(options.get("group", 0))
    restored = bytearray()
    for place, code in enumerate(unpack(main, after[0])):
        here = place // width * -(-width // group) + place % width // group if group else place // scope
        product = number(code * scales[here], arithmetic)
        restored += rounded(number(product + offsets[here], arithmetic) if "offset" in side else product, dtype)
    return bytes(restored)


def lorenzo(main: bytes, side: dict[str, bytes], options: Options, before: Spec, after: Spec) -> bytes:
    dtype, shape = after
    codes = [int(code) for code in unpack(main, dtype)]
    dims = min(int(options["dims"]), len(shape))
    stride = 1
    for back in range(1, dims + 1):
        size = shape[-back]
        for place in range(len(codes)):
            along = place // stride % size
            if along % (RESTART[dims] if back == dims else size) != 0:
                codes[place] += codes[place - stride]
        stride *= size
    bits = 8 * SIZES[dtype]
    return b"".join((code % 2**bits).to_bytes(bits // 8, "little") for code in codes)


def bitpack(main: bytes, side: dict[str, bytes], options: Options, before: Spec, after: Spec) -> bytes:
    if "width" in options:
        return unpack_rows(main, int(options["width"]), before)
    size, count = SIZES[before[0]], math.prod(before[1])
    if main[0] == 0:
        return main[1:]
    assert main[0] == 1
    chunks = -(-count // 4096)
    lengths = struct.unpack(f"<{chunks}I", main[1 : 1 + 4 * chunks])
    at = 1 + 4 * chunks
    codes: list[int] = []
    for length in lengths:
        codes += unpack_chunk(main[at : at + length], min(4096, count - len(codes)), size)
        at += length
    assert at == len(main)
    if not before[0].startswith("uint"):
        codes = [code >> 1 if code % 2 == 0 else -(code + 1 >> 1) for code in codes]
    return b"".join((code % 2 ** (8 * size)).to_bytes(size, "little") for code in codes)


def unpack_rows(main: bytes, bits: int, codes: Spec) -> bytes:
    dtype, shape = codes
    width = (shape or (1,))[-1]
    found, at = bytearray(), 0
    for _ in range(math.prod(shape[:-1])):
        for left in range(width, 0, -32):
            count = min(left, 32)
            size = -(-count // 8)
            planes = [int.from_bytes(main[at + size * bit : at + size * (bit + 1)], "little") for bit in range(bits)]
            at += size * bits
            for i in range(count):
                code = sum((plane >> i & 1) << bit for bit, plane in enumerate(planes))
                found.append((code - 2**bits * (dtype == "int8" and code >> (bits - 1))) % 256)
    assert at == len(main)
    return bytes(found)


def unpack_chunk(chunk: bytes, count: int, size: int) -> list[int]:
    blocks = -(-count // 32)
    at = -(-blocks // 8)
    flags = [byte >> bit & 1 for byte in chunk[:at] for bit in range(8)]
    filled = sum(flags)
    assert filled == sum(flags[:blocks])
    if size == 4:
        widths = iter([width + 1 for width in chunk[at : at + filled]])
        at += filled
    else:
        halves = [half for byte in chunk[at : at + -(-filled // 2)] for half in (byte & 15, byte >> 4)]
        widths = iter([half + 1 for half in halves[:filled]])
        at += -(-filled // 2)
    codes: list[int] = []
    for flag in flags[:blocks]:
        width = next(widths) if flag else 0
        assert width <= 8 * size
        planes = struct.unpack(f"<{width}I", chunk[at : at + 4 * width])
        codes += [sum((plane >> i & 1) << bit for bit, plane in enumerate(planes)) for i in range(32)]
        at += 4 * width
    assert at == len(chunk)
    return codes[:count]


def huffman(main: bytes, side: dict[str, bytes], options: Options, before: Spec, after: Spec) -> bytes:
    size = SIZES[before[0]]
    codes = plain_huffman.read(main, math.prod(before[1]), size, side["book"])
    return b"".join((code % 2 ** (8 * size)).to_bytes(size, "little") for code in codes)


def rans(main: bytes, side: dict[str, bytes], options: Options, before: Spec, after: Spec) -> bytes:
    size = SIZES[before[0]]
    codes = plain_rans.read(main, math.prod(before[1]), size, side["book"])
    return b"".join((code % 2 ** (8 * size)).to_bytes(size, "little") for code in codes)


def layout(x: Spec) -> tuple[int, int]:
    """How many rows, and the bytes of each."""
    row = SIZES[x[0]] * (x[1] or (1,))[-1]
    return (nbytes(x) // row, row) if nbytes(x) else (0, SIZES[x[0]])


def rows(main: bytes, side: dict[str, bytes], options: Options, before: Spec, after: Spec) -> bytes:
    count, row = layout(before)
    assert len(main) % row == 0
    order = plain_rows.places(side["index"], len(main) // row, count)
    return b"".join(main[i * row : (i + 1) * row] for i in order)


def vlz(main: bytes, side: dict[str, bytes], options: Options, before: Spec, after: Spec) -> bytes:
    return plain_rows.read_vlz(main, *layout(before), SIZES[before[0]])


def raw(main: bytes, side: dict[str, bytes], options: Options, before: Spec, after: Spec) -> bytes:
    return main


def constant(main: bytes, side: dict[str, bytes], options: Options, before: Spec, after: Spec) -> bytes:
    return main * math.prod(before[1])


STAGES: dict[str, Callable[[bytes, dict[str, bytes], Options, Spec, Spec], bytes]] = {
    "affine": affine,
    "bitpack": bitpack,
    "bound": bound,
    "constant": constant,
    "huffman": huffman,
    "lorenzo": lorenzo,
    "rans": rans,
    "raw": raw,
    "rows": rows,
    "vlz": vlz,
}


def side_names(stage: str, options: Options) -> tuple[str, ...]:
    if stage == "affine":
        return ("scale",) if options["symmetric"] == "true" else ("scale", "offset")
    names = {"bound": ("step", "index", "values"), "huffman": ("book",), "rans": ("book",), "rows": ("index",)}
    return names.get(stage, ())
