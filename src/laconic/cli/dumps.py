"""Dumped look-ups as `laconic bench encoders` and `analyze` read them: files, archives and folders of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from laconic.bench.encoders.data import Dump
from laconic.cli import npy, npz
from laconic.errors import FileError, SpecError
from laconic.files import file_errors
from laconic.schedule import table_name
from laconic.stage import TensorSpec

SUFFIXES = (".bin", ".npy", ".npz")
_TABLE = re.compile(r"(?:^|[^a-z])(?:table|emb|embedding|t)[_\-.]?(\d+)", re.IGNORECASE)
_ITERATION = re.compile(r"(?:^|[^a-z])(?:iteration|iter|step|it|i)[_\-.]?(\d+)", re.IGNORECASE)


def dumps(sources: Iterable[str], width: int) -> tuple[Dump, ...]:
    """Every table to measure, in the order given; those of a folder by name, as people count."""
    found = [dump for source in sources for path in _files(Path(source)) for dump in _read(path, width)]
    names = [dump.name for dump in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SpecError(f"There are two dumps of {twice}. Name the iteration too, as in table_5_iter_2000.bin")
    return tuple(found)


def parsed_name(text: str) -> tuple[str, int | None]:
    """The table and the iteration in a name; a name that tells no table is the table's own.

    >>> parsed_name("EMB_5_iter_2000"), parsed_name("table_1"), parsed_name("users"), parsed_name("7")
    (('table_5', 2000), ('table_1', None), ('users', None), ('table_7', None))
    """
    table, iteration = _TABLE.search(text), _ITERATION.search(text)
    rest = _ITERATION.sub("", text).strip("_-. ") or text
    return table_name(table[1] if table else rest), int(iteration[1]) if iteration else None


def _files(source: Path) -> list[Path]:
    with file_errors(source, "read"):
        if source.is_dir():
            found = [path for path in source.iterdir() if path.suffix.lower() in SUFFIXES]
            if not found:
                raise SpecError(f"'{source}' holds no dumps: expected files that end in {', '.join(SUFFIXES)}")
            return sorted(found, key=_as_people_count)
    if not source.exists():
        raise FileError(f"Could not read '{source}': no such file")
    if source.suffix.lower() not in SUFFIXES:
        raise SpecError(f"'{source}': expected a folder, or a file that ends in {', '.join(SUFFIXES)}")
    return [source]


def _as_people_count(path: Path) -> list[tuple[int, int, str]]:
    pieces = re.findall(r"\d+|\D+", path.name)
    return [(0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in pieces]


def _read(path: Path, width: int) -> Iterator[Dump]:
    suffix = path.suffix.lower()
    with file_errors(path, "read"):
        arrays = npz.read(path) if suffix == ".npz" else {path.stem: _SINGLE[suffix](path)}
    if not arrays:
        raise SpecError(f"'{path}' holds no arrays")
    _, of_file = parsed_name(path.stem)
    for name, x in arrays.items():
        table, iteration = parsed_name(name)
        label = f"'{path}'" if suffix != ".npz" else f"'{name}' of '{path}'"
        yield Dump(table, of_file if iteration is None else iteration, _rows(label, x, width))


def _raw(path: Path) -> Tensor:
    """Floats in the order of bytes that files of this kind have everywhere."""
    if path.stat().st_size % 4:
        raise SpecError(f"'{path}' has {path.stat().st_size} bytes: expected float32, so a multiple of 4")
    return torch.from_numpy(np.fromfile(path, "<f4").astype("f4", copy=False))


_SINGLE = {".npy": npy.read, ".bin": _raw}


def _rows(label: str, x: Tensor, width: int) -> Tensor:
    """`[rows, width]`; what has one dimension is cut into rows."""
    if x.dtype != torch.float32 or x.dim() not in (1, 2):
        raise SpecError(f"{label} is {TensorSpec.of(x)}: expected float32 of [rows, width], or of one dimension")
    if x.dim() == 1:
        if x.numel() % width:
            raise SpecError(
                f"{label} has {x.numel()} values, which is no multiple of the width {width}: expected whole rows. "
                "Give the length of a row with --width"
            )
        x = x.view(-1, width)
    if x.numel() == 0:
        raise SpecError(f"{label} is {TensorSpec.of(x)}: expected at least one row")
    return x.contiguous()
