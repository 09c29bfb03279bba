"""The child process that fragile peers run in, from outside. It dies in our place, and the next call starts another."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from threading import Lock
from time import monotonic
from typing import Any

from laconic.encoders.peers import pipes

SECONDS = 120.0
"""How long a peer may take for one request: damaged bytes hang some."""


class PeerError(Exception):
    """What a peer raised, or how it ended."""


class Child:
    """One process, started at the first call; one call at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def call(self, header: dict[str, Any], buffers: Sequence[Any] = ()) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to a request; PeerError where there is none."""
        with self._lock:
            process = self._started()
            try:
                assert process.stdin
                for piece in pipes.message(header, buffers):
                    process.stdin.write(piece)
                process.stdin.flush()
                answer, found = pipes.receive(_Reader(process, monotonic() + SECONDS).read)
            except (OSError, EOFError) as error:
                raise PeerError(self._ended(error)) from error
            except BaseException:
                self.stop()  # half an answer is in the pipe
                raise
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer, found

    @property
    def running(self) -> bool:
        return self._process is not None

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        """After a fork the old one belongs to the parent."""
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self.stop()
            command = [sys.executable, "-m", "laconic.encoders.peers.worker"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
            self._owner = os.getpid()
        return self._process

    def _ended(self, error: Exception) -> str:
        assert self._process
        if isinstance(error, TimeoutError):
            how = f"gave no answer in {SECONDS:g} seconds"
        else:
            code = self._process.wait()
            how = f"died ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"
        self.stop()
        return how


class _Reader:
    """Reads exactly what is asked for, until a moment and no longer."""

    def __init__(self, process: subprocess.Popen[bytes], until: float) -> None:
        assert process.stdout
        self.handle, self.until = process.stdout.fileno(), until

    def read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            left = self.until - monotonic()
            if left <= 0 or not select.select([self.handle], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(self.handle, min(count - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)


CHILD = Child()
atexit.register(CHILD.stop)
