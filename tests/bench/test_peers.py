from __future__ import annotations

import pytest
import torch

import laconic
from laconic.bench.measure import WrongResult
from laconic.bench.peers import Dense, codec_pair, copying, dct, dense_pair, restored_by_definition, round_trip_check
from laconic.bench.portable import module_pair, reference_pair


@pytest.fixture
def x():
    return torch.rand(5, 3, 32, 64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("chop", range(1, 9))
def test_the_dense_products_give_the_codecs_own_values(x, chop):
    dense, enc = Dense(chop, x), laconic.encode(x, dct(chop))
    dense.encode()
    dense.decode()
    torch.testing.assert_close(dense.coefficients, enc.parts["main"], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(dense.restored, laconic.decode(enc), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("keep", ["square", "triangle"])
def test_the_definition_that_results_are_held_against_is_the_codecs(x, keep):
    expected = laconic.codec(dct(5, keep)).roundtrip(x)
    torch.testing.assert_close(restored_by_definition(x, 5, keep).float(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "pair",
    [
        lambda x: dense_pair(4, x),
        lambda x: codec_pair(4, x),
        lambda x: codec_pair(4, x, keep="triangle"),
        lambda x: codec_pair(4, (x * 255).to(torch.uint8)),
        lambda x: module_pair("serial", 4, x, 2, None),
        lambda x: module_pair("span", 4, x, 1, 16),
        lambda x: reference_pair(4, x),
    ],
    ids=["dense", "square", "triangle", "uint8", "serial", "span", "reference"],
)
def test_every_contender_does_its_job(x, pair):
    contenders = pair(x)
    assert [contender.what for contender in contenders] == ["encode", "decode"]
    for contender in contenders:
        contender.run()
    for contender in contenders:
        contender.check()


def test_a_copy_copies(x):
    assert torch.equal(copying(x).run(), x)


@pytest.mark.parametrize("damage", [0.01, float("nan")])
@pytest.mark.parametrize("image", [0, -1])
def test_one_wrong_pixel_in_a_checked_image_is_found(x, damage, image):
    restored = restored_by_definition(x, 4, "square").float()
    check = round_trip_check("broken", x, lambda: restored, 4)
    check()
    restored[image, image, 3, 3] += damage
    with pytest.raises(WrongResult, match=r"broken at dct:chop=4 of float32\[5,3,32,64\] is off by"):
        check()


def test_a_codec_that_keeps_too_much_is_found(x):
    with pytest.raises(WrongResult):
        round_trip_check("lossless", x, lambda: x, 4)()
    with pytest.raises(WrongResult):
        round_trip_check("square", x, lambda: restored_by_definition(x, 4, "square"), 4, "triangle")()
