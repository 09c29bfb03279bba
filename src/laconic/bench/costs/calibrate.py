"""Measures what encoders cost here: the model that `auto` predicts with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor

from laconic import chain
from laconic.bench import machine
from laconic.bench.costs import data
from laconic.encoders.auto import sample_of
from laconic.encoders.candidates import installed, main_spec
from laconic.encoders.costs import CostModel, Row
from laconic.files import file_errors, replacing
from laconic.stage import TensorSpec

SIZES = (1 << 12, 1 << 17, 1 << 20, 1 << 22, 1 << 24)
Begin = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """Seconds for one encoder on one tensor, and rounds: at least, and at most."""

    seconds: float
    rounds: tuple[int, int]


FULL, QUICK = Effort(0.02, (3, 20)), Effort(0.002, (1, 3))


class Kind(NamedTuple):
    """Data of one kind, in any number of codes."""

    title: str
    what: str
    itemsize: int
    make: Callable[[int], Tensor]


def kinds() -> Iterator[Kind]:
    for size in data.DTYPES:
        for sigma in data.SIGMAS[size]:
            yield Kind(f"sigma {sigma:g}", "codes", size, partial(data.normal, itemsize=size, sigma=sigma))
        yield Kind("runs", "codes", size, partial(data.runs, itemsize=size))
        yield Kind("rows that repeat", "rows", size, partial(data.rows, itemsize=size))
        yield Kind("rows alike", "copies", size, partial(data.rows, itemsize=size, kinds=1))


def thread_counts(threads: int) -> list[int]:
    return sorted({1, threads})


def steps(threads: int) -> int:
    """How often `begin` will be called."""
    return len(list(kinds())) * len(thread_counts(threads))


def calibrate(threads: int, effort: Effort, begin: Begin) -> CostModel:
    """Times every installed encoder; `begin` is told what starts."""
    usual = torch.get_num_threads()
    rows: list[Row] = []
    try:
        for count in thread_counts(threads):
            torch.set_num_threads(count)
            for kind in kinds():
                begin(f"{kind.title}, {8 * kind.itemsize} bits, {count} thread{'s' * (count > 1)}")
                rows += _rows(kind, count, SIZES, effort)
    finally:
        torch.set_num_threads(usual)
    command = f"laconic bench calibrate --threads {threads}"
    return CostModel(SIZES, tuple(_steadied(rows)), sample_seconds(), machine.describe(), command)


def _steadied(rows: Sequence[Row]) -> Iterator[Row]:
    """No encoder takes longer on several threads than on one: where it seems so, something else had their cores, for
    which threads that wait for each other wait for milliseconds."""
    singles = [row for row in rows if row.threads == 1]  # the rows come in the same order for each number
    for i, row in enumerate(rows):
        single = singles[i % len(singles)]
        encode = tuple(map(min, row.encode, single.encode))
        yield row._replace(encode=encode, decode=tuple(map(min, row.decode, single.decode)))


def sample_seconds() -> float:
    """What a sample costs that decides nothing: among few encoders, which no trial helps."""
    codes, seconds = data.normal(1 << 20, 1, 5.0), []
    for _ in range(50):
        start = perf_counter()
        sample = sample_of([codes], thorough=False)
        for candidate in installed():
            candidate.hope(sample) if candidate.by_trial else candidate.outcome(sample)
        seconds.append(perf_counter() - start)
    return float(f"{min(seconds):.4g}")


def _rows(kind: Kind, threads: int, sizes: Sequence[int], effort: Effort) -> Iterator[Row]:
    tensors = [kind.make(size // kind.itemsize) for size in sizes]
    takers = [taker for taker in installed() if main_spec(taker, TensorSpec.of(tensors[0])) is not None]
    found = [time_each({taker.name: str(taker.stage) for taker in takers}, codes, effort) for codes in tensors]
    for taker in takers:
        mine = [timed[taker.name] for timed in found]
        columns = [tuple(float(f"{getattr(t, name):.4g}") for t in mine) for name in ("ratio", "encode", "decode")]
        yield Row(taker.name, kind.itemsize, threads, kind.what, *columns)


class Timed(NamedTuple):
    ratio: float
    encode: float
    decode: float
    nbytes: int
    """Encoded, with the header."""


def time_each(codecs: Mapping[str, str], x: Tensor, effort: Effort) -> dict[str, Timed]:
    """The least of each codec's times, all in turns; the first run of each is not timed. What else the machine does
    makes runs longer, never shorter."""
    jobs = {name: _Job(text, x) for name, text in codecs.items()}
    most = effort.rounds[1]
    end = perf_counter() + effort.seconds * len(jobs)
    for done in range(most):
        if done >= effort.rounds[0] and perf_counter() > end:
            break
        for job in jobs.values():
            job.run()
    return {name: job.timed() for name, job in jobs.items()}


class _Job:
    """One codec on one tensor: what it gave, and its times so far."""

    def __init__(self, text: str, x: Tensor) -> None:
        self.codec, self.x = chain.codec(text), x
        self.encoded = self.codec.encode(x)
        chain.decode(self.encoded)
        self.seconds: tuple[list[float], list[float]] = [], []

    def run(self) -> None:
        """A codec that takes microseconds runs a few times: the first after others finds nothing in caches."""
        for turn in range(5 if self.x.nbytes <= 1 << 18 else 2):
            start = perf_counter()
            self.codec.encode(self.x)
            middle = perf_counter()
            chain.decode(self.encoded)
            if turn:
                self.seconds[0].append(middle - start)
                self.seconds[1].append(perf_counter() - middle)

    def timed(self) -> Timed:
        encode, decode = map(min, self.seconds)
        nbytes = sum(part.nbytes for part in self.encoded.parts.values())
        return Timed(nbytes / max(self.x.nbytes, 1), encode, decode, self.encoded.nbytes)


def save(model: CostModel, path: Path) -> None:
    """Writes what `laconic.encoders.costs.load` reads, a line for each row."""
    value = model.to_json()
    rows = ",\n  ".join(json.dumps(row) for row in value.pop("rows"))
    head = json.dumps(value, indent=1)[: -len("\n}")]
    with file_errors(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(f'{head},\n "rows": [\n  {rows}\n ]\n}}\n')
