"""Who writes the shards: this process, more of them beside it, or a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

import torch

from laconic.data.pack_shard import Job, ShardWriter
from laconic.errors import FileError, MissingExtra

Done = Callable[[int], None]
_AHEAD = 2
"""Shards that wait for each process, so that none of them does."""
_CONNECT_SECONDS = 10


def write_shards(job: Job, shards: Sequence[int], workers: int, scheduler: Any, done: Done) -> None:
    """Writes these, in any order; `done` is told of each."""
    if scheduler is not None:
        _on_cluster(job, shards, scheduler, done)
    else:
        _here(job, shards, min(workers, len(shards)), done)


def _here(job: Job, shards: Sequence[int], workers: int, done: Done) -> None:
    """This process is one of the workers: it packs while the others start."""
    with one_thread(), Helpers(job, workers - 1) as helpers:
        write_beside(ShardWriter(job), helpers, shards, done)


def write_beside(writer: ShardWriter, helpers: Helpers, shards: Sequence[int], done: Done) -> None:
    """This process and its helpers, whoever is ready first, until all are written."""
    waiting = deque(shards)
    while waiting or helpers.running:
        helpers.hand_out(waiting)
        if waiting or helpers.take_back(waiting):
            done(writer.write(waiting.popleft()))
        for shard in helpers.finished(wait_for_one=not waiting):
            done(shard)


class Helpers:
    """Processes that are gone when the block is, however it ends. Starting takes a second or more: none is given
    anything before one is there, lest it lie waiting for them."""

    def __init__(self, job: Job, count: int) -> None:
        self._job, self._count = job, count
        self._pool: ProcessPoolExecutor | None = None
        self._ready: Future[None] | None = None
        self.running: dict[Future[int], int] = {}
        """The shard that each is to write."""

    def __enter__(self) -> Helpers:
        if self._count > 0:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._count, context, _begin, (self._job,))
            with _deaf_children():
                self._ready = self._pool.submit(_nothing)
        return self

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if self._pool is not None:
            for process in dict(self._pool._processes or {}).values():
                process.kill()
            self._pool.shutdown(cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            raise FileError(
                "A worker was killed, perhaps for want of memory: try fewer --workers, or less --memory"
            ) from error

    def wait_until_ready(self) -> None:
        if self._ready is not None:
            self._ready.result()

    def hand_out(self, waiting: deque[int]) -> None:
        """So many that none of them has to wait for this process."""
        if self._pool is None or self._ready is None or not self._ready.done():
            return
        self._ready.result()
        while waiting and len(self.running) < _AHEAD * self._count:
            shard = waiting.popleft()
            with _deaf_children():
                self.running[self._pool.submit(_write, shard)] = shard

    def take_back(self, waiting: deque[int]) -> bool:
        """One that nobody began, if there is any: at the end all are to be busy."""
        for future, shard in self.running.items():
            if future.cancel():
                del self.running[future]
                waiting.append(shard)
                return True
        return False

    def finished(self, wait_for_one: bool) -> list[int]:
        """The shards they wrote meanwhile."""
        if not self.running:
            return []
        found, _ = wait(self.running, None if wait_for_one else 0, FIRST_COMPLETED)
        for future in found:
            del self.running[future]
        return [future.result() for future in found]


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that start here inherit that Ctrl-C is held back: it is for this one, which hears it right after."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_writer: ShardWriter


def _begin(job: Job) -> None:
    """In a new process: Ctrl-C is for the one that started it, without which it does not stay."""
    global _writer
    _writer = ShardWriter(job)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _nothing() -> None:
    """What a process does first."""


def _write(shard: int) -> int:
    return _writer.write(shard)


@contextmanager
def one_thread() -> Iterator[None]:
    """Blocks are small: threads would wait for each other more than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _on_cluster(job: Job, shards: Sequence[int], scheduler: Any, done: Done) -> None:
    """`scheduler` is an address, or a cluster object. Its workers have to see the files by the same paths."""
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError as error:
        raise MissingExtra("dask.distributed", "dask", "Packing on a cluster") from error
    try:
        client = Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise FileError(f"--scheduler {scheduler}: no Dask scheduler answers there: {error}") from error
    with client:
        shared = client.scatter(job, broadcast=True, hash=False)
        futures = [client.submit(_write_there, shared, shard, pure=False) for shard in shards]
        try:
            for future in as_completed(futures, loop=client.loop):
                done(future.result())
        except KilledWorker as error:
            raise FileError(f"Workers of the cluster were killed: {error}") from error
        finally:
            client.cancel(futures)


def _write_there(job: Job, shard: int) -> int:
    return ShardWriter(job).write(shard)
