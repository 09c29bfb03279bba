"""The files that tensors come from and go back to, told apart by their suffix: .npy and .png hold one tensor,
.safetensors and .npz many by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from laconic import Encoded, TensorSpec, decode, tensor_file
from laconic.cli import npy, npz, png
from laconic.errors import CorruptData, FileError, SpecError
from laconic.files import file_errors, replacing
from laconic.tensor_file import Source
from laconic.wire import raw_bytes

SINGLE = "tensor"
"""The name of a tensor from a file that has no names, where one is needed."""

_READERS = {".npy": npy.read, ".png": png.read}
_WRITERS = {".npy": npy.write, ".png": png.write}
_SUFFIXES = (".npy", ".npz", ".safetensors", ".png")


@contextmanager
def reading(path: Path) -> Iterator[Tensor | Mapping[str, Tensor]]:
    """The tensor in a file, or all of them by name, each of which is read when it is asked for."""
    suffix = _suffix(path)
    if path.is_dir():
        raise FileError(f"Could not read '{path}': it is a directory")
    if suffix in _READERS:
        with file_errors(path, "read"):
            found = _READERS[suffix](path)
        yield found
    else:
        yield npz.Npz(path) if suffix == ".npz" else _Safetensors(path)


def write(path: Path, stored: Mapping[str, Encoded | Tensor], begin: Callable[[str], None]) -> None:
    """Writes tensors in the format that the suffix names, decoding each when its turn comes, which `begin` is told.
    The file is replaced whole or not at all."""
    suffix = _suffix(path)

    def decoded(name: str) -> Tensor:
        begin(name)
        item = stored[name]
        return decode(item) if isinstance(item, Encoded) else item

    def source(name: str) -> Source:
        item = stored[name]
        spec = item.spec if isinstance(item, Encoded) else TensorSpec.of(item)
        return Source(spec, lambda: [raw_bytes(decoded(name))])

    with replacing(path) as temporary:
        if suffix in _WRITERS:
            _WRITERS[suffix](temporary, decoded(_only(path, stored)))
        elif suffix == ".npz":
            npz.write(temporary, stored, decoded)
        else:
            tensor_file.write(temporary, {name: source(name) for name in stored}, {"format": "pt"})


def check_output(path: Path, source: Path, *, any_suffix: bool) -> None:
    """Raises now what writing would only meet after all the work was done."""
    if not any_suffix:
        _suffix(path)
    if path.exists() and not path.is_file():
        raise FileError(f"Could not write '{path}': it is there, and not a regular file")
    if not path.parent.is_dir():
        raise FileError(f"Could not write '{path}': there is no directory '{path.parent}'")
    if path.exists() and source.exists() and path.samefile(source):
        raise FileError(f"'{path}' is both input and output. Name another output, so that the original is kept")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"Could not write '{path}': no permission in '{path.parent}'")


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        found = f"'{path.suffix}'" if suffix else "none"
        raise SpecError(f"'{path}': expected a name that ends in {', '.join(_SUFFIXES)}, got {found}")
    return suffix


def _only(path: Path, stored: Mapping[str, object]) -> str:
    if len(stored) == 1:
        return next(iter(stored))
    raise SpecError(
        f"'{path}' would hold one tensor, and there are {len(stored)}. Write them to a .safetensors or .npz file"
    )


class _Safetensors(Mapping[str, Tensor]):
    """The tensors of a file, each read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._errors():
            self._file = _opened(path)
        if "laconic" in (self._file.metadata() or {}):
            raise SpecError(f"'{path}' is compressed by laconic already. Try laconic info, or laconic decompress")
        self._names: list[str] = list(self._file.keys())
        if not self._names:
            raise SpecError(f"'{path}' holds no tensors")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with file_errors(self._path, "read"):
            try:
                yield
            except SafetensorError as error:
                raise CorruptData(f"'{self._path}' is not a sound .safetensors file: {error}") from error

    def __getitem__(self, name: str) -> Tensor:
        with self._errors():
            return self._file.get_tensor(name)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _opened(path: Path) -> Any:
    """Without the types that it has, which are none."""
    return safe_open(path, framework="pt")
