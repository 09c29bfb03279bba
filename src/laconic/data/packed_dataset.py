"""Samples of a packed store for `torch.utils.data.DataLoader`, decoded, or compressed for the device to decode."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from laconic.chain import Codec
from laconic.data.beside import BesideArray
from laconic.data.reader import SampleReader
from laconic.data.rows import rows
from laconic.data.store import PackedArray, packed_arrays
from laconic.encoded import Encoded
from laconic.errors import CorruptData, SpecError
from laconic.stage import TensorSpec

Column = Tensor | Encoded | list[Any]


class PackedDataset(Dataset[Any]):
    """A map-style dataset over what `laconic pack` wrote.

        dataset = PackedDataset("images.zarr", ["images", "labels"])
        for images, labels in DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2): ..

    `arrays` names what a sample consists of, in this order: all of the store if not given, packed arrays first. Of
    several arrays a sample is a tuple, of one it is a tensor. `transform` is called with each sample.

    `deliver="compressed"` gives `Encoded` in place of tensors and decodes nothing: `laconic.data.to_device`,
    `laconic.data.DeviceLoader`, `laconic.decode` or `laconic.nn.Decompress` do, where the batch is used. It needs a
    codec of fixed size that keeps apart what belongs to each sample.

    `dataset[i]` is a sample, `dataset[a:b]` and `dataset[[i, j]]` are batches. DataLoader fetches whole batches at
    once, and its default collation takes them as they are. Works in its workers, forked or spawned: each opens files of
    its own, and checks the checksum of a sample when it first reads it.
    """

    def __init__(
        self,
        path: str | Path,
        arrays: str | Sequence[str] | None = None,
        deliver: Literal["decoded", "compressed"] = "decoded",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.path, self.deliver, self.transform = Path(path).resolve(), deliver, transform
        if deliver not in ("decoded", "compressed"):
            raise SpecError(f"deliver={deliver!r}: expected 'decoded' or 'compressed'")
        packed = packed_arrays(self.path)
        beside = {name: BesideArray(self.path / name) for name in _others(self.path, packed)}
        self._length = len(next(iter(packed.values())))
        self.arrays = _chosen(arrays, packed, beside, self._length)
        self.alone = len(self.arrays) == 1
        self._columns = {
            name: SampleReader(name, packed[name]) if name in packed else beside[name] for name in self.arrays
        }
        for name, reader in self._readers().items():
            _check(self.path, name, reader.array, self._length, deliver)

    @property
    def codecs(self) -> dict[str, Codec]:
        """What the packed ones among the arrays were packed with."""
        return {name: reader.array.codec for name, reader in self._readers().items()}

    @property
    def specs(self) -> dict[str, TensorSpec]:
        """Of one sample of each of them, decoded."""
        samples = {name: reader.array.sample for name, reader in self._readers().items()}
        return {name: TensorSpec(spec.shape[1:], spec.dtype) for name, spec in samples.items()}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int | slice | Sequence[int] | Tensor | np.ndarray[Any, Any]) -> Any:
        if isinstance(index, slice):
            return self._batch(range(*index.indices(self._length)))
        if np.ndim(index):
            return self._batch(self._inside(index))
        columns = [column[0] for column in self._read(self._inside([index]))]
        return self._transformed(columns[0] if self.alone else tuple(columns))

    def __getitems__(self, indices: Iterable[int]) -> list[Any]:
        """The samples that DataLoader wants for a batch, which were read all at once."""
        columns = [rows(column) for column in self._read(self._inside(indices))]
        return [self._transformed(item) for item in (columns[0] if self.alone else zip(*columns, strict=True))]

    def _batch(self, indices: Sequence[int]) -> Any:
        if self.transform is not None:
            return default_collate(self.__getitems__(indices))
        columns = self._read(indices)
        return columns[0] if self.alone else tuple(columns)

    def _read(self, indices: Sequence[int]) -> list[Column]:
        return [self._column(name, indices) for name in self.arrays]

    def _column(self, name: str, indices: Sequence[int]) -> Column:
        column = self._columns[name]
        if isinstance(column, BesideArray):
            return column.read(indices)
        return column.gather(indices) if self.deliver == "compressed" else column.decoded(indices)

    def _transformed(self, item: Any) -> Any:
        return item if self.transform is None else self.transform(item)

    def _inside(self, indices: Any) -> list[int]:
        """Counted from the first sample."""
        listed = indices.tolist() if hasattr(indices, "tolist") else list(indices)
        if any(isinstance(index, bool) for index in listed):
            raise SpecError("expected whole numbers, got a mask of True and False. Try mask.nonzero()")
        found = [operator.index(index) for index in listed]
        for index in found:
            if not -self._length <= index < self._length:
                raise IndexError(f"expected indices from {-self._length} to {self._length - 1}, got {index}")
        return [index % self._length for index in found]

    def _readers(self) -> dict[str, SampleReader]:
        return {name: column for name, column in self._columns.items() if isinstance(column, SampleReader)}

    def __reduce__(self) -> Any:
        """No open file is pickled: whoever receives this opens the store."""
        return type(self), (self.path, self.arrays, self.deliver, self.transform)

    def __repr__(self) -> str:
        return f"PackedDataset({str(self.path)!r}, {list(self.arrays)}, {self.deliver!r}): {self._length:,} samples"


def _others(path: Path, packed: dict[str, PackedArray]) -> list[str]:
    import zarr

    return sorted(name for name, array in zarr.open_group(path, mode="r").arrays() if name not in packed and array.ndim)


def _chosen(
    wanted: str | Sequence[str] | None, packed: dict[str, PackedArray], beside: dict[str, BesideArray], length: int
) -> tuple[str, ...]:
    counted = [*packed, *(name for name, array in beside.items() if len(array) == length)]
    if wanted is None:
        return tuple(counted)
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    unknown = [name for name in names if name not in counted]
    if unknown or not names:
        raise SpecError(f"expected arrays among {', '.join(counted)}, got {', '.join(unknown) or 'none'}")
    return names


def _check(path: Path, name: str, array: PackedArray, length: int, deliver: str) -> None:
    if len(array) != length:
        raise CorruptData(f"{path}: expected {length} samples in array '{name}', found {len(array)}")
    if deliver == "compressed" and not array.splits:
        how = "keeps some of what it needs for a whole tensor" if array.fixed else "has no fixed size"
        raise SpecError(
            f"{path}: array '{name}' cannot be delivered compressed: its codec '{array.codec}' {how}. Leave "
            "deliver='decoded', or pack with a codec such as 'dct:chop=4' or 'dct:chop=4|affine:per=channel'"
        )
