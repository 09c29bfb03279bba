"""The peers of the rate study: which there are, how loosely each may be set, and how it is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from laconic.bench.measure import Contender
from laconic.bench.rate.data import DataSet
from laconic.bench.rate.study import PEER
from laconic.bench.rate.trials import Outcome, Trial, over_bound
from laconic.encoders.peer import Peer, compress, decompress
from laconic.encoders.peers.child import CHILD, PeerError
from laconic.encoders.peers.job import Job
from laconic.encoders.peers.wrapper import Settings, find
from laconic.errors import LaconicError, MissingExtra


class Entry(NamedTuple):
    """A peer in one setting. `looser`: multiples of the bound that it is tried with, since it keeps far below what
    it is told; the loosest that holds is measured. `levels` likewise, from small files to large."""

    label: str
    peer: str
    level: int | None = None
    bounded: bool = True
    looser: tuple[float, ...] = (1.0,)
    levels: tuple[int, ...] = ()


ENTRIES = (
    Entry("SZ3", "sz3"),
    Entry("SZ3, no prediction", "sz3", level=3),
    Entry("zfp", "zfp", looser=(8.0, 4.0, 2.0, 1.0)),
    Entry("SPERR", "sperr"),
    Entry("LERC", "lerc"),
    Entry("LERC + zstd", "lerc", level=3),
    Entry("blosc2, cut", "blosc2"),
    Entry("blosc2", "blosc2", bounded=False),
    Entry("pcodec", "pco", bounded=False),
    Entry("zstd", "zstd", level=1, bounded=False),
    Entry("lz4", "lz4", bounded=False),
    Entry("JPEG", "jpeg", bounded=False, levels=(30, 50, 70, 80, 90, 95, 98, 100)),
)


class Attempt(NamedTuple):
    """A peer with settings for each tensor, and what came of it."""

    codec: str
    settings: list[Settings]
    encoded_bytes: int
    restored: list[Tensor]


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


def suits(entry: Entry, data: DataSet) -> bool:
    """JPEG is for pictures."""
    wrapper, shape = find(entry.peer), tuple(data.tensors[0].shape)
    return wrapper.refusal(shape) is None and (data.pixels or "uint8" not in wrapper.dtypes or len(wrapper.dtypes) > 1)


def trial(entry: Entry, data: DataSet, bound: float, threads: Sequence[int]) -> Trial:
    """PeerError where it cannot do it."""
    taken = [_taken(entry, x) for x in data.tensors]
    best = next(_holding(entry, data, bound, taken), None)
    if best is None:
        raise PeerError("no setting keeps to the bound")
    outcome = Outcome.of(data, bound, best.restored, best.encoded_bytes)
    counts = [count for count in threads if count == 1 or find(entry.peer).threaded]
    contenders = [c for count in counts for c in _timed(entry, data, taken, best, count)]
    return Trial(entry.label, best.codec, PEER, outcome, tuple(contenders))


def _holding(entry: Entry, data: DataSet, bound: float, taken: Sequence[Any]) -> Iterator[Attempt]:
    """Attempts that keep to the bound, the loosest first; a peer's own word for it is measured as it is."""
    for level in entry.levels or (entry.level,):
        for factor in entry.looser:
            found = _attempt(entry, data, bound * factor, level, taken)
            as_told = entry.bounded and factor == 1
            if as_told or over_bound(data, bound, found.restored) <= 1:
                yield found


def _attempt(entry: Entry, data: DataSet, bound: float, level: int | None, taken: Sequence[Any]) -> Attempt:
    spans = data.ranges if entry.bounded else [None] * len(taken)
    settings = [Settings(None if span is None else bound * span, level) for span in spans]
    blobs = [compress(entry.peer, x, one) for x, one in zip(taken, settings, strict=True)]
    trios = zip(blobs, taken, settings, strict=True)
    restored = [decompress(entry.peer, blob, x.shape, str(x.dtype), one) for blob, x, one in trios]
    codec = Peer(entry.peer, rel=bound if entry.bounded else None, level=level)  # type: ignore[arg-type]
    return Attempt(str(codec), settings, sum(map(len, blobs)), [_given_back(y, data) for y in restored])


def _taken(entry: Entry, x: Tensor) -> Any:
    """What the peer reads: the values, or the pixels that they round to."""
    if "float32" in find(entry.peer).dtypes:
        return np.ascontiguousarray(x.numpy())
    return (x * 255).round().clamp(0, 255).to(torch.uint8).numpy()


def _given_back(y: Any, data: DataSet) -> Tensor:
    restored = torch.from_numpy(np.array(y))
    return restored / 255 if restored.dtype == torch.uint8 else restored.to(data.spec.dtype)


def _timed(entry: Entry, data: DataSet, taken: Sequence[Any], best: Attempt, threads: int) -> list[Contender]:
    """Both directions, here or in the child: what the library's calls take, and nothing of what is between."""
    settings = [one._replace(threads=threads) for one in best.settings]
    job = Job(entry.peer, settings, taken)
    included = "the library's calls, one for each tensor"
    included += "" if "float32" in find(entry.peer).dtypes else ", on pixels converted before"
    if not find(entry.peer).fragile:
        job.compress()
        runs: list[Callable[[], object]] = [job.compress, job.decompress]
        clocks: list[Callable[[int], float] | None] = [None, None]
    else:
        key = f"{entry.label}/{threads}"
        hold(key, job)
        clocks = [partial(seconds, key, what) for what in ("compress", "decompress")]
        runs = [partial(seconds, key, what, 1) for what in ("compress", "decompress")]
        included += ", timed in a process of its own"
    encode = Contender(entry.label, "encode", runs[0], data.spec, included, codec=best.codec, threads=threads)
    decode = replace(encode, what="decode", run=runs[1], clock=clocks[1])
    return [replace(encode, clock=clocks[0]), decode]


def hold(key: str, job: Job) -> None:
    header = {"do": "hold", "key": key, "peer": job.peer, "settings": [one._asdict() for one in job.settings]}
    specs = {"dtypes": [str(x.dtype) for x in job.arrays], "shapes": [x.shape for x in job.arrays]}
    CHILD.call(header | specs, job.arrays)


def seconds(key: str, what: str, loops: int) -> float:
    try:
        answer, _ = CHILD.call({"do": "time", "key": key, "what": what, "loops": loops})
    except PeerError as error:
        raise LaconicError(f"The peer '{key}' failed while it was timed: {error}") from error
    return float(answer["seconds"])


def forget() -> None:
    """Gives back the memory of what was timed in the child."""
    if CHILD.running:
        CHILD.call({"do": "forget"})
