"""What an encoders study is asked to do."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from laconic import registry
from laconic.bench.encoders.data import Dump, Load
from laconic.bench.encoders.study import Refusal
from laconic.bench.encoders.trials import chain_of
from laconic.bench.measure import Effort
from laconic.errors import MissingExtra, SpecError
from laconic.schedule import EbSchedule, TableBounds

ENCODERS = (
    "raw",
    "bitpack",
    "huffman",
    "rans",
    "zstd:level=1",
    "zstd:level=3",
    "lz4",
    "vlz",
    "vlz:window=32,block=2048",
    "rows|bitpack",
    "rows|huffman",
    "rows|huffman (rows known)",
    "rows|rans",
    "rows|zstd:level=1",
    "auto",
)
"""What stands behind the quantiser when nobody asks for more; what this laconic has not is left out."""

Kind = Literal["abs", "rel", "rms"]
KINDS = ("abs", "rel", "rms")
WIDTHS = ("auto", "8", "16", "32")


@dataclass(frozen=True)
class Plan:
    """`sources` are the names as typed; `classes` that of the class file. `stage` is for dumps whose name tells no
    iteration. `quick` takes fewer rounds: to see that all is well, not to be quoted."""

    dumps: tuple[Dump, ...]
    sources: tuple[str, ...]
    bounds: TableBounds
    kind: Kind = "rel"
    classes: str | None = None
    stage: int | None = None
    rows: tuple[int, ...] = (2048, 64)
    pads: tuple[int, ...] = (1,)
    links: tuple[float, ...] = (4, 12.5)
    codes: str = "auto"
    encoders: tuple[str, ...] = ()
    threads: int = 1
    quick: bool = False

    def __post_init__(self) -> None:
        """Refuses what cannot be measured now, not after minutes of measuring."""
        if self.stage is not None and self.bounds.schedule is None:
            object.__setattr__(self, "bounds", replace(self.bounds, schedule=EbSchedule("step")))
        if self.stage is not None:
            self._schedule.at_stage(self.stage)
        if self.codes not in WIDTHS:
            raise SpecError(f"--codes {self.codes}: expected {', '.join(WIDTHS)}")
        for option, values in (("rows", self.rows), ("pad", self.pads), ("link", self.links)):
            if not values or not all(0 < value < math.inf for value in values):
                raise SpecError(f"--{option}: expected numbers above 0, got {', '.join(map(str, values))}")
        for encoder in self.encoders:
            chain_of(encoder, "bound:rel=0.1")

    @property
    def _schedule(self) -> EbSchedule:
        return self.bounds.schedule or EbSchedule("constant", factor=1)

    @property
    def effort(self) -> Effort:
        return Effort(seconds=0.05, rounds=3) if self.quick else Effort(seconds=1.5, rounds=11)

    def effort_for(self, load: Load) -> Effort:
        """Fewer rounds for what is padded, of which each takes long, and none is quoted."""
        return self.effort if load.pad == 1 else replace(self.effort, rounds=min(self.effort.rounds, 5))

    def bound(self, dump: Dump) -> float:
        """Of its table, at the iteration in its name, else at the stage that was asked for, else after the decay."""
        iteration = dump.iteration
        if iteration is None:
            iteration = self._schedule.until if self.stage is None else self._schedule.at_stage(self.stage)
        return self.bounds.bound(dump.table, iteration)

    def loads(self) -> Iterator[Load]:
        """Every dump cut in every way. Only slices of the most rows are padded: others would show nothing new."""
        for rows in self.rows:
            for pad in self.pads if rows == max(self.rows) else self.pads[:1]:
                for dump in self.dumps:
                    yield self._load(dump, rows, pad)

    def _load(self, dump: Dump, rows: int, pad: int) -> Load:
        bound = self.bound(dump)
        width = "" if self.codes == "auto" else f",width={self.codes}"
        quantiser = f"bound:{self.kind}={bound!r}{width}"
        return Load(dump, self.bounds.class_of(dump.table), quantiser, bound, self.kind, rows, pad)

    @property
    def command(self) -> str:
        options = [f"--bound {self.kind}={self.bounds.base:g}"]
        options += [f"--classes {shlex.quote(Path(self.classes).name)}"] if self.classes else []
        options += [] if self.stage is None else [f"--stage {self.stage}"]
        lists = {"rows": self.rows, "pad": self.pads, "link": self.links}
        options += [f"--{name} {','.join(f'{value:g}' for value in values)}" for name, values in lists.items()]
        options += [f"--codes {self.codes}"] * (self.codes != "auto")
        options += [f"--encoders {shlex.quote(encoder)}" for encoder in self.encoders]
        options += [f"--threads {self.threads}", *["--quick"] * self.quick]
        sources = [shlex.quote(Path(source).name) for source in self.sources]  # no paths of this machine
        return " ".join(["laconic bench encoders", *sources, *options])

    def able(self) -> tuple[list[str], list[Refusal]]:
        """The encoders that run here, and those that need a library which is not installed."""
        found: list[str] = []
        refused: list[Refusal] = []
        for encoder in dict.fromkeys((*ENCODERS, *self.encoders)):
            if not all(re.split("[: ]", stage)[0] in registry.names() for stage in encoder.split("|")):
                continue
            try:
                chain_of(encoder, "bound:abs=0.1").encode(torch.arange(8.0).reshape(4, 2))
                found.append(encoder)
            except MissingExtra as error:
                refused.append(Refusal("", encoder, str(error)))
        return found, refused


def parse_bound(text: str) -> tuple[Kind, float]:
    """
    >>> parse_bound("rel=0.03")
    ('rel', 0.03)
    """
    kind, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if kind not in KINDS or not 0 < number < math.inf:
        raise SpecError(f"--bound {text}: expected abs=, rel= or rms= and a number above 0, such as rel=0.03")
    return kind, number  # type: ignore[return-value]  # it is one of KINDS
