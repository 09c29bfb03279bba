"""A packer to be killed: in a module of its own, which a fork server has ready."""

from __future__ import annotations

import laconic.data.sources_numpy
import laconic.ops.block  # noqa: F401
from laconic.data.pack import pack


def packing(source, target):
    pack(source, target, "dct:chop=4", shard="2", workers=1, resume=True)
