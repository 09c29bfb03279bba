"""Messages between this process and the child that peers run in: a header in JSON, and buffers behind it.

4 bytes: length of the header | header, with the buffers' sizes | buffers
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

Read = Callable[[int], bytes]
"""Gives exactly so many bytes; raises EOFError where there are fewer."""


def message(header: dict[str, Any], buffers: Sequence[Any] = ()) -> list[Any]:
    """What to write, piece by piece."""
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    text = json.dumps(header | {"sizes": [view.nbytes for view in views]}).encode()
    return [len(text).to_bytes(4, "little"), text, *views]


def receive(read: Read) -> tuple[dict[str, Any], list[bytes]]:
    header = json.loads(read(int.from_bytes(read(4), "little")))
    return header, [read(size) for size in header["sizes"]]
