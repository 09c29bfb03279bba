"""A torch Dataset by its import path: `my_package.data:train`, an instance or what makes one without arguments.

An item is one tensor (called `data`), a tuple (`data`, `target`, `target_2` ..) or a dict, by its keys. Tensors,
arrays, Pillow images and numbers will do. Packing expects the same item whenever it asks for one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from laconic.data.sources import ArrayInfo, Block, Source
from laconic.errors import DataError, SpecError


class DatasetSource(Source):
    """Items one by one, as `dataset[i]` gives them; imported anew in every process."""

    def __init__(self, text: str) -> None:
        self._open = _load(text)
        try:
            count = len(self._open)
        except TypeError as error:
            raise SpecError(
                f"'{text}' has no length: expected a map-style torch Dataset, not an iterable one"
            ) from error
        if count == 0:
            raise SpecError(f"'{text}' has no items")
        first = _named(text, 0, self._open[0])
        super().__init__(text, {name: ArrayInfo((count, *item.shape), item.dtype) for name, item in first.items()})

    def read(self, start: int, stop: int, names: Sequence[str]) -> Block:
        if "_open" not in self.__dict__:
            self._open = _load(str(self.path))
        items = [self._item(i) for i in range(start, stop)]
        return {name: np.stack([item[name] for item in items]) for name in names}

    def _item(self, i: int) -> dict[str, NDArray[Any]]:
        item = _named(str(self.path), i, self._open[i])
        for name, info in self.arrays.items():
            found = item.get(name)
            if found is None or (found.shape, found.dtype) != (info.sample, info.dtype):
                came = "nothing" if found is None else f"{found.dtype}{list(found.shape)}"
                raise DataError(
                    f"'{self.path}': item {i} has {came} for '{name}'; item 0 has {info.dtype}{list(info.sample)}. "
                    "Expected items of one shape: crop or resize them in the Dataset"
                )
        return item

    def _files(self) -> list[int]:
        return []


def _load(text: str) -> Any:
    module, _, attribute = text.partition(":")
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")  # as for `python -m`: what lies beside the user is what they mean
    try:
        found = import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise SpecError(f"'{text}': expected 'module:dataset', and could not import it: {error}") from error
    dataset: Any = found
    return dataset() if callable(dataset) and not hasattr(type(dataset), "__getitem__") else dataset


def _named(text: str, i: int, item: Any) -> dict[str, NDArray[Any]]:
    if isinstance(item, Mapping):
        named = {str(name): value for name, value in item.items()}
    elif isinstance(item, tuple | list):
        named = {("data", "target")[place] if place < 2 else f"target_{place}": v for place, v in enumerate(item)}
    else:
        named = {"data": item}
    return {name: _array(text, i, name, value) for name, value in named.items()}


def _array(text: str, i: int, name: str, value: Any) -> NDArray[Any]:
    try:
        array = np.asarray(value.detach().cpu()) if isinstance(value, Tensor) else np.asarray(value)
    except (TypeError, ValueError) as error:
        raise SpecError(f"'{text}': item {i} has '{name}' of {type(value).__name__}: {error}") from error
    if array.dtype.hasobject:
        raise SpecError(f"'{text}': item {i} has '{name}' of {type(value).__name__}: expected a tensor or numbers")
    if hasattr(value, "getbands"):  # a Pillow image
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    return array
