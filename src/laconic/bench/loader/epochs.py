"""The clock of the loader study: one pass over all samples, shuffled, without the start of workers.

start workers --> all are up --> drop the page cache, if cold --> clock --> every batch --> clock
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

from laconic.bench.loader import files
from laconic.bench.loader.datasets import Entry

_PREFETCH = 2
_START_SECONDS = 60


class Epoch(NamedTuple):
    seconds: float
    disk_bytes: int | None
    """What was read from the disk itself; None where the system does not say."""


class _Gate(Dataset[Any]):
    """An empty batch tells that a worker is up; it touches no file."""

    def __init__(self, dataset: Dataset[Any], up: Any) -> None:
        self.dataset, self.up = dataset, up
        self.items = getattr(dataset, "__getitems__", None) or self._one_by_one

    def _one_by_one(self, indices: list[int]) -> list[Any]:
        return [self.dataset[index] for index in indices]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if not indices:
            self.up.release()
            return []
        return self.items(indices)


class _Batches:
    """Shuffled anew each time, after as many empty ones as workers are sent before anybody waits."""

    def __init__(self, samples: int, batch: int, empty: int, seed: int) -> None:
        self.samples, self.batch, self.empty = samples, batch, empty
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[list[int]]:
        yield from ([] for _ in range(self.empty))
        for indices in torch.randperm(self.samples, generator=self.generator).split(self.batch):
            yield indices.tolist()


class Runner:
    """One entry with so many workers, which stay up between epochs."""

    def __init__(self, entry: Entry, samples: int, batch: int, workers: int) -> None:
        self.entry, self.samples, self.empty = entry, samples, workers * _PREFETCH
        self.up = multiprocessing.Semaphore(0)
        options: dict[str, Any] = {"persistent_workers": True, "prefetch_factor": _PREFETCH} if workers else {}
        self.loader: DataLoader[Any] = DataLoader(
            _Gate(entry.open(), self.up),
            batch_sampler=_Batches(samples, batch, self.empty, seed=0),
            collate_fn=_Collate(entry.collate or default_collate),
            num_workers=workers,
            **options,
        )

    def epoch(self, cold: bool) -> Epoch:
        batches = iter(self.loader)
        for _ in range(self.empty):
            if not self.up.acquire(timeout=_START_SECONDS):
                raise TimeoutError(f"{self.entry.name}: its workers did not start")
        if cold:
            files.drop_from_cache(self.entry.path)
        read, start = _disk_bytes(), perf_counter()
        seen = sum(_count(batch) for batch in batches)
        seconds = perf_counter() - start
        if seen != self.samples:
            raise RuntimeError(f"{self.entry.name}: expected {self.samples} samples, got {seen}")
        now = _disk_bytes()
        return Epoch(seconds, None if now is None or read is None else now - read)

    def stop(self) -> None:
        """Ends the workers, so that nothing is mapped any more."""
        iterator = getattr(self.loader, "_iterator", None)
        if iterator is not None:
            iterator._shutdown_workers()
        del self.loader


class _Collate:
    def __init__(self, collate: Any) -> None:
        self.collate = collate

    def __call__(self, items: list[Any]) -> Any:
        return self.collate(items) if items else None


def _count(batch: Any) -> int:
    return 0 if batch is None else len(batch)


def _disk_bytes() -> int | None:
    """Of this process and its workers."""
    pids = [os.getpid(), *(child.pid for child in multiprocessing.active_children())]
    try:
        return sum(_read_bytes(Path(f"/proc/{pid}/io")) for pid in pids)
    except (OSError, StopIteration):
        return None


def _read_bytes(path: Path) -> int:
    lines = path.read_text().splitlines()
    return int(next(line for line in lines if line.startswith("read_bytes:")).split()[1])
