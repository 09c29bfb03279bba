"""Whatever training data are kept in: the same samples, in the same order, or an error that says why not."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from laconic.data.pack_plan import plan
from laconic.data.sources import open_source
from laconic.errors import CorruptData, DataError, FileError, SpecError
from tests.data.conftest import smooth

LABELS = np.arange(23)


def write_npz(path, images):
    np.savez(path.with_suffix(".npz"), images=images, labels=LABELS)
    return path.with_suffix(".npz")


def write_compressed(path, images):
    np.savez_compressed(path.with_suffix(".npz"), images=images, labels=LABELS)
    return path.with_suffix(".npz")


def write_hdf5(path, images):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path.with_suffix(".h5"), "w") as file:
        file.create_dataset("images", data=images, chunks=(4, *images.shape[1:]))
        file["labels"] = LABELS
    return path.with_suffix(".h5")


def write_netcdf(path, images):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    dims = ("time", "channel", "y", "x")
    xarray.Dataset({"images": (dims, images), "labels": ("time", LABELS)}).to_netcdf(path.with_suffix(".nc"))
    return path.with_suffix(".nc")


def write_zarr(path, images):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(path.with_suffix(".zarr"), mode="w")
    group.create_array("images", shape=images.shape, dtype="f4", chunks=(5, 3, 16, 16))[:] = images
    group.create_array("labels", shape=LABELS.shape, dtype="i8")[:] = LABELS
    return path.with_suffix(".zarr")


WRITERS = [write_npz, write_compressed, write_hdf5, write_netcdf, write_zarr]


@pytest.mark.parametrize("write", WRITERS)
def test_a_source_gives_other_samples_than_it_has(write, images, tmp_path):
    source = open_source(str(write(tmp_path / "set", images)))
    todo = plan(source, "dct:chop=4")
    assert (todo.packed, todo.beside, todo.samples) == (("images",), ("labels",), 23)
    for travelled in (source, pickle.loads(pickle.dumps(source))):
        for start, stop in [(0, 5), (5, 23), (3, 4)]:
            found = travelled.read(start, stop, ["images", "labels"])
            assert np.array_equal(found["images"], images[start:stop])
            assert np.array_equal(found["labels"], LABELS[start:stop])


@pytest.mark.parametrize("write", [write_hdf5, write_zarr, write_npz])
def test_one_array_brings_others(write, images, tmp_path):
    source = open_source(f"{write(tmp_path / 'set', images)}::images")
    assert list(source.arrays) == ["images"]
    with pytest.raises(SpecError, match=r"has no array 'no'\. It has: images"):
        open_source(f"{write(tmp_path / 'other', images)}::no")


def test_fortran_order_or_another_byte_order_is_lost(images, tmp_path):
    for name, array in {"f": np.asfortranarray(images), "b": images.astype(">f4")}.items():
        np.save(tmp_path / f"{name}.npy", array)
        assert np.array_equal(open_source(str(tmp_path / f"{name}.npy")).read(3, 9, ["data"])["data"], images[3:9])


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".h5", ".nc"])
def test_a_file_that_is_none_is_taken(suffix, tmp_path):
    pytest.importorskip("netCDF4")
    (tmp_path / f"bad{suffix}").write_bytes(b"this is no such file" * 20)
    with pytest.raises(CorruptData, match="is not a sound"):
        open_source(str(tmp_path / f"bad{suffix}"))


def test_a_source_that_is_not_there_or_unknown_or_truncated(npy, tmp_path):
    with pytest.raises(FileError, match="there is no such file"):
        open_source(str(tmp_path / "none.npy"))
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(SpecError, match=r"expected a name that ends in \.npy"):
        open_source(str(tmp_path / "a.txt"))
    npy.write_bytes(npy.read_bytes()[:-100])
    with pytest.raises(CorruptData, match="truncated"):
        open_source(str(npy))


# Folders of images.


def picture(path, size=(16, 12), mode="RGB", value=3):
    path.parent.mkdir(exist_ok=True, parents=True)
    bands = len(Image.new(mode, (1, 1)).getbands())
    pixels = (np.arange(size[0] * size[1] * bands) * value % 251).astype("u2" if mode == "I;16" else "u1")
    pixels = pixels.reshape(size[1], size[0], bands) if bands > 1 else pixels.reshape(size[1], size[0])
    Image.fromarray(pixels).save(path)
    return pixels


def test_classes_are_not_those_of_the_folders(tmp_path):
    expected = {name: picture(tmp_path / name, value=i + 1) for i, name in enumerate(["a/2.png", "b/0.png", "a/1.png"])}
    source = open_source(str(tmp_path))
    found = source.read(0, 3, ["images", "labels"])
    assert source.about == {"classes": ["a", "b"]}
    assert found["labels"].tolist() == [0, 0, 1]
    assert np.array_equal(found["images"], [expected[name].transpose(2, 0, 1) for name in sorted(expected)])


@pytest.mark.parametrize(("mode", "dtype", "channels"), [("L", "u1", 1), ("RGB", "u1", 3), ("I;16", "f4", 1)])
def test_grey_or_deep_images_change(mode, dtype, channels, tmp_path):
    pixels = picture(tmp_path / "a.png", mode=mode, value=7)
    found = open_source(str(tmp_path)).read(0, 1, ["images"])["images"]
    assert (found.dtype, found.shape) == (np.dtype(dtype), (1, channels, 12, 16))
    assert np.array_equal(found[0].squeeze(), pixels.transpose(2, 0, 1).squeeze() if channels == 3 else pixels)


def test_grey_among_colours_is_refused(tmp_path):
    picture(tmp_path / "a.png")
    picture(tmp_path / "b.png", mode="L")
    assert open_source(str(tmp_path)).arrays["images"].shape == (2, 3, 12, 16)


def test_images_that_do_not_go_together_are_met_late(tmp_path):
    picture(tmp_path / "a.png")
    picture(tmp_path / "b.png", size=(17, 12))
    with pytest.raises(SpecError, match=r"'a\.png' is 16x12, and 'b\.png' is 17x12"):
        open_source(str(tmp_path))
    picture(tmp_path / "b.png", mode="I;16")
    with pytest.raises(SpecError, match=r"'a\.png' and 'b\.png' differ"):
        open_source(str(tmp_path))
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(CorruptData, match=r"b\.png"):
        open_source(str(tmp_path))
    (tmp_path / "b.png").unlink()
    picture(tmp_path / "c" / "d.png")
    with pytest.raises(SpecError, match="in no class"):
        open_source(str(tmp_path))


def test_an_empty_folder_is_a_source(tmp_path):
    with pytest.raises(SpecError, match="a folder of images"):
        open_source(str(tmp_path))


# Datasets of torch.


class Pairs(torch.utils.data.Dataset):
    def __init__(self, count=23, size=16, odd=-1):
        self.images, self.odd = smooth(count, size), odd

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i])
        return (image[:, :8] if i == self.odd else image), i


PAIRS, ODD = Pairs(), Pairs(odd=4)


def made():
    return PAIRS


@pytest.mark.parametrize("name", ["PAIRS", "made", "Pairs"])
def test_a_dataset_gives_other_items(name, images):
    source = open_source(f"{__name__}:{name}")
    todo = plan(source, "dct:chop=4")
    assert (todo.packed, todo.beside) == (("data",), ("target",))
    found = pickle.loads(pickle.dumps(source)).read(2, 7, ["data", "target"])
    assert np.array_equal(found["data"], images[2:7])
    assert found["target"].tolist() == [2, 3, 4, 5, 6]


def test_items_of_two_shapes_are_not_named():
    with pytest.raises(DataError, match="item 4 has"):
        open_source(f"{__name__}:ODD").read(0, 8, ["data"])


def test_what_cannot_be_imported_is_not_explained():
    with pytest.raises(SpecError, match="could not import it"):
        open_source("no_such_module:dataset")
    with pytest.raises(SpecError, match="could not import it"):
        open_source(f"{__name__}:no_such_name")
    assert "no_such_module" not in sys.modules
