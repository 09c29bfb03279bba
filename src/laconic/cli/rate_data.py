"""What `laconic bench rate` is given, as data sets: files, arrays of a file, and the name `images`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from torch import Tensor

from laconic.bench.rate.data import IMAGES, DataSet, images, measurable
from laconic.cli import formats
from laconic.errors import SpecError


def data_sets(sources: Iterable[str]) -> tuple[DataSet, ...]:
    """Every tensor to measure. Of a file with many, the floats."""
    found = [data for source in sources for data in _read(source)]
    names = [data.name for data in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SpecError(f"There are two data sets called '{twice}'. Rename one, or measure them one after another")
    return tuple(found)


def _read(source: str) -> Iterator[DataSet]:
    if source == IMAGES:
        yield images()
        return
    path, name = _split(source)
    tensors = _tensors(path, name)
    many = name is None and len(tensors) > 1
    for key, x in tensors.items():
        if not many or x.is_floating_point():
            yield measurable(key, x)
    if many and not any(x.is_floating_point() for x in tensors.values()):
        raise SpecError(f"'{path}' holds no floats. Name one of its arrays: '{path}:{next(iter(tensors))}'")


def _split(source: str) -> tuple[Path, str | None]:
    """`fields.npz:vorticity` -> the path, and the name of an array."""
    before, colon, after = source.rpartition(":")
    if colon and Path(before).suffix.lower() in (".npz", ".safetensors"):
        return Path(before), after
    return Path(source), None


def _tensors(path: Path, name: str | None) -> dict[str, Tensor]:
    if path.suffix == "" and not path.exists():
        raise SpecError(f"'{path}': expected '{IMAGES}', or a .npy, .npz, .safetensors or .png file")
    with formats.reading(path) as found:
        tensors = {path.stem: found} if isinstance(found, Tensor) else found
        if name is not None and name not in list(tensors):
            raise SpecError(f"'{path}' has no array '{name}'. It has: {', '.join(tensors)}")
        return dict(tensors) if name is None else {name: tensors[name]}
