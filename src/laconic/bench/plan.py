"""What a measurement is asked to do, and the tensors it does it with."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from laconic.bench.measure import Effort
from laconic.nn import Compress

SEED = 0
SERIAL_IMAGE = (3, 512, 512)


@dataclass(frozen=True)
class Plan:
    """`quick` takes smaller batches and fewer rounds: to see that all is well, not to be quoted."""

    device: torch.device
    threads: int
    chops: tuple[int, ...]
    serial: tuple[int, ...]
    quick: bool

    def __post_init__(self) -> None:
        """Refuses what cannot be measured now, not after minutes of measuring."""
        for chop in self.chops:
            for serial in self.serial:
                Compress(f"dct:chop={chop}", SERIAL_IMAGE, serial)

    def effort(self, section: str) -> Effort:
        """More for the floors: somebody is held to them."""
        if self.quick:
            return Effort(seconds=0.05, rounds=3)
        return Effort(seconds=10, rounds=30) if section == "floors" else Effort(seconds=1.5, rounds=9)

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    def images(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Noise, the same for every machine: no speed here depends on the values."""
        generator = torch.Generator().manual_seed(SEED)
        if dtype == torch.uint8:
            return torch.randint(0, 256, shape, dtype=dtype, generator=generator).to(self.device)
        return torch.rand(shape, dtype=dtype, generator=generator).to(self.device)

    @property
    def command(self) -> str:
        chops, serial = (",".join(map(str, values)) for values in (self.chops, self.serial))
        options = f"--device {self.device} --threads {self.threads} --chops {chops} --serial {serial}"
        return f"laconic bench blocks {options}{' --quick' * self.quick}"
