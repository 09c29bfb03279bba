"""Peers keep what they promise or are reported; they die, hang and swell in a process of their own."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import laconic
from laconic.encoders.peer import compress
from laconic.encoders.peers import child
from laconic.encoders.peers.child import CHILD, PeerError
from laconic.encoders.peers.wrapper import WRAPPERS, Settings, find, folded
from laconic.errors import CorruptData, DataError, MissingExtra, SpecError
from laconic.stage import TensorSpec

BOUNDED = ["sz3", "zfp", "sperr", "lerc", "blosc2"]
LOSSLESS = ["zfp", "lerc", "blosc2", "pco", "zstd", "lz4"]
SHAPES = [(3, 40, 50), (30, 20), (17,), (9, 10, 11), (2, 3, 4, 5, 6)]


@pytest.fixture(autouse=True, scope="module")
def installed():
    for name in WRAPPERS:
        pytest.importorskip(find(name).library)
    yield
    CHILD.stop()


def smooth(shape, dtype=torch.float32):
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float64) * 0.037).sin().mul(3).to(dtype).reshape(shape)


def decoded(codec, x):
    return laconic.decode(laconic.Encoded.from_bytes(laconic.codec(codec).encode(x).to_bytes()))


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_peer_breaks_its_bound_or_its_shape(name, shape):
    for dtype in (torch.float32, torch.float64):
        x = smooth(shape, dtype)
        restored = decoded(f"peer:name={name},rel=1e-2", x)
        assert TensorSpec.of(restored) == TensorSpec.of(x)
        assert (restored - x).abs().max() <= 1e-2 * (x.max() - x.min())


@pytest.mark.parametrize("name", LOSSLESS)
def test_a_lossless_peer_loses_a_bit(name):
    x = smooth((8, 32, 32))
    assert torch.equal(decoded(f"peer:name={name}", x), x)


@pytest.mark.parametrize("name", ["pco", "zstd", "lz4"])
def test_codes_are_changed_by_an_encoder_of_others(name):
    codes = (smooth((64, 64)) * 3).round().to(torch.int8)
    assert torch.equal(decoded(f"peer:name={name}", codes), codes)


@pytest.mark.parametrize("name", [name for name in WRAPPERS if name != "jpeg"])
def test_a_view_is_read_as_the_memory_under_it(name):
    bound = ",rel=1e-3" if name in BOUNDED else ""
    x = smooth((40, 30)).T[::2]
    assert (decoded(f"peer:name={name}{bound}", x) - x).abs().max() <= 6e-3


@pytest.mark.parametrize("name", [name for name in WRAPPERS if name != "jpeg"])
@pytest.mark.parametrize("shape", [(0,), (3, 0, 5), (1,), ()], ids=str)
def test_nothing_and_one_element_kill_a_peer(name, shape):
    bound = ",rel=1e-3" if name in BOUNDED else ""
    x = torch.full(shape, 0.5)
    assert torch.equal(decoded(f"peer:name={name}{bound}", x), x)


def test_pixels_come_back_as_another_picture():
    x = (smooth((3, 48, 64)).abs() * 80).to(torch.uint8)
    for picture in (x, x[:1], x[0]):
        restored = decoded("peer:name=jpeg,level=95", picture)
        assert restored.shape == picture.shape
        assert (restored.float() - picture.float()).abs().mean() < 5
    with pytest.raises(SpecError, match=r"jpeg.*images of"):
        laconic.encode(x[None], "peer:name=jpeg")


def test_fewer_bits_are_not_fewer_bytes():
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    sizes = [laconic.encode(x, f"peer:name=blosc2,bits={bits}").nbytes for bits in (3, 7, 15)]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("name", ["zfp", "sperr"])
def test_what_a_peer_cannot_keep_is_hidden(name):
    """zfp spoils the block of an Inf without a word, and SPERR gives up."""
    x = smooth((32, 32))
    x[3, 3] = float("inf")
    with pytest.raises(DataError, match=name):
        laconic.encode(x, f"peer:name={name},abs=1e-2")


def test_a_peer_that_lies_is_believed(monkeypatch):
    monkeypatch.setattr(type(find("pco")), "decompress", lambda self, data, room, settings: np.zeros_like(room))
    with pytest.raises(DataError, match=r"pco is off by [23]"):
        laconic.encode(smooth((300,)), "peer:name=pco")
    assert laconic.encode(smooth((300,)), "peer:name=pco,check=false").nbytes


@pytest.mark.parametrize("name", [name for name in WRAPPERS if name not in ("sperr", "jpeg")])
def test_damaged_bytes_kill_this_process_or_change_the_shape(name):
    """SPERR may hang instead, until the child's time is up."""
    x = smooth((32, 32))
    bound = ",rel=1e-3" if name in BOUNDED else ""
    enc = laconic.encode(x, f"peer:name={name}{bound},check=false")
    if enc.chain[0].stage.name == "raw":
        pytest.skip("lz4 gains nothing here")
    main, generator = enc.parts["main"], torch.Generator().manual_seed(0)
    damaged = [main[:0], main[: len(main) // 2], main[:-1], torch.randint(0, 256, main.shape, dtype=torch.uint8)]
    for _ in range(20):
        flipped = main.clone()
        flipped[torch.randint(0, min(len(main), 40), (2,), generator=generator)] ^= 0x44
        damaged.append(flipped)
    for data in damaged:
        try:
            specs = (enc.specs[0], TensorSpec.of(data))
            assert laconic.decode(laconic.Encoded(enc.chain, specs, {"main": data})).shape == x.shape
        except CorruptData:
            pass


@pytest.mark.parametrize(("seconds", "how"), [(0.0, "gave no answer"), (60.0, "died")])
def test_a_child_that_dies_or_hangs_takes_the_next_call_with_it(seconds, how, monkeypatch):
    x = smooth((64, 64))
    laconic.encode(x, "peer:name=zfp,rel=1e-3")
    monkeypatch.setattr(child, "SECONDS", seconds)
    if seconds:
        CHILD._process.kill()
        CHILD._process.poll = lambda: None  # it looks alive when the call begins
    with pytest.raises(DataError, match=f"zfp could not take .*{how}"):
        laconic.encode(x, "peer:name=zfp,rel=1e-3")
    monkeypatch.undo()
    assert laconic.encode(x, "peer:name=zfp,rel=1e-3").ratio > 1


def test_what_kills_a_library_kills_this_process():
    """zfp divides by the elements of an empty array, which the stage never gives it."""
    with pytest.raises(PeerError, match="died"):
        compress("zfp", np.empty(0, np.float32), Settings(1e-3))
    assert laconic.encode(smooth((64, 64)), "peer:name=zfp,rel=1e-3").ratio > 1


def test_an_unknown_request_ends_the_child():
    with pytest.raises(PeerError, match="AttributeError"):
        CHILD.call({"do": "nothing"})
    assert laconic.encode(smooth((64, 64)), "peer:name=zfp").nbytes


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_missing_library_is_not_named_with_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, find(name).library, None)
    bound = ",abs=1" if name in BOUNDED else ""
    x = smooth((32, 32)) if name != "jpeg" else torch.eye(32).byte()
    with pytest.raises(MissingExtra, match=r"laconic\[peers\]"):
        laconic.encode(x, f"peer:name={name}{bound}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("name=sz3", "sz3 needs a bound"),
        ("name=zfp,abs=0", "above 0"),
        ("name=zfp,abs=nan", "above 0"),
        ("name=zfp,abs=1,rel=1", "one of abs= and rel="),
        ("name=pco,rel=1", "pco takes no bound"),
        ("name=pco,level=13", "from 0 to 12"),
        ("name=lz4,level=1", "no level"),
        ("name=zfp,bits=3", "bits= is for blosc2"),
        ("name=gzip", "expected name to be sz3"),
        ("rel=1e-3", "needs name="),
    ],
)
def test_options_that_cannot_work_are_taken(options, message):
    with pytest.raises(SpecError, match=message):
        laconic.codec(f"peer:{options}")


def test_the_text_of_a_peer_does_not_come_back():
    text = "peer:name=lerc,rel=0.001,level=3"
    assert str(laconic.codec(text)) == text
    assert laconic.codec(str(laconic.codec(text))) == laconic.codec(text)


def test_small_leading_dimensions_stand_alone():
    assert folded((5, 3, 2, 8, 8), 1, 4) == (15, 2, 8, 8)
    assert folded((2, 2), 1, 4) == (2, 2)
    assert folded((), 2, 3) == (1, 1)
