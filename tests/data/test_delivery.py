"""Delivery: what arrives is another batch, in another order, or too early to be read."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch.utils.data import DataLoader

import laconic
from laconic.errors import CorruptData, SpecError
from tests.data.stores import images, make_store

pytest.importorskip("zarr")
from laconic.data import DeviceLoader, PackedDataset, to_device

CODEC = "dct:chop=4|affine:per=channel"
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]
on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


class Pair(NamedTuple):
    image: object
    label: object


@pytest.fixture(scope="module")
def x():
    return images()


@pytest.fixture(scope="module")
def expected(x):
    return laconic.codec(CODEC).encode(x)


@pytest.fixture(scope="module")
def store(tmp_path_factory, x):
    return make_store(tmp_path_factory.mktemp("stores") / "s.zarr", x, CODEC, labels=torch.arange(len(x)))


@pytest.mark.parametrize("device", DEVICES)
def test_a_structure_arrives_as_another(device, expected):
    label, whole = torch.arange(23), laconic.decode(expected)
    batch = {"pair": Pair(expected, label), "list": [expected[2:5], {"name": ["a", "b"]}, None, 3], "plain": whole}
    found = to_device(batch, device)
    assert isinstance(found["pair"], Pair)
    assert found["list"][1:] == [{"name": ["a", "b"]}, None, 3]
    tensors = [found["pair"].image, found["pair"].label, found["list"][0], found["plain"]]
    assert all(tensor.device.type == device for tensor in tensors)
    for tensor, right in zip(tensors, [whole, label, whole[2:5], whole], strict=True):
        torch.testing.assert_close(tensor.cpu(), right, atol=1e-5, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("deliver", ["decoded", "compressed"])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_arrive_in_another_order_or_not_at_all(store, expected, device, deliver, workers):
    dataset = PackedDataset(store, deliver=deliver)
    loader = DeviceLoader(DataLoader(dataset, 4, num_workers=workers, pin_memory=device == "cuda"), device)
    whole = laconic.decode(expected)
    assert len(loader) == 6
    for _ in range(2):
        batches = list(loader)
        assert torch.cat([labels.cpu() for _, labels in batches]).tolist() == list(range(23))
        torch.testing.assert_close(torch.cat([x.cpu() for x, _ in batches]), whole, atol=1e-5, rtol=0)
        assert all(x.device.type == labels.device.type == device for x, labels in batches)


@pytest.mark.parametrize("device", DEVICES)
def test_an_error_takes_batches_with_it_or_is_lost(tmp_path, x, device):
    path = make_store(tmp_path / "s.zarr", x, CODEC)
    file = path / "images/c/2/0/0/0"
    data = bytearray(file.read_bytes())
    data[300] ^= 1
    file.write_bytes(data)
    batches = iter(DeviceLoader(DataLoader(PackedDataset(path, deliver="compressed"), 4), device, ahead=4))
    assert [next(batches).shape[0] for _ in range(2)] == [4, 4]
    with pytest.raises(CorruptData, match=r"sample 1[01]"):
        next(batches)


def test_a_device_loader_is_asked_for_what_it_cannot():
    with pytest.raises(SpecError, match="at least 1"):
        DeviceLoader([], "cpu", ahead=0)
    with pytest.raises(TypeError, match="how many batches"):
        len(DeviceLoader(iter([]), "cpu"))
    assert next(iter(DeviceLoader([torch.ones(2)], "cpu"))).tolist() == [1, 1]


@on_cuda
def test_a_batch_is_read_before_it_arrived_or_after_its_memory_was_given_away(tmp_path):
    """The stream that trains is busy, so that nothing is ready by chance."""
    x = images(256, side=128)
    dataset = PackedDataset(make_store(tmp_path / "s.zarr", x, CODEC, per_shard=64), deliver="compressed")
    whole = laconic.decode(dataset[:])
    product = torch.rand(4096, 4096, device="cuda")
    sums = []
    for batch in DeviceLoader(DataLoader(dataset, 16), "cuda", ahead=3):
        for _ in range(20):
            product = (product @ product).clamp(0, 1)
        sums.append(batch.double().sum((1, 2, 3)) + 0 * product[0, 0])
        del batch
    torch.testing.assert_close(torch.cat(sums).cpu(), whole.double().sum((1, 2, 3)), rtol=1e-6, atol=1e-2)


@on_cuda
def test_a_transfer_waits_for_the_stream_that_trains(store):
    from laconic.data.delivery import _pinned

    batch = PackedDataset(store, "images", deliver="compressed")[:]
    pinned = _pinned(batch)
    assert all(part.is_pinned() for part in pinned.parts.values())
    assert _pinned(pinned) is pinned
