"""What can go wrong, in six kinds, one for each cause.

Catch `LaconicError` for all of them. Every message says what was expected, what came, and what to do.
"""


class LaconicError(Exception):
    """The base of every error that laconic raises on purpose."""


class SpecError(LaconicError, ValueError):
    """What was asked for cannot work: a codec's text, or a shape, dtype or device it cannot take."""


class DataError(LaconicError, ValueError):
    """The values do not fit: they overflow the dtype they would be stored in, or are NaN or Inf."""


class CorruptData(LaconicError):  # noqa: N818  # reads as what it is
    """Bytes are not what laconic wrote: truncated, damaged, or never laconic's."""


class VersionError(LaconicError):
    """Sound bytes, written by a newer laconic than this one."""


class FileError(LaconicError, OSError):
    """A file could not be read or written."""


class MissingExtra(LaconicError, ImportError):  # noqa: N818  # likewise
    """An optional library is needed and not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(library, extra, purpose)  # what it is made of, so that it pickles
        self.library, self.extra, self.purpose = library, extra, purpose

    def __str__(self) -> str:
        return (
            f"{self.purpose} needs {self.library}, which is not installed. "
            f"Install it with: pip install 'laconic[{self.extra}]'"
        )
