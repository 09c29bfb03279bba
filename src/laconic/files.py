"""Files are replaced whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from laconic.errors import FileError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary path beside `path`, which takes its place when the block ends well."""
    target = Path(path).resolve()  # through links: what they point to is replaced, not they
    with file_errors(path, "write"):
        if target.exists() and not target.is_file():
            raise FileError(f"Could not write '{path}': it exists, and is not a regular file")
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(0o666 & ~_umask())  # mkstemp's own mode is for secrets
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def file_errors(path: str | os.PathLike[str], verb: str) -> Iterator[None]:
    """Turns what the system says of a file into a FileError that names it."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Could not {verb} '{path}': {error.strerror or error}") from error
    except SafetensorError as error:
        raise FileError(f"Could not {verb} '{path}': {error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
