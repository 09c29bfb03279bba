"""State dicts in fewer bytes: a codec for each tensor by its name, in one file or in a distributed checkpoint.

    laconic.save("model.laconic.safetensors", compress(model.state_dict(), {"*.weight": "bound:rel=1e-3|huffman"}))
    model.load_state_dict(laconic.load("model.laconic.safetensors", decode=True))

Nothing of torch.distributed is imported before it is used.
"""

from __future__ import annotations

from typing import Any

from laconic.checkpoint.rules import Outcome, Rule, Rules, compress

__all__ = ["DistributedReader", "DistributedWriter", "Outcome", "Rule", "Rules", "compress"]


def __getattr__(name: str) -> Any:
    if name not in ("DistributedReader", "DistributedWriter"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from laconic.checkpoint import distributed

    return getattr(distributed, name)


def __dir__() -> list[str]:
    return __all__
