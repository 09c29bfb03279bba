"""The reference for `native/vlz.cpp`: streams in numpy.

    0 | a Huffman stream of all codes
    1 | parameters | number of literal rows | matches | a Huffman stream of the literal rows' codes

A match: so many literal rows before it, and so many rows that equal those so far back.
"""

from __future__ import annotations

import numpy as np

from laconic.errors import CorruptData
from laconic.ops import rice
from laconic.ops.huffman_book import Array
from laconic.ops.huffman_stream import read_stream
from laconic.ops.huffman_write import write_stream
from laconic.ops.repeats import find_repeats, is_worth_it

LITERALS, MATCHES = 0, 1
PARAMETER_BITS = 5
HEAD = 3
CODES = {1: np.int8, 2: np.int16, 4: np.int32}


def write(rows: Array, itemsize: int, window: int, block: int) -> Array:
    """Rows of bytes as a stream, at most two bytes more than they have."""
    matches = _find(rows, window, block)
    head = _head(matches, len(rows)) if len(matches) else None
    repeated = int(matches[:, 1].sum()) * rows.shape[1]
    if head is None or not is_worth_it(len(head), repeated):
        return np.concatenate([np.array([LITERALS], np.uint8), _coded(rows, itemsize)])
    return np.concatenate([head, _coded(rows[~_covered(matches, len(rows))], itemsize)])


def _coded(rows: Array, itemsize: int) -> Array:
    return write_stream(np.ascontiguousarray(rows).reshape(-1).view(CODES[itemsize]), None)


def _find(rows: Array, window: int, block: int) -> Array:
    """(literal rows before, rows, how far back) of each match, in order."""
    found = []
    after = 0
    for first in range(0, len(rows), block):
        repeats = find_repeats(rows[first : first + block])
        ids, back = repeats.ids, repeats.back
        row = 0
        starts = np.flatnonzero((back > 0) & (back <= window))
        while (next_start := np.searchsorted(starts, row)) < len(starts):
            row = int(starts[next_start])
            end, far = row + 1, int(back[row])
            while end < len(ids) and ids[end] == ids[end - far]:
                end += 1
            found.append((first + row - after, end - row, far))
            row = end
            after = first + end
    return np.array(found, np.int64).reshape(-1, 3)


def _covered(matches: Array, count: int) -> Array:
    """Whether a row is part of a match."""
    ends = np.cumsum(matches[:, 0] + matches[:, 1])
    edges = np.zeros(count + 1, np.int64)
    np.add.at(edges, ends - matches[:, 1], 1)
    np.add.at(edges, ends, -1)
    inside: Array = np.cumsum(edges)[:count] > 0
    return inside


def _head(matches: Array, count: int) -> Array:
    numbers = matches - np.array([0, 1, 1])
    parameters = [rice.parameter_for(int(column.sum()), len(column)) for column in numbers.T]
    packed = sum(parameter << PARAMETER_BITS * k for k, parameter in enumerate(parameters))
    literals, number = count - int(matches[:, 1].sum()), []
    while literals >= 128:
        number.append(literals & 127 | 128)
        literals >>= 7
    bits = rice.joined([rice.fields(column, k) for column, k in zip(numbers.T, parameters, strict=True)])
    head = np.array([MATCHES, packed & 255, packed >> 8, *number, literals], np.uint8)
    return np.concatenate([head, bits])


def read(stream: bytes, count: int, row_bytes: int, itemsize: int) -> Array:
    """Exactly so many rows, as bytes; CorruptData where that is not what is there."""
    mode = stream[0] if stream else -1
    if mode == LITERALS:
        return _decoded(stream[1:], count, row_bytes, itemsize)
    if mode != MATCHES:
        raise CorruptData("vlz: expected a stream, found other bytes")
    literals, at = _read_number(stream, count)
    source = rice.BitSource(stream[at:])
    places = _read_matches(stream, literals, count, source)
    if not source.sound:
        raise CorruptData("vlz: the matches are cut short, or followed by bits")
    return _decoded(stream[at + source.nbytes :], literals, row_bytes, itemsize)[places]


def _decoded(stream: bytes, rows: int, row_bytes: int, itemsize: int) -> Array:
    none = np.zeros(0, np.uint8)
    codes = read_stream(np.frombuffer(bytearray(stream), np.uint8), none, rows * row_bytes // itemsize, itemsize)
    return np.ascontiguousarray(codes).view(np.uint8).reshape(rows, row_bytes)


def _read_number(stream: bytes, count: int) -> tuple[int, int]:
    """How many rows are literals, and where the matches begin."""
    number = 0
    for k, byte in enumerate(stream[HEAD : HEAD + 5]):
        number |= (byte & 127) << 7 * k
        if byte < 128:
            if not 0 < number < count or stream[2] >= 128:
                break
            return number, HEAD + k + 1
    raise CorruptData(f"vlz: expected some literals of {count} rows, found {number}")


def _read_matches(stream: bytes, literals: int, count: int, source: rice.BitSource) -> Array:
    """For each row which of the literals it is."""
    packed = stream[1] | stream[2] << 8
    parameters = [packed >> PARAMETER_BITS * k & 31 for k in range(3)]
    places: list[int] = []
    seen, rows = 0, count - literals
    while rows > 0:
        run, length, back = (source.get_rice(parameter) for parameter in parameters)
        rows -= length + 1
        if run > literals - seen or rows < 0 or back >= len(places) + run or source.beyond_end:
            raise CorruptData("vlz: a match of rows that are not there")
        places += range(seen, seen + run)
        seen += run
        for _ in range(length + 1):
            places.append(places[-1 - back])
    places += range(seen, literals)
    return np.array(places)
