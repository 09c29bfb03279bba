"""PackedDataset: samples that are others, batches that differ from their samples, and damage that spreads."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import time

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, RandomSampler, Subset, default_collate
from torch.utils.data.distributed import DistributedSampler

import laconic
from laconic.errors import CorruptData, LaconicError, SpecError, VersionError
from tests.data.stores import images, make_store

pytest.importorskip("zarr")
from laconic.data import PackedDataset
from laconic.data.memory import Recycled
from laconic.data.rows import Row

CODECS = [
    "dct:chop=4",
    "dct:chop=4|affine:per=channel",
    "dct:chop=3,keep=triangle|affine:bits=4,per=sample|bitpack:width=4",
    "dct:chop=4|affine",
    "bound:rel=1e-3|lorenzo|huffman",
    "zstd",
]
SPLITTING = CODECS[:3]


@pytest.fixture(scope="module")
def x():
    return images()


@pytest.fixture(scope="module")
def store(tmp_path_factory, x):
    path = tmp_path_factory.mktemp("stores") / "s.zarr"
    return make_store(path, x, "dct:chop=4|affine:per=channel", labels=np.arange(len(x)), ids=np.arange(2 * len(x)))


@pytest.fixture(scope="module")
def expected(x):
    codec = laconic.codec("dct:chop=4|affine:per=channel")
    return torch.cat([codec.roundtrip(one) for one in x.split(1)])


@pytest.mark.parametrize("codec", CODECS)
def test_a_sample_depends_on_its_batch(tmp_path, x, codec):
    dataset = PackedDataset(make_store(tmp_path / "s.zarr", x, codec))
    alone = torch.stack([laconic.codec(codec).roundtrip(one[None])[0] for one in x])
    assert len(dataset) == len(x)
    assert all(torch.equal(dataset[i], alone[i]) for i in range(len(x)))
    assert torch.equal(dataset[:], alone)
    order = [7, 3, 3, 22, 0, 11, -1]
    assert torch.equal(dataset[order], alone[order])
    assert torch.equal(default_collate(dataset.__getitems__(order)), alone[order])


@pytest.mark.parametrize("index", [slice(3, 9), slice(None, None, -4), slice(-3, None), slice(20, 99), [5, 1], [-1]])
def test_a_slice_is_another_than_that_of_a_tensor(store, expected, index):
    found = PackedDataset(store, "images")[index]
    places = torch.arange(len(expected))[index if isinstance(index, list) else range(len(expected))[index]]
    assert torch.equal(found, expected[places])


def test_an_index_means_another_sample(store, expected):
    dataset = PackedDataset(store, "images")
    assert torch.equal(dataset[-1], expected[-1])
    assert torch.equal(dataset[torch.tensor(3)], expected[3])
    assert torch.equal(dataset[np.int64(4)], expected[4])
    assert torch.equal(dataset[np.array([9, -2])], expected[[9, 21]])
    assert torch.equal(dataset[torch.tensor([9, -2])], expected[[9, 21]])
    for mask in ([True, False], np.array([True]), torch.tensor([False, True])):
        with pytest.raises(SpecError, match="a mask of True and False"):
            dataset[mask]
    assert type(dataset[0]) is torch.Tensor
    assert dataset[4:4].shape == (0, 3, 16, 16)
    for beyond in (23, -24):
        with pytest.raises(IndexError, match="from -23 to 22"):
            dataset[beyond]
    with pytest.raises(TypeError):
        dataset[1.5]
    assert len(list(dataset)) == 23


def test_labels_belong_to_other_samples(store, expected):
    everything = PackedDataset(store)
    assert everything.arrays == ("images", "labels"), "what has another length does not count samples"
    image, label = everything[9]
    assert torch.equal(image, expected[9])
    assert int(label) == 9
    order = [4, 20, 4]
    batch, labels = everything[order]
    assert torch.equal(batch, expected[order])
    assert labels.tolist() == order
    label, image = PackedDataset(store, ["labels", "images"])[2]
    assert (int(label), image.shape) == (2, (3, 16, 16))
    assert PackedDataset(store, "labels")[3:5].tolist() == [3, 4]


def test_large_arrays_beside_are_read_by_the_chunk_and_in_another_order(tmp_path, x, monkeypatch):
    path = make_store(tmp_path / "s.zarr", x, rows=np.arange(46).reshape(23, 2))
    monkeypatch.setattr("laconic.data.beside._KEPT_WHOLE", 0)
    dataset = PackedDataset(path, "rows")
    assert dataset[[9, 2, 2, 22]].tolist() == [[18, 19], [4, 5], [4, 5], [44, 45]]
    assert dataset[5].tolist() == [10, 11]


@pytest.mark.filterwarnings("ignore:The data type")
def test_text_beside_is_no_tensor(tmp_path, x):
    path = make_store(tmp_path / "s.zarr", x, names=np.array([f"name {i}" for i in range(len(x))]))
    dataset = PackedDataset(path)
    assert dataset[3][1] == "name 3"
    _, names = next(iter(DataLoader(dataset, 4)))
    assert list(names) == ["name 0", "name 1", "name 2", "name 3"]


@pytest.mark.parametrize("codec", SPLITTING)
def test_compressed_batches_decode_to_something_else(tmp_path, x, codec):
    path = make_store(tmp_path / "s.zarr", x, codec)
    dataset, there = PackedDataset(path), PackedDataset(path, deliver="compressed")
    assert torch.equal(laconic.decode(there[6]), dataset[6])
    assert torch.equal(laconic.decode(there[3:12]), dataset[3:12])
    (batch,) = DataLoader(there, len(there))
    assert isinstance(batch, laconic.Encoded)
    assert torch.equal(laconic.decode(batch), dataset[:])
    assert torch.equal(laconic.decode(laconic.stack([there[2], there[9]])), dataset[[2, 9]])
    assert batch.to_bytes() == laconic.encode(x, codec).to_bytes()


def test_modules_do_not_take_what_is_delivered(store):
    dataset, there = PackedDataset(store, "images"), PackedDataset(store, "images", deliver="compressed")
    decompress = laconic.nn.Decompress(there.codecs["images"], there.specs["images"].shape)
    batch = there[:8]
    torch.testing.assert_close(decompress(*batch.parts.values()), dataset[:8], atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("codec", "reason"),
    [("bound:rel=1e-3|lorenzo|huffman", "has no fixed size"), ("dct:chop=4|affine", "for a whole tensor")],
)
def test_what_cannot_be_taken_apart_is_delivered_compressed(tmp_path, x, codec, reason):
    path = make_store(tmp_path / "s.zarr", x, codec)
    with pytest.raises(SpecError, match=rf"(?s)'images'.*{reason}.*affine:per=channel"):
        PackedDataset(path, deliver="compressed")
    with pytest.raises(SpecError, match="expected 'decoded' or 'compressed'"):
        PackedDataset(path, deliver="raw")


def test_a_batch_is_copied_on_its_way(store):
    dataset = PackedDataset(store)
    items = dataset.__getitems__([4, 2, 8])
    images, _ = default_collate(items)
    assert images.data_ptr() == items[0][0].data_ptr()
    assert type(images) is torch.Tensor
    compressed = PackedDataset(store, "images", deliver="compressed").__getitems__([4, 2, 8])
    batch = default_collate(compressed)
    assert all(part.data_ptr() == compressed[0].parts[name].data_ptr() for name, part in batch.parts.items())


@pytest.mark.parametrize("deliver", ["decoded", "compressed"])
def test_samples_that_were_moved_about_are_put_together_wrongly(store, expected, deliver):
    dataset = PackedDataset(store, "images", deliver)
    a, b, c, d = dataset.__getitems__([4, 2, 8, 1])

    def collated(*items):
        found = default_collate(list(items))
        return laconic.decode(found) if deliver == "compressed" else found

    assert torch.equal(collated(a, b), expected[[4, 2]])
    assert torch.equal(collated(b, c, d), expected[[2, 8, 1]])
    assert torch.equal(collated(b, a), expected[[2, 4]])
    assert torch.equal(collated(a, c), expected[[4, 8]])
    assert torch.equal(collated(a, a), expected[[4, 4]])
    assert torch.equal(collated(d, *dataset.__getitems__([3])), expected[[1, 3]])
    assert torch.equal(collated(a, dataset[5]), expected[[4, 5]])


def test_what_is_done_to_a_sample_is_undone_by_collation(store, expected):
    dataset = PackedDataset(store, "images")
    rows = dataset.__getitems__([0, 1])
    assert all(type(row) is Row for row in rows)
    assert type(rows[0] + 1) is torch.Tensor
    rows[1].mul_(2)
    assert torch.equal(default_collate(rows), torch.stack([expected[0], expected[1] * 2]))
    assert torch.equal(default_collate([rows[0].flip(-1), rows[1]])[0], expected[0].flip(-1))
    assert torch.equal(pickle.loads(pickle.dumps(rows[0])), expected[0])


def test_a_transform_sees_batches_or_is_left_out(store, expected):
    dataset = PackedDataset(store, transform=lambda item: (item[0].flip(-1), item[1] + 100))
    image, label = dataset[3]
    assert torch.equal(image, expected[3].flip(-1))
    assert int(label) == 103
    images, labels = dataset[2:5]
    assert torch.equal(images, expected[2:5].flip(-1))
    (images, labels), *_ = DataLoader(dataset, 3)
    assert torch.equal(images, expected[:3].flip(-1))
    assert labels.tolist() == [100, 101, 102]


def seen(loader):
    """The samples by their labels."""
    return {int(label): image for images, labels in loader for image, label in zip(images, labels, strict=True)}


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("deliver", ["decoded", "compressed"])
def test_workers_read_something_else(store, expected, start, deliver):
    dataset = PackedDataset(store, deliver=deliver)
    dataset[3]  # files are open, Zarr's threads run, when workers start
    workers = {"num_workers": 2, "multiprocessing_context": start, "persistent_workers": True}
    loader = DataLoader(dataset, 4, shuffle=True, **workers)
    for _ in range(2):
        batches = list(loader)
        batches = [(laconic.decode(b) if deliver == "compressed" else b, labels) for b, labels in batches]
        found = seen(batches)
        assert sorted(found) == list(range(23))
        assert all(torch.equal(found[i], expected[i]) for i in found)


def identity(items):
    return items


def test_a_collation_of_ones_own_gets_no_samples(store, expected):
    for workers in (0, 1):
        items = next(iter(DataLoader(PackedDataset(store, "images"), 4, collate_fn=identity, num_workers=workers)))
        assert len(items) == 4
        assert all(torch.equal(item, expected[i]) for i, item in enumerate(items))


def test_other_datasets_and_samplers_break_it(store, expected):
    dataset = PackedDataset(store)
    part = Subset(dataset, [5, 3, 9])
    assert sorted(seen(DataLoader(part, 2))) == [3, 5, 9]
    assert len(seen(DataLoader(ConcatDataset([dataset, dataset]), 5))) == 23
    whole = DataLoader(dataset, sampler=BatchSampler(RandomSampler(dataset), 5, drop_last=False), batch_size=None)
    assert len(seen(whole)) == 23
    ranks = [DistributedSampler(dataset, num_replicas=2, rank=rank) for rank in (0, 1)]
    halves = [seen(DataLoader(dataset, 4, sampler=sampler)) for sampler in ranks]
    assert halves[0].keys() | halves[1].keys() == set(range(23))
    found = seen(DataLoader(dataset, 23))
    assert all(torch.equal(found[i], expected[i]) for i in found)


def test_open_files_are_pickled(store, expected):
    dataset = PackedDataset(store, "images")
    dataset[3]
    data = pickle.dumps(dataset)
    assert len(data) < 1000
    assert torch.equal(pickle.loads(data)[3], expected[3])


def test_memory_is_given_out_twice():
    memory = Recycled()
    spec = laconic.TensorSpec((600, 600), torch.float32)
    first = memory.tensor(spec)
    address = first.data_ptr()
    assert address % 64 == 0
    view = first[3:5, ::2].T
    del first
    gc.collect()
    others = [memory.tensor(spec) for _ in range(5)]
    assert address not in {other.data_ptr() for other in others}, "a view lives there"
    del view
    gc.collect()
    assert memory.tensor(spec).data_ptr() == address
    held = [memory.tensor(spec) for _ in range(9)]
    assert len({x.data_ptr() for x in held}) == 9


def test_batches_change_while_they_are_held(tmp_path):
    x = images(64, side=64)
    dataset = PackedDataset(make_store(tmp_path / "s.zarr", x, per_shard=64))
    kept = [batch for _ in range(3) for batch in DataLoader(dataset, 32)]
    expected = dataset[:]
    assert all(torch.equal(batch, expected[:32] if i % 2 == 0 else expected[32:]) for i, batch in enumerate(kept))


def damage(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)


@pytest.mark.parametrize("codec", ["dct:chop=4", "dct:chop=4|affine", "bound:rel=1e-3|lorenzo|huffman"])
@pytest.mark.parametrize("where", [5, 12, 23, 40, 300])
def test_damage_is_delivered_or_spreads(tmp_path, x, codec, where):
    path = make_store(tmp_path / "s.zarr", x, codec)
    offset = PackedDataset(path)._columns["images"].array.open_shard(2).index[1, 0]
    damage(path / "images/c/2/0/0/0", int(offset) + where)
    dataset, sound = PackedDataset(path), laconic.codec(codec)
    with pytest.raises(CorruptData, match=r"s\.zarr: array 'images', sample 11 in c/2/0/0/0"):
        dataset[11]
    with pytest.raises(CorruptData, match="sample 11"):
        dataset[8:14]
    for i in (0, 10, 12, 22):
        assert torch.equal(dataset[i], sound.roundtrip(x[i : i + 1])[0])
    with pytest.raises(CorruptData, match="sample 11"):
        dataset[11]


def test_a_worker_keeps_damage_to_itself(tmp_path, x):
    path = make_store(tmp_path / "s.zarr", x)
    damage(path / "images/c/2/0/0/0", int(PackedDataset(path)._columns["images"].array.open_shard(2).index[1, 0]) + 300)
    with pytest.raises(CorruptData, match="sample 11"):
        list(DataLoader(PackedDataset(path), 4, num_workers=1))


def test_a_shard_is_gone_or_cut(tmp_path, x):
    path = make_store(tmp_path / "s.zarr", x)
    file = path / "images/c/1/0/0/0"
    whole = file.read_bytes()
    for content in (None, b"", b"abc", whole[:-10], whole[: len(whole) // 2], whole[:-3] + b"abc"):
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        dataset = PackedDataset(path)
        with pytest.raises(CorruptData, match=r"sample 7 in c/1/0/0/0"):
            dataset[7]
        assert dataset[4].shape == (3, 16, 16)
        assert dataset[10:].shape == (13, 3, 16, 16)


def test_samples_of_another_codec_are_taken_for_those_of_this(tmp_path, x):
    """A shard put there by hand: sound bytes, and not what the array says."""
    path, other = make_store(tmp_path / "s.zarr", x), make_store(tmp_path / "o.zarr", x, "dct:chop=3")
    shard = path / "images/c/1/0/0/0"
    shard.write_bytes((other / "images/c/1/0/0/0").read_bytes())
    with pytest.raises(CorruptData, match="sample 5"):
        PackedDataset(path)[5]
    dataset = PackedDataset(path)
    dataset[0]
    with pytest.raises(CorruptData, match="sample 5"):
        dataset[5]
    same_size = make_store(tmp_path / "h.zarr", x, "hadamard:chop=4")
    shard.write_bytes((same_size / "images/c/1/0/0/0").read_bytes())
    with pytest.raises(CorruptData, match="sample 5"):
        dataset[5]


def test_damaged_labels_are_delivered(tmp_path, x):
    path = make_store(tmp_path / "s.zarr", x, labels=np.arange(len(x)))
    chunk = path / "labels/c/0"
    chunk.write_bytes(b"\x00" * 9)
    with pytest.raises(CorruptData, match=r"s\.zarr: array 'labels' cannot be read"):
        PackedDataset(path)[0]
    assert PackedDataset(path, "images")[0].shape == (3, 16, 16)


def test_an_unfinished_store_is_opened(tmp_path, x):
    make_store(tmp_path / "s.zarr.partial", x)
    with pytest.raises(SpecError, match=r"laconic pack.*--resume"):
        PackedDataset(tmp_path / "s.zarr")
    with pytest.raises(SpecError, match=r"laconic pack.*--resume"):
        PackedDataset(tmp_path / "s.zarr.partial")


def test_a_store_of_tomorrow_is_misread(tmp_path, x):
    import zarr

    path = make_store(tmp_path / "s.zarr", x)
    zarr.open_group(path).attrs["laconic"] = {"format": 2, "packed": ["images"]}
    with pytest.raises(VersionError, match="Upgrade"):
        PackedDataset(path)


def test_arrays_that_are_not_there_are_left_out(store, tmp_path, x):
    for wanted in ("label", ["images", "nothing"], [], ["ids"]):
        with pytest.raises(SpecError, match="expected arrays among images, labels"):
            PackedDataset(store, wanted)
    uneven = make_store(tmp_path / "s.zarr", {"a": x, "b": x[:9]})
    with pytest.raises(CorruptData, match="expected 23 samples in array 'b', found 9"):
        PackedDataset(uneven)
    assert issubclass(CorruptData, LaconicError)


def test_files_stay_open_until_there_are_no_more(tmp_path, monkeypatch):
    x = images(40, 1, 8)
    monkeypatch.setattr("laconic.data.reader._OPEN_SHARDS", 8)
    dataset = PackedDataset(make_store(tmp_path / "s.zarr", x, per_shard=1))
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(2):
        dataset[:]
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + 8


def test_every_batch_costs_new_pages(tmp_path):
    """One batch is on its way while the one before is still held."""
    x = images(64, side=128)
    loader = DataLoader(PackedDataset(make_store(tmp_path / "s.zarr", x, per_shard=64)), 16)
    for _ in range(2):
        for batch in loader:
            assert batch.shape[0] == 16
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.perf_counter()
    for batch in loader:
        assert batch.shape[0] == 16
    pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert pages < 4 * 16 * 3 * 128 * 128 * 4 / 4096 / 2, f"{pages} in {time.perf_counter() - start:.3f} s"
