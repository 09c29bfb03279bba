"""One packer for one target: what is being written belongs to whoever holds its lock, for as long as they live."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laconic.errors import FileError
from laconic.files import file_errors


@contextmanager
def claimed(target: Path) -> Iterator[Path]:
    """The folder OUT.partial for OUT; FileError where another packer has it. A dead one's is there for the taking."""
    partial = target.with_name(target.name + ".partial")
    with file_errors(partial, "write"):
        partial.mkdir(exist_ok=True)
        held = os.open(partial, os.O_RDONLY)
    try:
        _lock(held, target)
        if not partial.exists() or os.stat(partial).st_ino != os.fstat(held).st_ino:
            raise FileError(f"'{target}' was being packed by another, who came to the end of it just now")
        yield partial
    finally:
        os.close(held)


def _lock(folder: int, target: Path) -> None:
    """The system's own, which ends with the process. Where a folder cannot have one, nobody is kept out."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise FileError(
            f"'{target}' is being packed by another process. Wait for it, or name another target"
        ) from error
    except OSError:
        return
