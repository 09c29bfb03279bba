"""Others open a packed store in a process of their own, where nobody imported laconic by hand."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import zarr

from laconic.data import ZarrCodec
from laconic.data.pack import pack
from laconic.data.store import packed_arrays
from laconic.errors import SpecError, VersionError

READERS = {
    "zarr": "import zarr; x = zarr.open(path, mode='r')['images'][7:12]",
    "xarray": "import xarray; x = xarray.open_zarr(path, consolidated=False).images[7:12].values",
    "dask": "import dask.array; x = dask.array.from_zarr(path, component='images')[7:12].compute()",
}


@pytest.fixture
def store(npz, tmp_path):
    pack(npz, tmp_path / "out.zarr", "dct:chop=4", shard="5", workers=1)
    return tmp_path / "out.zarr"


@pytest.mark.parametrize("reader", READERS)
def test_a_stranger_reads_other_samples(reader, store, tmp_path):
    pytest.importorskip(reader)
    code = f"import sys, numpy; path = {str(store)!r}; {READERS[reader]}; numpy.save({str(tmp_path / 'x.npy')!r}, x)"
    subprocess.run([sys.executable, "-c", code], check=True)
    expected = np.concatenate([packed_arrays(store)["images"].codec.decode(enc).numpy() for enc in samples(store)])
    assert np.array_equal(np.load(tmp_path / "x.npy"), expected[7:12])


def samples(store):
    from laconic.data.reading import encoded_samples

    array = packed_arrays(store)["images"]
    return [enc for shard in range(array.shards) for enc in encoded_samples(array, shard)]


def test_a_store_of_a_newer_format_is_misread(store):
    group = json.loads((store / "zarr.json").read_text())
    group["attributes"]["laconic"]["format"] = 2
    (store / "zarr.json").write_text(json.dumps(group))
    with pytest.raises(VersionError, match="format 2; this laconic reads up to 1"):
        packed_arrays(store)


@pytest.mark.parametrize(
    ("dtype", "chunks", "codec"), [("int32", (1, 8, 8), "dct:chop=4"), ("float32", (4,), "dct:chop=4")]
)
def test_a_codec_that_cannot_take_the_chunks_is_met_when_they_are_written(dtype, chunks, codec, tmp_path):
    with pytest.raises(SpecError):
        zarr.create_array(
            tmp_path / "a.zarr", shape=chunks, dtype=dtype, chunks=chunks, serializer=ZarrCodec(codec), compressors=None
        )
