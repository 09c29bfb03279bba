"""A folder of images: those of sub-folders have the sub-folder's place in the alphabet for their label.

    photos/cat/1.png, photos/cat/2.png, photos/dog/1.png    images [3, C, H, W], labels [0, 0, 1]

Grey images are [1, H, W], others [3, H, W], or [4, H, W] where all have an alpha channel; uint8, or float32 where the
files have 16 bits, whose numbers it keeps.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laconic.data.sources import ArrayInfo, Block, Source
from laconic.errors import CorruptData, MissingExtra, SpecError

SUFFIXES = frozenset((".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"))
_GREY, _ALPHA = ("1", "L", "LA"), ("LA", "PA", "RGBA")
_COLOUR_16 = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


class _Look(NamedTuple):
    """What a file's header says."""

    size: tuple[int, int]
    deep: bool
    mode: str


class ImageSource(Source):
    """Its files in the order of their names. All are looked at when it is opened, so that none surprises later."""

    def __init__(self, path: Path) -> None:
        self._root = path
        self._files_found = [str(file.relative_to(path)) for file in sorted(path.rglob("*")) if _is_image(file)]
        if not self._files_found:
            raise SpecError(f"'{path}': expected a Zarr store, or a folder of images ({', '.join(sorted(SUFFIXES))})")
        classes = _classes(path, self._files_found)
        self._labels = [classes.index(Path(name).parts[0]) for name in self._files_found] if classes else []
        self._mode, sample = _common(path, self._files_found)
        count = len(self._files_found)
        dtype = np.dtype("f4") if self._mode == "I;16" else np.dtype("u1")
        arrays = {"images": ArrayInfo((count, *sample), dtype, ("sample", "channel", "y", "x"))}
        if classes:
            arrays["labels"] = ArrayInfo((count,), np.dtype("i8"), ("sample",))
        super().__init__(path, arrays, {"classes": classes} if classes else {})

    def read(self, start: int, stop: int, names: Sequence[str]) -> Block:
        found: Block = {}
        if "labels" in names:
            found["labels"] = np.array(self._labels[start:stop], "i8")
        if "images" in names:
            found["images"] = np.stack([self._pixels(name) for name in self._files_found[start:stop]])
        return found

    def _pixels(self, name: str) -> NDArray[Any]:
        info = self.arrays["images"]
        with _opened(self._root / name) as image:
            pixels = np.array(image if self._mode == "I;16" else image.convert(self._mode), info.dtype)
        pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
        if pixels.shape != info.sample:
            raise SpecError(f"'{self._root / name}' is not what it was when packing began: changed meanwhile?")
        return pixels

    def _files(self) -> list[int]:
        states = [(self._root / name).stat() for name in self._files_found]
        return [len(states), sum(state.st_size for state in states), max(state.st_mtime_ns for state in states)]


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()


def _classes(root: Path, names: list[str]) -> list[str]:
    """The sub-folders that have images; none where all images lie in the folder itself."""
    loose = [name for name in names if len(Path(name).parts) == 1]
    if loose and len(loose) < len(names):
        other = next(name for name in names if len(Path(name).parts) > 1)
        raise SpecError(f"'{root}': '{loose[0]}' is in no class, and '{other}' is: expected all or none in sub-folders")
    return [] if loose else sorted({Path(name).parts[0] for name in names})


def _common(root: Path, names: list[str]) -> tuple[str, tuple[int, int, int]]:
    """The mode that holds all images, and the shape of one. Names two that do not go together."""
    looks = [_look(root / name) for name in names]
    for name, look in zip(names, looks, strict=True):
        if look.size != looks[0].size:
            (a, b), (c, d) = looks[0].size, look.size
            raise SpecError(
                f"'{root}': expected images of one size; '{names[0]}' is {a}x{b}, and '{name}' is {c}x{d}. "
                "Resize them, or give a torch Dataset that does, as 'module:dataset'"
            )
        if look.deep != looks[0].deep:
            raise SpecError(f"'{root}': '{names[0]}' and '{name}' differ: one has 8 bits a channel, the other 16")
    width, height = looks[0].size
    modes = {look.mode for look in looks}
    mode = "I;16" if looks[0].deep else _mode(modes)
    return mode, ({"L": 1, "I;16": 1, "RGB": 3, "RGBA": 4}[mode], height, width)


def _mode(modes: set[str]) -> str:
    if modes <= {"1", "L"}:
        return "L"
    return "RGBA" if modes <= set(_ALPHA) else "RGB"


def _look(file: Path) -> _Look:
    with _opened(file) as image:
        deep = image.mode.startswith("I") or image.mode == "F"
        look = _Look(image.size, deep, image.mode)
    with file.open("rb") as opened:
        start = opened.read(26)
    if start.startswith(_COLOUR_16) and start[24] == 16 and start[25] != 0:
        raise SpecError(f"'{file}' has colours of 16 bits, of which Pillow drops half. Save it as .npy of float32")
    return look


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """An image; CorruptData that names the file, where it is none."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra("Pillow", "images", "Reading images") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # large images are our trade
            image = Image.open(file)
        with image:
            yield image
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise CorruptData(f"'{file}' is not a sound image: {error}") from error
