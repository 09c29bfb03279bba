"""The child process that fragile peers run in: `python -m laconic.encoders.peers.worker`. Ends with its input."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO

import numpy as np

from laconic.encoders.peers import pipes
from laconic.encoders.peers.job import Job, compress, decompress
from laconic.encoders.peers.wrapper import Settings, find

SPARE_BYTES = 4 << 30
"""What a peer may allocate beyond a few times what the data need. Damaged bytes ask for more."""

_STATM = Path("/proc/self/statm")
Reply = tuple[dict[str, Any], Sequence[Any]]


class Worker:
    """Does what it is asked, one request at a time. Holds what is to be timed."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}

    def compress(self, header: dict[str, Any], buffers: list[bytes]) -> Reply:
        x = np.frombuffer(buffers[0], header["dtype"]).reshape(header["shape"])
        return {}, [compress(header["peer"], x, Settings(**header["settings"]))]

    def decompress(self, header: dict[str, Any], buffers: list[bytes]) -> Reply:
        settings = Settings(**header["settings"])
        return {}, [decompress(header["peer"], buffers[0], tuple(header["shape"]), header["dtype"], settings)]

    def hold(self, header: dict[str, Any], buffers: list[bytes]) -> Reply:
        specs = zip(buffers, header["dtypes"], header["shapes"], strict=True)
        arrays = [np.frombuffer(data, dtype).reshape(shape) for data, dtype, shape in specs]
        job = Job(header["peer"], [Settings(**one) for one in header["settings"]], arrays)
        job.compress()
        job.decompress()
        self.jobs[header["key"]] = job
        return {}, []

    def forget(self, header: dict[str, Any], buffers: list[bytes]) -> Reply:
        self.jobs.clear()
        return {}, []

    def time(self, header: dict[str, Any], buffers: list[bytes]) -> Reply:
        """Seconds for so many runs, by this process's clock: the pipe between is not measured."""
        run = getattr(self.jobs[header["key"]], header["what"])
        start = perf_counter()
        for _ in range(header["loops"]):
            run()
        return {"seconds": perf_counter() - start}, []


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    worker = Worker()

    def read(count: int) -> bytes:
        data = source.read(count)
        if len(data) < count:
            raise EOFError
        return data

    while True:
        try:
            header, buffers = pipes.receive(read)
        except EOFError:
            return
        for piece in pipes.message(*_answer(worker, header, buffers)):
            sink.write(piece)
        sink.flush()


def _answer(worker: Worker, header: dict[str, Any], buffers: list[bytes]) -> Reply:
    try:
        find(header.get("peer", "zstd")).load()
        _limit_memory(sum(map(len, buffers)) + header.get("room", 0))
        return getattr(worker, header["do"])(header, buffers)  # type: ignore[no-any-return]
    except Exception as error:  # whatever a peer raises is the answer
        return {"error": f"{type(error).__name__}: {error}"}, []


def _limit_memory(nbytes: int) -> None:
    if not _STATM.exists():
        return
    import resource

    used = int(_STATM.read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_BYTES + 16 * nbytes, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Keeps the pipe for itself: some peers print."""
    sink = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    serve(sys.stdin.buffer, sink)


if __name__ == "__main__":
    main()
