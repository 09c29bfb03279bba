"""What comes back from a compressed file is what went in, whatever it was stored as."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.torch
import torch
from numpy.lib import format as npy_format
from PIL import Image

EXACT = "cast:dtype=float32"
"""Takes floats, and gives float32 back bit for bit."""
NEARLY_EXACT = "dct:chop=8"
"""Takes pixels, and gives whole numbers back exactly, once rounded."""


@pytest.fixture
def there_and_back(run, tmp_path):
    """Compresses a file, and decompresses it to the same format."""

    def there_and_back(source, codec):
        packed, target = tmp_path / "packed", tmp_path / f"out{source.suffix}"
        for arguments in (("compress", source, packed, "--codec", codec), ("decompress", packed, target)):
            code, _, err = run(*arguments)
            assert (code, err) == (0, "")
        return target

    return there_and_back


ARRAYS = {
    "fortran_order": lambda x: np.asfortranarray(x),
    "big_endian": lambda x: x.astype(">f4"),
    "fortran_order_big_endian": lambda x: np.asfortranarray(x.astype(">f4")),
    "no_dimensions": lambda x: x[0, 5, 5],
    "one_element": lambda x: x[:1, :1, :1],
    "float16": lambda x: x.astype("f2"),
    "with_nan_and_inf": lambda x: np.where(x > 0.9, np.nan, np.where(x < -0.9, np.inf, x)),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_every_layout_of_npy_keeps_its_values_and_shape(kind, there_and_back, array, tmp_path):
    x = ARRAYS[kind](array)
    np.save(tmp_path / "in.npy", x)
    y = np.load(there_and_back(tmp_path / "in.npy", EXACT))
    assert (y.shape, y.dtype) == (x.shape, x.dtype.newbyteorder("="))
    np.testing.assert_array_equal(y, x)


def test_an_array_without_elements_keeps_its_shape(there_and_back, array, tmp_path):
    np.save(tmp_path / "in.npy", array[:, :0])
    assert np.load(there_and_back(tmp_path / "in.npy", "affine:bits=8")).shape == (3, 0, 48)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_npy_is_read(version, there_and_back, array, tmp_path):
    with (tmp_path / "in.npy").open("wb") as file:
        npy_format.write_array(file, array, version)
    np.testing.assert_array_equal(np.load(there_and_back(tmp_path / "in.npy", EXACT)), array)


def picture(mode):
    """An image of every kind that .png knows, with detail in every channel."""
    ramp = np.arange(24 * 40, dtype="u1").reshape(24, 40)
    colour = Image.fromarray(np.stack([ramp, ramp.T.reshape(24, 40), ramp[::-1]], -1))
    alpha = Image.fromarray(ramp[:, ::-1].copy())
    if mode in ("LA", "RGBA"):
        image = colour.convert(mode)
        image.putalpha(alpha)
        return image
    return colour.convert(mode)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_every_kind_of_png_keeps_its_pixels(mode, there_and_back, tmp_path):
    picture(mode).save(tmp_path / "in.png")
    back = Image.open(there_and_back(tmp_path / "in.png", NEARLY_EXACT))
    expected = {"1": "L", "P": "RGB"}.get(mode, mode)
    assert (back.mode, back.size) == (expected, (40, 24))
    assert back.tobytes() == picture(mode).convert(expected).tobytes()


def test_a_palette_with_a_transparent_colour_keeps_its_alpha(there_and_back, tmp_path):
    picture("P").save(tmp_path / "in.png", transparency=7)
    back = Image.open(there_and_back(tmp_path / "in.png", NEARLY_EXACT))
    assert back.tobytes() == Image.open(tmp_path / "in.png").convert("RGBA").tobytes()


def test_colours_come_first_for_the_codec(run, tmp_path):
    picture("RGB").save(tmp_path / "in.png")
    run("compress", tmp_path / "in.png", tmp_path / "packed", "--codec", "dct:chop=4")
    run("decompress", tmp_path / "packed", tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").shape == (3, 24, 40)


def test_a_suffix_in_capitals_is_a_suffix(there_and_back, npy):
    there_and_back(npy.rename(npy.with_suffix(".NPY")), EXACT)


MODEL = {
    "layer.weight": torch.linspace(-1, 1, 64 * 64).reshape(64, 64),
    "layer.half": torch.linspace(-1, 1, 32 * 32).reshape(32, 32).bfloat16(),
    "layer.bias": torch.arange(64.0),
    "step": torch.tensor(7),
    "[bold]mask": torch.tensor([[True, False]]),
    "empty": torch.empty(0, 8),
}


def test_tensors_that_the_codec_cannot_take_come_back_untouched(there_and_back, tmp_path):
    safetensors.torch.save_file(MODEL, tmp_path / "in.safetensors")
    back = safetensors.torch.load_file(there_and_back(tmp_path / "in.safetensors", "dct:chop=7"))
    assert {name: (x.shape, x.dtype) for name, x in back.items()} == {n: (x.shape, x.dtype) for n, x in MODEL.items()}
    for name in ("layer.bias", "step", "[bold]mask", "empty"):
        assert torch.equal(back[name], MODEL[name])
    assert torch.allclose(back["layer.weight"], MODEL["layer.weight"], atol=0.05)


def test_a_npz_keeps_names_shapes_and_values(there_and_back, array, tmp_path):
    arrays = {"fields/a": array, "big": array.astype(">f4").T, "half": array.astype("f2"), "step": np.array(7)}
    np.savez_compressed(tmp_path / "in.npz", **arrays)
    back = np.load(there_and_back(tmp_path / "in.npz", EXACT))
    assert sorted(back.files) == sorted(arrays)
    for name, x in arrays.items():
        assert back[name].shape == x.shape
        np.testing.assert_array_equal(back[name], x)


def test_values_that_the_codec_cannot_take_are_kept_too(there_and_back, tmp_path):
    x = torch.tensor([[1.0, float("nan")]])
    safetensors.torch.save_file({"nan": x}, tmp_path / "in.safetensors")
    back = safetensors.torch.load_file(there_and_back(tmp_path / "in.safetensors", "affine:bits=8"))
    assert torch.equal(back["nan"].isnan(), x.isnan())


def test_one_tensor_gets_a_name_where_names_are_needed(run, packed, tmp_path):
    run("decompress", packed, tmp_path / "out.safetensors")
    assert list(safetensors.torch.load_file(tmp_path / "out.safetensors")) == ["tensor"]
