"""A fixed grid: no bias, no step lost at the ends, nothing that is not finite."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import laconic
from laconic.errors import DataError
from laconic.ops import affine as ops
from laconic.quantisers.affine import Affine

from ..table import FLOATS, ramp


@given(
    values=st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=1, max_size=30),
    bits=st.integers(2, 8),
    symmetric=st.booleans(),
)
def test_an_error_exceeds_half_a_step(values: list[float], bits: int, symmetric: bool) -> None:
    x = torch.tensor(values)
    enc = laconic.encode(x, f"affine:bits={bits},symmetric={str(symmetric).lower()}")
    step = float(enc.parts["0.scale"])
    error = (laconic.decode(enc).double() - x.double()).abs()
    rounding = 4 * torch.finfo(torch.float32).eps * float(x.abs().max())
    assert float(error.max()) <= step / 2 * (1 + 1e-5) + rounding


def test_ties_drift_one_way() -> None:
    """Half to even: codes k + 0.5 go up as often as down."""
    x = torch.arange(0, 255.5, 0.5)
    codes = laconic.encode(x, "affine").parts["main"]
    ties = x % 1 == 0.5
    assert torch.equal(codes[ties].double(), x[ties].double().round())
    assert abs(float((codes[ties] - x[ties]).mean())) < 0.01


def test_zero_is_lost_where_the_grid_is_symmetric() -> None:
    x = torch.tensor([-0.7, 0.0, 0.3])
    assert laconic.codec("affine:symmetric=true").roundtrip(x)[1] == 0


@pytest.mark.parametrize("value", [0.0, -3.25, 1e-40, 1e30])
@pytest.mark.parametrize("symmetric", ["true", "false"])
def test_a_flat_tensor_divides_by_zero(value: float, symmetric: str) -> None:
    x = torch.full((4, 4), value)
    assert torch.allclose(laconic.codec(f"affine:symmetric={symmetric}").roundtrip(x), x, rtol=1e-6, atol=1e-39)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("scope", ["per=tensor", "per=sample", "per=channel", "per=row", "group=32"])
@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (2, 3, 300, 300)])
def test_what_is_not_finite_gets_a_code(value: float, scope: str, shape: tuple[int, ...]) -> None:
    x = ramp(shape)
    x[1, 2, 3, 4] = value
    for spec in (f"affine:{scope}", f"affine:{scope}|bitpack:width=8"):
        with pytest.raises(DataError, match="finite"):
            laconic.encode(x, spec)


def test_a_range_beyond_float32_becomes_inf() -> None:
    with pytest.raises(DataError, match="range"):
        laconic.encode(torch.tensor([-3e38, 3e38]), "affine")


@pytest.mark.parametrize(("per", "shape"), [("tensor", ()), ("sample", (2,)), ("channel", (2, 3))])
def test_scales_do_not_follow_their_images(per: str, shape: tuple[int, ...]) -> None:
    x = ramp((2, 3, 8, 8)) * torch.tensor([1.0, 10.0]).reshape(2, 1, 1, 1)
    enc = laconic.encode(x, f"affine:per={per}")
    assert enc.parts["0.scale"].shape == shape
    if per != "tensor":
        assert (laconic.decode(enc)[0] - x[0]).abs().max() < 0.003


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_grid_is_as_coarse_as_the_input(dtype: torch.dtype) -> None:
    enc = laconic.encode(ramp((8, 8), dtype), "affine")
    assert enc.parts["0.scale"].dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_integers_are_quantised_again() -> None:
    with pytest.raises(laconic.SpecError, match="expected floats"):
        laconic.encode(torch.ones(4, dtype=torch.uint8), "affine")


def test_gradients_see_the_steps() -> None:
    x = torch.linspace(0, 1, 16, requires_grad=True)
    laconic.codec("affine:bits=2").roundtrip(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(16))  # type: ignore[arg-type]


SCOPES = ["per=tensor", "per=sample", "per=channel", "per=row", "group=32", "group=100", "group=256"]
ODD_SHAPES = [(2, 3, 13, 21), (5, 7), (9,), (), (300, 260), (3, 9000), (2, 70000)]


def reference_encode(stage: Affine, x: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    codes, side = torch.empty(x.shape, dtype=stage.code_dtype), stage.empty_grid(x)
    row, group = stage.runs(tuple(x.shape))
    ops.reference_encode(x, stage.bits, row, group, stage.draws, codes, side["scale"], side.get("offset"))
    return codes, side


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("shape", ODD_SHAPES)
def test_a_body_gives_other_bits(shape: tuple[int, ...], scope: str, dtype: torch.dtype) -> None:
    x = (torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 10).to(dtype)
    for options in ("bits=4", "bits=8,symmetric=true", "bits=3,stochastic=true,seed=9876543210"):
        codec = laconic.codec(f"affine:{options},{scope}")
        stage = codec.stages[0]
        assert isinstance(stage, Affine)
        enc, (codes, side) = codec.encode(x), reference_encode(stage, x)
        assert torch.equal(enc.parts["main"], codes)
        assert all(torch.equal(enc.parts[f"0.{name}"], part) for name, part in side.items())
        restored = torch.empty_like(x)
        ops.reference_decode(codes, side["scale"], side.get("offset"), *stage.runs(x.shape), restored)
        assert torch.equal(laconic.decode(enc), restored)


@pytest.mark.parametrize("scope", SCOPES)
def test_bits_depend_on_the_number_of_threads(scope: str) -> None:
    x = torch.randn(3, 5, 130, 257)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            enc = laconic.encode(x, f"affine:bits=4,{scope},stochastic=true|bitpack:width=4")
            found.append([*enc.parts.values(), laconic.decode(enc)])
    finally:
        torch.set_num_threads(threads)
    for others in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], others, strict=True))


def test_a_last_short_group_borrows_from_its_neighbours() -> None:
    x = torch.cat([torch.zeros(2, 64), torch.full((2, 5), 1000.0).cumsum(-1), torch.ones(2, 31)], 1)[:, :69]
    enc = laconic.encode(x, "affine:group=64")
    assert enc.parts["0.scale"].shape == (2, 2)
    assert torch.equal(laconic.decode(enc)[:, :64], x[:, :64])
    assert enc.parts["0.offset"][0].tolist() == [0, 1000]


@pytest.mark.parametrize("index", [slice(1, 130), slice(0, 129), 3])
def test_a_row_cut_within_a_group_takes_its_neighbours_scale(index: slice | int) -> None:
    with pytest.raises(laconic.SpecError, match="cannot be indexed"):
        laconic.encode(torch.arange(130.0), "affine:group=128")[index]


def test_stochastic_rounding_drifts_or_repeats_itself() -> None:
    """The mean of many draws is the value; neither neighbours nor seeds go together."""
    x = torch.full((64, 4096), 0.3)
    x[:, 0], x[:, 1] = 0, 15
    codes = [laconic.encode(x, f"affine:bits=4,stochastic=true,seed={seed}").parts["main"].double() for seed in (0, 1)]
    for drawn in codes:
        assert abs(float(drawn[:, 2:].mean()) - 0.3) < 0.004
        assert drawn[:, :2].tolist() == [[0, 15]] * 64  # what is on the grid stays
    one, other = (drawn[:, 2:] for drawn in codes)
    for a, b in [(one, other), (one[:, :-1], one[:, 1:]), (one[:-1], one[1:])]:
        assert abs(float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])) < 0.01


def test_the_noise_of_format_md_is_another() -> None:
    def mixed(v: int) -> int:
        v = (v ^ v >> 16) * 0x7FEB352D % 2**32
        v = (v ^ v >> 15) * 0x846CA68B % 2**32
        return v ^ v >> 16

    seed = 0x123456789
    first = mixed(mixed(mixed(seed % 2**32) ^ seed >> 32))
    second = mixed(first ^ 0x9E3779B9)
    expected = [mixed((mixed(i ^ first) + second) % 2**32) >> 8 for i in range(100)]
    assert ops.noise(seed, 100, torch.device("cpu")).tolist() == expected


@pytest.mark.parametrize(
    "bad", ["group=31", "group=257", "group=64,per=row", "seed=3", "stochastic=true,seed=-1", "per=pixel", "bits=9"]
)
def test_an_option_that_means_nothing_is_taken(bad: str) -> None:
    with pytest.raises(laconic.SpecError, match="expected"):
        laconic.codec(f"affine:{bad}")


def test_a_chain_is_not_stored_as_it_was_before_groups() -> None:
    text = "affine:bits=8,per=tensor,symmetric=false"
    assert laconic.codec(text).stages[0] == Affine()
    assert Affine().text(spell_defaults=True) == text


def test_noise_is_exported() -> None:
    with pytest.raises(laconic.SpecError, match="stochastic"):
        laconic.nn.Compress("affine:stochastic=true", (4, 64))


@given(values=st.lists(st.floats(width=32), min_size=1, max_size=70), group=st.sampled_from([32, 33]))
def test_adversarial_floats_crash_or_pass_for_finite(values: list[float], group: int) -> None:
    x = torch.tensor(values)
    spec = f"affine:bits=4,group={group}|bitpack:width=4"
    try:
        enc = laconic.encode(x, spec)
    except DataError:
        assert not x.isfinite().all() or float(x.max()) - float(x.min()) > 3e38
    else:
        assert x.isfinite().all()
        stage = laconic.codec(spec).stages[0]
        assert isinstance(stage, Affine)
        codes, side = reference_encode(stage, x)
        unpacked = torch.empty_like(codes)
        torch.ops.laconic.bitpack_fixed_decode_out(enc.parts["main"], 4, unpacked)
        assert torch.equal(unpacked, codes)
        assert torch.equal(enc.parts["0.scale"], side["scale"])


def test_zeros_of_either_sign_give_other_bytes() -> None:
    x = torch.tensor([0.0, -0.0] * 40)
    parts = laconic.encode(x, "affine:group=32").parts
    assert torch.equal(parts["0.offset"].view(torch.int32), torch.zeros(3, dtype=torch.int32))
