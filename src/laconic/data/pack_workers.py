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

from laconic.data.pack_shard import Job
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
    waiting, running = deque(shards), set[Future[int]]()
    with _one_thread(), _helpers(job, workers - 1) as pool:
        while waiting or running:
            while pool is not None and waiting and len(running) < _AHEAD * (workers - 1):
                running.add(pool.submit(_write, waiting.popleft()))
            if waiting:
                done(job.write(waiting.popleft()))
            if running:
                finished, running = wait(running, 0 if waiting else None, FIRST_COMPLETED)
                for future in finished:
                    done(future.result())


@contextmanager
def _helpers(job: Job, count: int) -> Iterator[ProcessPoolExecutor | None]:
    """Processes that are gone when the block is, however it ends."""
    if count < 1:
        yield None
        return
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin, (job,))
    try:
        yield pool
        pool.shutdown()
    except BrokenProcessPool as error:
        raise FileError(
            "A worker was killed, perhaps for want of memory: try fewer --workers, or less --memory"
        ) from error
    finally:
        for process in dict(pool._processes or {}).values():
            process.kill()
        pool.shutdown(cancel_futures=True)


_job: Job


def _begin(job: Job) -> None:
    """In a new process: Ctrl-C is for the one that started it, without which it does not stay."""
    global _job
    _job = job
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _write(shard: int) -> int:
    return _job.write(shard)


@contextmanager
def _one_thread() -> Iterator[None]:
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
    return job.write(shard)
