"""The reference for `native/unique_rows.cpp`: the index of `rows`, in numpy.

parameter, 0 to 31 | for each row that repeats: how many new ones came before it, and which of those seen it is
32                 | a Huffman stream of an int32 for each row: which of the different ones it is
"""

from __future__ import annotations

import numpy as np

from laconic.errors import CorruptData
from laconic.ops import rice
from laconic.ops.huffman_book import Array
from laconic.ops.huffman_stream import MOST_LOG, read_stream
from laconic.ops.huffman_write import write_stream
from laconic.ops.repeats import Repeats, is_worth_it

CODED = 32
LEAST_CODED, LEAST_TIMES = 256, 4
"""So many rows at least, and so many times the different ones, are worth an entropy-coded index."""


def make_index(repeats: Repeats, row_bytes: int) -> Array:
    """Nothing where all rows are better kept."""
    count, kept = len(repeats.ids), repeats.kept
    if kept == count:
        return np.zeros(0, np.uint8)
    often = count >= LEAST_CODED and count >= LEAST_TIMES * kept
    index = _coded(repeats) if often else _packed(repeats)
    return index if is_worth_it(len(index), (count - kept) * row_bytes) else np.zeros(0, np.uint8)


def _coded(repeats: Repeats) -> Array:
    stream = write_stream(repeats.ids.astype(np.int32), None) if repeats.kept > 1 else np.zeros(0, np.uint8)
    return np.concatenate([np.array([CODED], np.uint8), stream])


def _packed(repeats: Repeats) -> Array:
    new = repeats.back == 0
    seen = np.cumsum(new)[~new]
    runs = np.diff(seen, prepend=0)
    parameter = rice.parameter_for(repeats.kept, len(seen))
    widths = np.frexp(seen - 1)[1].astype(np.int64)  # exact: doubles hold these integers
    columns = [rice.fields(runs, parameter), (repeats.ids[~new].astype(np.uint64), widths)]
    return np.concatenate([np.array([parameter], np.uint8), rice.joined(columns)])


def read_index(index: bytes, kept: int, count: int) -> Array | None:
    """For each row which of the kept ones it is; None where these bytes are no index for just so many."""
    if not index:
        return np.arange(count) if kept == count else None
    if kept >= count or index[0] > CODED:
        return None
    if index[0] == CODED:
        return _decode(index, kept, count)
    return _unpack(index, kept, count) if count - kept <= 8 * len(index) else None


def _unpack(index: bytes, kept: int, count: int) -> Array | None:
    source, seen = rice.BitSource(index[1:]), 0
    ids: list[int] = []
    for _ in range(count - kept):
        run = source.get_rice(index[0])
        if run > kept - seen:
            return None
        ids += range(seen, seen + run)
        seen += run
        which = source.get(max(seen - 1, 0).bit_length())
        if which >= seen:
            return None
        ids.append(which)
    ids += range(seen, kept)
    return np.array(ids) if source.sound and source.nbytes == len(index) - 1 else None


def _decode(index: bytes, kept: int, count: int) -> Array | None:
    if len(index) == 1:
        return np.zeros(count, np.int64) if kept == 1 else None
    if count >> MOST_LOG > len(index):  # before memory is asked for
        return None
    try:
        data = read_stream(np.frombuffer(index, np.uint8)[1:], np.zeros(0, np.uint8), count, 4)
    except CorruptData:
        return None
    ids: Array = np.ascontiguousarray(data).view(np.int32)
    highest = np.maximum.accumulate(ids)
    seen = np.concatenate([[0], highest[:-1] + 1])
    return ids if ids.min() >= 0 and (ids <= seen).all() and highest[-1] + 1 == kept else None
