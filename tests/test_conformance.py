"""Every chain keeps every promise of the design's section 2. One table, walked by one set of tests."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
import torch.utils._pytree as pytree

import laconic
from laconic import TensorSpec
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage

from .table import CHAINS, FIXED_SIZE, FLOATS, SHAPES, VARIABLE_SIZE, agree, ramp


@pytest.fixture(params=CHAINS)
def codec(request: pytest.FixtureRequest) -> laconic.Codec:
    return laconic.codec(request.param)


@pytest.fixture(params=FIXED_SIZE)
def fixed(request: pytest.FixtureRequest) -> laconic.Codec:
    return laconic.codec(request.param)


@pytest.fixture(params=VARIABLE_SIZE)
def variable(request: pytest.FixtureRequest) -> laconic.Codec:
    return laconic.codec(request.param)


def assert_same(
    a: laconic.Encoded, b: laconic.Encoded, same: Callable[[torch.Tensor, torch.Tensor], bool] = torch.equal
) -> None:
    assert (a.chain, a.specs, list(a.parts)) == (b.chain, b.specs, list(b.parts))
    for name in a.parts:
        assert TensorSpec.of(a.parts[name]) == TensorSpec.of(b.parts[name])
        assert same(a.parts[name], b.parts[name]), name


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
def test_out_spec_promises_what_does_not_come(fixed: laconic.Codec, shape: tuple[int, ...]) -> None:
    x = ramp(shape)
    promised = fixed.out_spec(TensorSpec.of(x))
    enc = fixed.encode(x)
    assert TensorSpec.of(enc.parts["main"]) == promised[-1].main.tensor
    for i, parts in enumerate(promised):
        for name, part in parts.side.items():
            assert TensorSpec.of(enc.parts[f"{i}.{name}"]) == part.tensor


@pytest.mark.parametrize("shape", SHAPES)
def test_out_is_ignored_or_allocated_anew(fixed: laconic.Codec, shape: tuple[int, ...]) -> None:
    x = ramp(shape)
    room = fixed.empty(TensorSpec.of(x))
    pointers = {name: part.data_ptr() for name, part in room.parts.items()}
    filled = fixed.encode(x, out=room)
    assert filled is room
    assert {name: part.data_ptr() for name, part in filled.parts.items()} == pointers
    assert_same(filled, fixed.encode(x))
    y = torch.empty_like(x)
    assert laconic.decode(filled, out=y) is y
    assert torch.equal(y, laconic.decode(filled))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_data_decide_what_was_not_theirs(variable: laconic.Codec, shape: tuple[int, ...]) -> None:
    enc = variable.encode(ramp(shape))
    if enc.chain != variable.links and not variable.stages[-1].defers:
        assert [str(link.stage) for link in enc.chain] == ["raw"]
    for i, (link, before, after) in enumerate(zip(enc.chain, enc.specs, enc.specs[1:], strict=False)):
        promised = link.promise(before)
        assert promised.main.allows(after)
        assert all(part.allows(TensorSpec.of(enc.parts[f"{i}.{name}"])) for name, part in promised.side.items())
    assert TensorSpec.of(enc.parts["main"]) == enc.specs[-1]


@pytest.mark.parametrize("shape", SHAPES)
def test_room_is_allocated_anew_or_lost(variable: laconic.Codec, shape: tuple[int, ...]) -> None:
    """What the data decide lies at the beginning of the room, which serves again."""
    room = variable.empty(TensorSpec((*shape[:-1], 40 * shape[-1]), torch.float32))
    main, size = room.parts["main"], room.parts["main"].nbytes
    for scale in (1.0, 0.3):
        x = ramp(room.spec.shape) * scale
        enc = variable.encode(x, out=room)
        assert room.parts["main"] is main
        if enc.parts["main"].nbytes <= size:
            assert enc.parts["main"].data_ptr() == main.data_ptr()
        assert_same(enc, variable.encode(x))
        y = torch.empty_like(x)
        assert variable.decode(enc, out=y) is y
        assert torch.equal(y, laconic.decode(enc))


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
        assert agree(laconic.decode(sample), whole[i])
    assert agree(laconic.decode(enc[1:]), whole[1:])
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
    assert_same(codec.encode(x), codec.encode(x.contiguous()), agree)
    into = view(torch.zeros(2, 3, 24, 40))  # type: ignore[operator]
    if 0 not in into.stride():
        assert agree(laconic.decode(codec.encode(x), out=into), laconic.decode(codec.encode(x)))


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
    if isinstance(bad, torch.Tensor) and not bad.is_meta and codec.stages[0].kind > Kind.quantiser:
        pytest.skip("integers are what predictors and encoders read")
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


@pytest.mark.parametrize("spec", ["dct:chop=4", "dct:chop=8", "dct:chop=4,keep=triangle", "dct:chop=8|affine"])
@pytest.mark.parametrize("shape", [(16, 16), (7, 8), (8, 8), (64, 64)])
@pytest.mark.parametrize("index", [0, -1, slice(None), slice(4, 8), slice(0, 1)])
def test_rows_of_a_single_image_pass_for_samples(spec: str, shape: tuple[int, ...], index: int | slice) -> None:
    with pytest.raises(laconic.SpecError, match="cannot be indexed"):
        laconic.encode(ramp(shape), spec)[index]


@pytest.mark.parametrize(
    ("spec", "shape"), [("lorenzo", (8, 9)), ("lorenzo:dims=3", (4, 8, 9)), ("lorenzo:dims=1", (9,)), ("lorenzo", (9,))]
)
def test_what_foretells_a_sample_is_cut_off(spec: str, shape: tuple[int, ...]) -> None:
    """Each row is stored as its difference to the one before: alone, or among others, it would be another."""
    enc = laconic.encode(ramp(shape), spec)
    with pytest.raises(laconic.SpecError, match="cannot be indexed"):
        enc[1:]
    if spec == "lorenzo" and len(shape) == 1:
        with pytest.raises(laconic.SpecError, match="cannot be stacked"):
            laconic.stack([enc, enc])


@pytest.mark.parametrize("index", [[1, 0], (0, 1), torch.tensor([1, 0]), ..., None, "0", 1.5])
def test_another_kind_of_index_gives_other_samples(index: object) -> None:
    with pytest.raises(laconic.SpecError, match="a whole number or a slice"):
        laconic.encode(ramp((2, 3, 16, 16)), "dct:chop=8")[index]  # type: ignore[index]


@pytest.mark.parametrize("index", [slice(None), slice(1, 3), slice(0, 4, 2), slice(-1, None), slice(2, 2)])
def test_a_slice_gives_other_samples(index: slice) -> None:
    x = ramp((4, 3, 16, 16))
    for spec in ("dct:chop=8", "dct:chop=4|affine:per=sample", "affine"):
        enc = laconic.encode(x, spec)
        if x[index].numel():
            assert agree(laconic.decode(enc[index]), laconic.decode(enc)[index])
    with pytest.raises(IndexError):
        enc[4]


def test_loaders_cannot_batch_by_default() -> None:
    data = [(laconic.encode(ramp((3, 16, 16)) * i, "dct:chop=4"), i) for i in range(1, 5)]
    (batch, labels), _ = torch.utils.data.DataLoader(data, batch_size=2)  # type: ignore[arg-type, var-annotated]
    assert batch.spec.shape == (2, 3, 16, 16)
    assert labels.tolist() == [1, 2]


@pytest.mark.parametrize("spec", ["cast:dtype=float32", "cast:dtype=float32|affine", "dct:chop=8"])
def test_what_is_encoded_follows_its_input(spec: str) -> None:
    x = ramp((8, 8))
    enc = laconic.encode(x, spec)
    before = laconic.decode(enc)
    x.zero_()
    restored = laconic.decode(enc)
    assert torch.equal(restored, before)
    restored.zero_()
    assert torch.equal(laconic.decode(enc), before)


def test_room_of_another_shape_is_written_over() -> None:
    codec = laconic.codec("dct:chop=4")
    room = codec.empty(TensorSpec((8, 8), torch.float32))
    with pytest.raises(laconic.SpecError, match="out="):
        codec.encode(ramp((16, 16)), out=room)
    with pytest.raises(laconic.SpecError, match="out="):
        laconic.decode(codec.encode(ramp((16, 16))), out=torch.empty(8, 8))
    with pytest.raises(laconic.SpecError, match="cannot decode"):
        laconic.codec("dct:chop=3").decode(codec.encode(ramp((16, 16))))


def test_out_is_read_while_it_is_written() -> None:
    codec, x = laconic.codec("dct:chop=8"), ramp((8, 64))
    shared = laconic.Encoded(codec.links, (TensorSpec.of(x),) * 2, {"main": x})
    with pytest.raises(laconic.SpecError, match="shares memory"):
        codec.encode(x, out=shared)
    with pytest.raises(laconic.SpecError, match="shares memory"):
        laconic.decode(shared, out=x)
    with pytest.raises(laconic.SpecError, match="expanded"):
        laconic.decode(codec.encode(x), out=torch.empty(1, 64).expand(8, 64))


def test_writing_to_out_escapes_autograd() -> None:
    codec, x = laconic.codec("dct:chop=8"), ramp((8, 8))
    weight, buffer = torch.ones(8, 8, requires_grad=True), torch.ones(8, 8)
    loss = (weight * buffer).sum()
    laconic.decode(codec.encode(x), out=buffer)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    room = codec.empty(TensorSpec.of(x))
    with pytest.raises(laconic.SpecError, match="gradients"):
        codec.encode(x.clone().requires_grad_(), out=room)
    with torch.no_grad():
        codec.encode(x.clone().requires_grad_(), out=room)


def test_a_hand_made_encoded_is_believed() -> None:
    enc = laconic.encode(ramp((8, 8)), "dct:chop=8")
    (link,) = enc.chain
    for chain, specs, parts in [
        ((), enc.specs[:1], enc.parts),
        ((link, link, link), enc.specs, enc.parts),
        ((link._replace(version=99),), enc.specs, enc.parts),
        ((link._replace(version=0),), enc.specs, enc.parts),
        (enc.chain, enc.specs, {}),
        (enc.chain, enc.specs, {"main": torch.zeros(4, 4)}),
        (enc.chain, (enc.specs[0], TensorSpec((4, 4), torch.float32)), {"main": torch.zeros(4, 4)}),
    ]:
        with pytest.raises(laconic.LaconicError):
            laconic.decode(laconic.Encoded(chain, specs, parts))


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: laconic.codec(4),  # type: ignore[arg-type]
        lambda: laconic.decode(torch.ones(3)),  # type: ignore[arg-type]
        lambda: laconic.stack([1, 2]),  # type: ignore[list-item]
        lambda: laconic.encode(torch.ones(3), None),  # type: ignore[arg-type]
        lambda: laconic.codec("dct:chop=4").encode(torch.ones(8, 8), out=torch.ones(4, 4)),  # type: ignore[arg-type]
        lambda: laconic.Encoded.from_bytes("abc"),  # type: ignore[arg-type]
        lambda: laconic.save("x", torch.ones(3)),  # type: ignore[arg-type]
        lambda: laconic.save("x", {"x": torch.ones(3, device="meta")}),
        lambda: laconic.save("x", {"x": torch.ones(3).to_sparse()}),
        lambda: laconic.save("x", {"x": torch.ones(3, dtype=torch.complex128)}),
    ],
)
def test_misuse_ends_deep_inside(misuse: Callable[[], object]) -> None:
    with pytest.raises(laconic.SpecError, match=r"expected|needs|does not hold|out="):
        misuse()


def test_a_fake_tensor_spoils_the_codec_for_real_ones() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert laconic.encode(torch.empty(8, 8), "zfp:chop=3").parts["main"].shape == (6, 6)
    assert laconic.codec("zfp:chop=4").roundtrip(ramp((8, 8))).sum() > 0
    with torch.device("meta"):
        laconic.nn.Compress("hadamard:chop=7,block=32", (32, 32))


def test_autocast_blurs_what_is_computed() -> None:
    x = ramp((8, 64))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.allclose(laconic.codec("dct:chop=8").roundtrip(x), x, atol=1e-5)


@dataclass(frozen=True)
class Bytes(Stage):
    """Codes to the same codes: an encoder, so that a quantiser is not the last stage."""

    name: ClassVar[str] = "bytes"
    kind: ClassVar[Kind] = Kind.encoder
    example: ClassVar[str] = "affine|bytes"

    def out_spec(self, x: TensorSpec) -> PartsSpec:
        return PartsSpec(PartSpec(x))

    def encode(self, x: torch.Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        return Parts(x) if out is None else Parts(out.main.copy_(x))

    def decode(self, parts: Parts, x: TensorSpec, version: int, out: torch.Tensor | None = None) -> torch.Tensor:
        return parts.main


def test_the_scale_of_a_stage_before_the_last_never_reaches_out() -> None:
    codec, x = laconic.Codec((*laconic.codec("affine:per=channel").stages, Bytes())), ramp((2, 3, 8, 8))
    assert_same(codec.encode(x, out=codec.empty(TensorSpec.of(x))), codec.encode(x))
