"""What a loader study is asked to do."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from laconic import chain
from laconic.errors import SpecError
from laconic.stage import TensorSpec

CODECS = ("dct:chop=4", "dct:chop=2", "dct:chop=4|affine:per=channel", "bound:rel=1e-3|lorenzo|huffman")
SHAPE = (3, 256, 256)
COLD, WARM = "cold", "warm"
CAN_DROP = hasattr(os, "posix_fadvise")
"""Whether this system forgets what it read when asked to."""


class Setting(NamedTuple):
    """What one race is run in."""

    cache: str
    workers: int

    def __str__(self) -> str:
        return f"{self.cache}, {self.workers} workers"


@dataclass(frozen=True)
class Plan:
    """`quick` takes fewer samples and rounds: to see that all is well, not to be quoted."""

    samples: int
    batch: int
    workers: tuple[int, ...]
    threads: int
    codecs: tuple[str, ...]
    """Beside those that are always measured."""
    folder: Path | None
    """Where the files lie while they are read; the system's place for such things when None."""
    quick: bool

    def __post_init__(self) -> None:
        """Refuses what cannot be measured now, not after minutes of measuring."""
        if self.samples < self.batch or self.batch < 1:
            raise SpecError(f"--samples {self.samples} --batch {self.batch}: expected a batch of samples or more")
        if not self.workers or min(self.workers) < 0:
            raise SpecError("--workers: expected whole numbers from 0 on, such as 0,2")
        for codec in self.codecs:
            chain.codec(codec).out_spec(TensorSpec((1, *SHAPE), torch.float32))
        if self.folder is not None and not self.folder.is_dir():
            raise SpecError(f"--folder {self.folder}: expected a folder that exists")

    @property
    def rounds(self) -> int:
        return 3 if self.quick else 5

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Cold first: what a process has mapped cannot be dropped from the cache."""
        caches = (COLD, WARM) if CAN_DROP else (WARM,)
        return tuple(Setting(cache, workers) for cache in caches for workers in self.workers)

    @property
    def all_codecs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*CODECS, *self.codecs]))

    @property
    def command(self) -> str:
        """Without the folder: no paths of this machine."""
        codecs = [f"--codec {shlex.quote(codec)}" for codec in self.codecs]
        workers = ",".join(map(str, self.workers))
        options = [f"--samples {self.samples} --batch {self.batch} --workers {workers} --threads {self.threads}"]
        return " ".join(["laconic bench loader", *options, *codecs, *["--quick"] * self.quick])
