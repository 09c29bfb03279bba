"""The library's version. The versions of what it writes are the stages' own, and the container's."""

__version__ = "0.1.0"
