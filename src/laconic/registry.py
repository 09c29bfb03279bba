"""The stages there are: ours, imported when first named, and those of the entry-point group `laconic.stages`."""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from laconic.errors import SpecError
from laconic.stage import Stage

BUILT_IN = {
    "affine": "laconic.quantisers.affine:Affine",
    "auto": "laconic.encoders.auto:Auto",
    "bitpack": "laconic.encoders.bitpack:Bitpack",
    "bound": "laconic.quantisers.bound:Bound",
    "cast": "laconic.transforms.cast:Cast",
    "constant": "laconic.encoders.plain:Constant",
    "dct": "laconic.transforms.bases:Dct",
    "hadamard": "laconic.transforms.bases:Hadamard",
    "huffman": "laconic.encoders.huffman:Huffman",
    "lorenzo": "laconic.predictors.lorenzo:Lorenzo",
    "lz4": "laconic.encoders.library:Lz4",
    "peer": "laconic.encoders.peer:Peer",
    "rans": "laconic.encoders.rans:Rans",
    "raw": "laconic.encoders.plain:Raw",
    "rows": "laconic.predictors.rows:Rows",
    "vlz": "laconic.encoders.vlz:Vlz",
    "zfp": "laconic.transforms.bases:Zfp",
    "zstd": "laconic.encoders.library:Zstd",
}

FUSIONS = {
    ("affine", "bitpack"): "laconic.quantisers.packed_affine:AffineBitpack",
    ("bound", "lorenzo"): "laconic.quantisers.packed:BoundLorenzo",
    ("bound", "bitpack"): "laconic.quantisers.packed:BoundBitpack",
    ("bound", "lorenzo", "bitpack"): "laconic.quantisers.packed:BoundBitpack",
}


@cache
def find_fusion(stages: tuple[str, ...]) -> Any:
    """What runs stages of these names at once; None where nothing does."""
    if stages not in FUSIONS:
        return None
    return _attribute(FUSIONS[stages])()


@cache
def find(name: str) -> type[Stage]:
    """The class of the stage called `name`."""
    if name in BUILT_IN:
        cls = _attribute(BUILT_IN[name])
    elif name in _plug_ins():
        cls = _load_plug_in(name)
    else:
        close = difflib.get_close_matches(name, names(), n=1)
        meant = f" Did you mean '{close[0]}'?" if close else ""
        raise SpecError(f"There is no stage '{name}'.{meant} There are: {', '.join(names())}")
    return cls  # type: ignore[no-any-return]


def names() -> list[str]:
    """Every stage that `find` knows, in alphabetical order."""
    return sorted({*BUILT_IN, *_plug_ins()})


def _attribute(row: str) -> Any:
    module, _, name = row.partition(":")
    return getattr(import_module(module), name)


def _plug_ins() -> set[str]:
    return {point.name for point in entry_points(group="laconic.stages")}


def _load_plug_in(name: str) -> type[Stage]:
    (point, *_) = entry_points(group="laconic.stages", name=name)
    try:
        cls = point.load()
    except Exception as error:  # whatever a stranger's module raises, the user needs its name
        raise SpecError(f"The stage '{name}' ({point.value}) could not be loaded: {error}") from error
    if not (isinstance(cls, type) and issubclass(cls, Stage)):
        raise SpecError(f"The stage '{name}' ({point.value}) is not a subclass of laconic.stage.Stage")
    return cls
