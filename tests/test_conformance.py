"""Every chain keeps every promise of the design's section 2. One table, walked by one set of tests."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
import torch.utils._pytree as pytree

import laconic
from laconic import TensorSpec

from .table import CHAINS, FIXED_SIZE, FLOATS, SHAPES, ramp


@pytest.fixture(params=CHAINS)
def codec(request: pytest.FixtureRequest) -> laconic.Codec:
    return laconic.codec(request.param)


def assert_same(a: laconic.Encoded, b: laconic.Encoded) -> None:
    assert (a.chain, a.specs, list(a.parts)) == (b.chain, b.specs, list(b.parts))
    for name in a.parts:
        assert TensorSpec.of(a.parts[name]) == TensorSpec.of(b.parts[name])
        assert torch.equal(a.parts[name], b.parts[name]), name


def test_text_and_codec_drift_apart(codec: laconic.Codec) -> None:
    assert laconic.codec(str(codec)) == codec
    spelled = "|".join(stage.text(spell_defaults=True) for stage in codec.stages)
    assert laconic.codec(spelled) == codec


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_shape_or_dtype_changes_on_the_way(codec: laconic.Codec, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = ramp(shape, dtype)
    enc = codec.encode(x)
    restored = laconic.decode(enc)
    assert TensorSpec.of(restored) == TensorSpec.of(x)
    assert torch.equal(restored, codec.roundtrip(x))


@pytest.mark.parametrize("shape", SHAPES)
def test_out_spec_promises_what_does_not_come(codec: laconic.Codec, shape: tuple[int, ...]) -> None:
    x = ramp(shape)
    promised = codec.out_spec(TensorSpec.of(x))
    enc = codec.encode(x)
    assert TensorSpec.of(enc.parts["main"]) == promised[-1].main.tensor
    for i, parts in enumerate(promised):
        for name, part in parts.side.items():
            assert TensorSpec.of(enc.parts[f"{i}.{name}"]) == part.tensor


@pytest.mark.parametrize("shape", SHAPES)
def test_out_is_ignored_or_allocated_anew(codec: laconic.Codec, shape: tuple[int, ...]) -> None:
    x = ramp(shape)
    room = codec.empty(TensorSpec.of(x))
    pointers = {name: part.data_ptr() for name, part in room.parts.items()}
    filled = codec.encode(x, out=room)
    assert filled is room
    assert {name: part.data_ptr() for name, part in filled.parts.items()} == pointers
    assert_same(filled, codec.encode(x))
    y = torch.empty_like(x)
    assert laconic.decode(filled, out=y) is y
    assert torch.equal(y, laconic.decode(filled))


@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_lose_something(codec: laconic.Codec, shape: tuple[int, ...]) -> None:
    enc = codec.encode(ramp(shape))
    data = enc.to_bytes()
    assert len(data) == enc.nbytes
    assert_same(laconic.Encoded.from_bytes(data), enc)
    assert laconic.Encoded.from_bytes(bytearray(data)).to_bytes() == data


def test_file_loses_something(codec: laconic.Codec, tmp_path: object) -> None:
    enc = codec.encode(ramp((2, 3, 16, 24)))
    laconic.save(f"{tmp_path}/x", enc)
    assert_same(laconic.load(f"{tmp_path}/x"), enc)


def test_pickle_copy_or_pytree_loses_something(codec: laconic.Codec) -> None:
    enc = codec.encode(ramp((2, 3, 16, 24)))
    assert_same(pickle.loads(pickle.dumps(enc)), enc)
    assert_same(copy.deepcopy(enc), enc)
    assert_same(pytree.tree_map(torch.clone, enc), enc)
    assert_same(enc.to("cpu"), enc)


@pytest.mark.parametrize("spec", FIXED_SIZE)
def test_samples_and_batches_disagree(spec: str) -> None:
    enc = laconic.encode(ramp((3, 2, 16, 24)), spec)
    whole = laconic.decode(enc)
    for i, sample in enumerate(enc):
        assert torch.equal(laconic.decode(sample), whole[i])
    assert torch.equal(laconic.decode(enc[1:]), whole[1:])
    assert_same(laconic.stack(list(enc)), enc)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.transpose(-1, -2),
        lambda x: x.contiguous(memory_format=torch.channels_last),
        lambda x: x[..., ::2],
        lambda x: x[..., 1:, 3:],
        lambda x: x[:1].expand(4, -1, -1, -1),
        lambda x: x.permute(1, 0, 2, 3),
        lambda x: x.flip(-1)[..., 1::3, :],
    ],
)
def test_a_view_reads_its_neighbours(codec: laconic.Codec, view: object) -> None:
    x = view(ramp((2, 3, 24, 40)))  # type: ignore[operator]
    assert_same(codec.encode(x), codec.encode(x.contiguous()))
    into = view(torch.zeros(2, 3, 24, 40))  # type: ignore[operator]
    if into.stride(0):
        assert torch.equal(laconic.decode(codec.encode(x), out=into), laconic.decode(codec.encode(x)))


def test_encode_changes_its_input(codec: laconic.Codec) -> None:
    x = ramp((2, 3, 16, 24))
    before = x.clone()
    codec.encode(x)
    assert torch.equal(x, before)


def test_gradients_stop_at_the_codec(codec: laconic.Codec) -> None:
    x = ramp((2, 3, 16, 24)).requires_grad_()
    codec.roundtrip(x).sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize("bad", [torch.ones(4, 8, 8, dtype=torch.int32), torch.ones(8, 8, device="meta"), [1.0, 2.0]])
def test_bad_input_is_no_laconic_error(codec: laconic.Codec, bad: object) -> None:
    with pytest.raises(laconic.LaconicError, match="expected"):
        codec.encode(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(0,), (0, 8, 8), (2, 0, 8), (2, 8, 0)])
def test_an_empty_tensor_crashes_or_lies(codec: laconic.Codec, shape: tuple[int, ...]) -> None:
    x = torch.empty(shape)
    if codec.stages[0].kind.name == "transform":
        with pytest.raises(laconic.SpecError, match="expected at least"):
            codec.encode(x)
    else:
        assert laconic.decode(codec.encode(x)).shape == x.shape


def test_samples_of_different_scales_share_one_quietly() -> None:
    samples = [laconic.encode(ramp((3, 8, 8)) * scale, "affine:per=tensor") for scale in (1, 2)]
    with pytest.raises(laconic.SpecError, match="per=channel"):
        laconic.stack(samples)


@pytest.mark.parametrize("items", [[], ["dct:chop=4", "dct:chop=3"]])
def test_what_does_not_belong_together_is_stacked(items: list[str]) -> None:
    with pytest.raises(laconic.SpecError, match="stack needs"):
        laconic.stack([laconic.encode(ramp((3, 8, 8)), spec) for spec in items])


def test_rows_of_a_single_image_pass_for_samples() -> None:
    with pytest.raises(laconic.SpecError):
        laconic.encode(ramp((16, 16)), "dct:chop=4")[0]


def test_room_of_another_shape_is_written_over() -> None:
    codec = laconic.codec("dct:chop=4")
    room = codec.empty(TensorSpec((8, 8), torch.float32))
    with pytest.raises(laconic.SpecError, match="out="):
        codec.encode(ramp((16, 16)), out=room)
    with pytest.raises(laconic.SpecError, match="out="):
        laconic.decode(codec.encode(ramp((16, 16))), out=torch.empty(8, 8))
    with pytest.raises(laconic.SpecError, match="cannot decode"):
        laconic.codec("dct:chop=3").decode(codec.encode(ramp((16, 16))))
