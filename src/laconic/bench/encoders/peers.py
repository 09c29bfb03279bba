"""Peers that take our codes: the quantiser is laconic's, what comes after it is theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch

from laconic import chain
from laconic.bench.encoders.data import Load, quantised
from laconic.bench.encoders.study import PEER
from laconic.bench.encoders.trials import Runner, Trial, contenders, over_bound
from laconic.bench.measure import Contender
from laconic.bench.rate.peers import hold, seconds
from laconic.encoders.peer import compress, decompress
from laconic.encoders.peers.child import PeerError
from laconic.encoders.peers.job import Job
from laconic.encoders.peers.wrapper import Settings, find
from laconic.errors import MissingExtra

INCLUDED = "laconic's quantiser, and the library's calls, one for each slice"


class Entry(NamedTuple):
    label: str
    peer: str
    level: int | None = None


ENTRIES = (
    Entry("pcodec", "pco"),
    Entry("blosc2", "blosc2"),
    Entry("zstd library", "zstd", 1),
    Entry("lz4 library", "lz4"),
)


def installed() -> tuple[list[Entry], dict[str, str]]:
    """The peers that are there, and their versions."""
    found, versions = [], {}
    for entry in ENTRIES:
        wrapper = find(entry.peer)
        try:
            wrapper.load()
        except MissingExtra:
            continue
        found.append(entry)
        versions[wrapper.package] = version(wrapper.package)
    return found, versions


def trial(entry: Entry, load: Load, expected: list[torch.Tensor], threads: int) -> Trial:
    """PeerError where it does not give our codes back."""
    parts = quantised(load.tensors, load.quantiser)
    settings = Settings(None, entry.level, None, threads)
    arrays = [np.ascontiguousarray(one.main.numpy()) for one in parts]
    blobs = [compress(entry.peer, x, settings) for x in arrays]
    for blob, x in zip(blobs, arrays, strict=True):
        if decompress(entry.peer, blob, x.shape, str(x.dtype), settings).tobytes() != x.tobytes():
            raise PeerError(f"{entry.label} gives other codes back")
    nbytes = sum(map(len, blobs)) + sum(part.nbytes for one in parts for part in one.side.values())
    pair = _timed(entry, load, Job(entry.peer, [settings] * len(arrays), arrays), expected, threads)
    codec = f"{load.quantiser}|{entry.label}"
    return Trial(entry.label, codec, codec, PEER, nbytes, over_bound(load, expected), pair)


def _timed(
    entry: Entry, load: Load, job: Job, expected: list[torch.Tensor], threads: int
) -> tuple[Contender, Contender]:
    """The quantiser runs here; the library too, or in the child that holds the codes, which has a clock of its own."""
    own = Runner(chain.codec(load.quantiser), load)
    own.encode()
    if find(entry.peer).fragile:
        key = f"{entry.label}/{load.name}"
        hold(key, job)
        clocks = (partial(_clock, key, "compress", own.encode), partial(_clock, key, "decompress", own.decode))
        included = INCLUDED + ", timed in a process of its own"
        return contenders(entry.label, own, expected, threads, included, clocks=clocks)
    job.compress()

    def encode() -> None:
        own.encode()
        job.compress()

    def decode() -> None:
        job.decompress()
        own.decode()

    return contenders(entry.label, own, expected, threads, INCLUDED, (encode, decode))


def _clock(key: str, what: str, own: Callable[[], object], loops: int) -> float:
    """Seconds for so many runs, of our part and of theirs."""
    start = perf_counter()
    for _ in range(loops):
        own()
    return perf_counter() - start + seconds(key, what, loops)
