"""Small packed stores, written as `laconic pack` does."""

from __future__ import annotations

import numpy as np
import torch

import laconic
from laconic import TensorSpec


def images(count=23, channels=3, side=16):
    """Each another, and smooth."""
    i, c, y, x = np.ogrid[:count, :channels, :side, :side]
    return torch.from_numpy((np.sin(x / 5 + c) * np.cos(y / 4 + i) + i).astype("f4"))


def make_store(path, packed, codec="dct:chop=4", per_shard=5, **beside):
    """`packed` and `beside` are arrays by name."""
    zarr = __import__("pytest").importorskip("zarr")
    from laconic.data.store import PackedArray

    packed = packed if isinstance(packed, dict) else {"images": packed}
    group = zarr.create_group(path)
    for name, x in packed.items():
        array = PackedArray.create(path / name, TensorSpec.of(x), laconic.codec(codec), per_shard)
        for shard in range(array.shards):
            samples = array.samples_in(shard)
            array.write(shard, x[samples.start : samples.stop])
    for name, values in beside.items():
        group.create_array(name, data=np.asarray(values))
    group.attrs["laconic"] = {"format": 1, "packed": list(packed)}
    return path
