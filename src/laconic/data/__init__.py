"""Training data on disk and on its way to the device: packed stores, and what reads them.

Nothing of Zarr is imported before it is used.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DeviceLoader", "PackedDataset", "ZarrCodec", "to_device"]

_HOMES = {
    "DeviceLoader": "delivery",
    "PackedDataset": "packed_dataset",
    "ZarrCodec": "zarr_codec",
    "to_device": "delivery",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
