"""No value is further off than its bound, in exact arithmetic, whatever the floats."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import laconic
from laconic import Encoded, TensorSpec

from ..table import FLOATS, stored

AFTER = [
    "",
    "|lorenzo:dims=1",
    "|lorenzo",
    "|lorenzo:dims=3",
    "|bitpack",
    "|lorenzo:dims=1|bitpack",
    "|lorenzo|bitpack",
    "|lorenzo:dims=3|bitpack",
    "|zstd",
    "|lorenzo|lz4",
]
BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
SHAPES = [(1,), (5,), (41,), (2, 7), (3, 1), (2, 3, 5), (1, 4, 1), (2, 2, 2, 3), ()]


def bits(x: Tensor) -> Tensor:
    return x.contiguous().view(BITS[x.element_size()])


def bound_of(kind: str, value: float, x: Tensor) -> float:
    """What the user asked for, of one scope."""
    finite = x[x.isfinite()].double()
    if kind == "abs" or finite.numel() == 0:
        return value
    if kind == "rel":
        return value * float(finite.max() - finite.min())
    largest = float(finite.abs().max()) or 1.0
    return value * largest * math.sqrt(float((finite / largest).square().mean())) * (1 + 1e-12)


def scopes(x: Tensor, per: str) -> Tensor:
    inner = {"tensor": x.dim(), "channel": min(2, x.dim()), "row": min(1, x.dim())}[per]
    return x.reshape(-1, max(1, math.prod(x.shape[x.dim() - inner :])))


def assert_bounded(x: Tensor, y: Tensor, kind: str, value: float, per: str) -> None:
    for before, after in zip(scopes(x, per), scopes(y, per), strict=True):
        finite = before.isfinite()
        assert torch.equal(bits(before[~finite]), bits(after[~finite]))
        limit = bound_of(kind, value, before)
        for a, b in zip(before[finite].tolist(), after[finite].tolist(), strict=True):
            assert math.isfinite(b), f"{a} came back as {b}"
            assert limit == math.inf or abs(Fraction(a) - Fraction(b)) <= Fraction(limit), f"{a}, {b}: over {limit}"


def numbers(dtype: torch.dtype, bound: float) -> st.SearchStrategy[float]:
    """Floats of every size, on half steps and beside them, at the ends of the type, and none at all."""
    info = torch.finfo(dtype)
    ends = [info.max, info.tiny, info.smallest_normal * info.eps, info.eps, 0.0, -0.0, 1.0, math.inf, math.nan]
    steps = st.integers(-300, 300).map(lambda k: k * bound)
    beside = st.tuples(steps, st.sampled_from([-math.inf, math.inf])).map(lambda pair: math.nextafter(*pair))
    powers = st.integers(-40, 40).map(lambda n: 2.0**n)
    near_powers = st.tuples(powers, st.sampled_from([1 - info.eps, 1.0, 1 + info.eps])).map(lambda p: p[0] * p[1])
    wide = st.floats(width=64 if dtype == torch.float64 else 32)
    return st.one_of(wide, st.floats(-1, 1), steps, beside, near_powers, st.sampled_from([*ends, *(-x for x in ends)]))


@st.composite
def tensors(draw: st.DrawFn, dtype: torch.dtype, bound: float) -> Tensor:
    shape = draw(st.sampled_from(SHAPES))
    count = math.prod(shape)
    pool = draw(st.lists(numbers(dtype, bound), min_size=1, max_size=count))
    order = draw(st.lists(st.integers(0, len(pool) - 1), min_size=count, max_size=count))
    return torch.tensor([pool[i] for i in order], dtype=torch.float64).to(dtype).reshape(shape)


@settings(max_examples=150)
@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_a_value_is_further_off_than_its_bound(dtype: torch.dtype, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["abs", "rel", "rms"]))
    value = data.draw(st.sampled_from([1e-3, 0.01, 0.1, 1 / 3, 0.5, 1.0, 7.0, 1e-12, 1e-42, 1e30, 1e300]))
    per = data.draw(st.sampled_from(["tensor", "channel", "row"]))
    width = data.draw(st.sampled_from(["auto", "8", "16", "32"]))
    x = data.draw(tensors(dtype, value))
    codec = laconic.codec(f"bound:{kind}={value!r},per={per},width={width}{data.draw(st.sampled_from(AFTER))}")
    assert_bounded(x, laconic.decode(stored(codec, x)), kind, value, per)
    assert_bounded(x, laconic.decode(Encoded.from_bytes(codec.encode(x).to_bytes())), kind, value, per)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["abs", "rel", "rms"])
@pytest.mark.parametrize("after", ["", "|lorenzo|bitpack"])
def test_a_large_tensor_has_values_beyond_the_bound(dtype: torch.dtype, kind: str, after: str) -> None:
    """In float64, of 70 000 values of every magnitude, among them what is not finite."""
    random = torch.Generator().manual_seed(3)
    x = torch.randn(7, 100, 100, generator=random, dtype=torch.float64)
    x = (x * torch.logspace(-4, 4, 100, dtype=torch.float64)[:, None]).to(dtype)
    x.view(-1)[::997] = torch.nan
    x.view(-1)[5::1999] = torch.inf
    for value, per in itertools.product([0.5, 1e-2, 1e-4], ["tensor", "channel", "row"]):
        y = laconic.decode(stored(laconic.codec(f"bound:{kind}={value},per={per}{after}"), x))
        assert torch.equal(bits(x[~x.isfinite()]), bits(y[~x.isfinite()]))
        before, off = scopes(x, per).double(), scopes(x, per).double() - scopes(y, per).double()
        finite = before.isfinite()
        high, low = before.where(finite, -torch.inf).amax(1), before.where(finite, torch.inf).amin(1)
        rms = (before.where(finite, 0.0).square().sum(1) / finite.sum(1)).sqrt()
        size = {"abs": torch.ones_like(rms), "rel": high - low, "rms": rms * (1 + 1e-12)}[kind]
        assert (off.where(finite, 0.0).abs().amax(1) <= value * size).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_on_half_steps_fall_over_the_bound(dtype: torch.dtype) -> None:
    for value in (0.5, 0.01, 1e-3, 0.3):
        halves = torch.arange(-260, 261, dtype=torch.float64) * value
        x = torch.cat([halves, halves.nextafter(halves + 1), halves.nextafter(halves - 1)]).to(dtype)
        y = laconic.decode(stored(laconic.codec(f"bound:abs={value}"), x))
        assert_bounded(x, y, "abs", value, "tensor")


@pytest.mark.parametrize("magnitude", [1e160, 1e200, 1e300])
def test_squares_beyond_float64_make_the_bound_infinite(magnitude: float) -> None:
    x = torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=torch.float64) * magnitude
    assert_bounded(x, laconic.decode(stored(laconic.codec("bound:rms=1e-3"), x)), "rms", 1e-3, "tensor")


@pytest.mark.parametrize("dtype", FLOATS)
def test_ordinary_values_are_all_exceptions(dtype: torch.dtype) -> None:
    """The bound would hold, and nothing be gained."""
    x = torch.randn(10_000, generator=torch.Generator().manual_seed(1)).to(dtype)
    for spec in ("bound:rel=1e-2", "bound:rel=1e-3", "bound:rms=1e-2", "bound:abs=0.01"):
        enc = stored(laconic.codec(spec), x)
        assert enc.parts["0.index"].numel() <= 20, spec


@pytest.mark.parametrize(("bound", "width"), [(1e-2, 8), (1e-3, 16), (1e-6, 32)])
def test_codes_are_wider_than_they_need_be(bound: float, width: int) -> None:
    x = torch.linspace(-1, 1, 1000)
    enc = stored(laconic.codec(f"bound:rel={bound}"), x)
    assert enc.parts["main"].element_size() == width // 8
    assert enc.parts["0.index"].numel() == 0


def test_codes_beyond_their_width_wrap() -> None:
    x = torch.linspace(-1000, 1000, 4001)
    enc = stored(laconic.codec("bound:abs=0.5,width=8"), x)
    assert enc.parts["0.index"].numel() > 3000
    assert_bounded(x, laconic.decode(enc), "abs", 0.5, "tensor")


@pytest.mark.parametrize("value", [0.0, -0.0, 3.7, 1e38, -1e-42, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_constant_tensor_costs_more_than_its_element(value: float, dtype: torch.dtype) -> None:
    for spec, shape in itertools.product(
        ["bound:rel=1e-3|lorenzo|bitpack", "bound:abs=1e-9", "bound:rms=0.1,per=row|zstd"], [(1000, 1000), (7,), (1, 2)]
    ):
        x = torch.full(shape, value, dtype=torch.float64).to(dtype)
        enc = laconic.encode(x, spec)
        assert enc.nbytes < 200
        assert torch.equal(bits(laconic.decode(Encoded.from_bytes(enc.to_bytes()))), bits(x))


def test_constant_rows_divide_by_zero() -> None:
    x = torch.tensor([0.0, -3.7, 1e-42, 1e38, torch.nan, torch.inf]).repeat_interleave(50).view(6, 50).clone()
    x[1, 7] = torch.nan
    for kind in ("rel", "rms", "abs"):
        y = laconic.decode(stored(laconic.codec(f"bound:{kind}=1e-3,per=row|lorenzo|bitpack"), x))
        assert_bounded(x, y, kind, 1e-3, "row")


@pytest.mark.parametrize(("per", "shape"), [("tensor", ()), ("channel", (2, 3)), ("row", (2, 3, 4))])
def test_a_quiet_scope_pays_for_a_loud_one(per: str, shape: tuple[int, ...]) -> None:
    x = torch.rand(2, 3, 4, 50) * torch.logspace(-3, 3, 3)[:, None, None]
    enc = stored(laconic.codec(f"bound:rel=1e-2,per={per}"), x)
    assert enc.parts["0.step"].shape == shape
    assert_bounded(x, laconic.decode(enc), "rel", 1e-2, per)


@pytest.mark.parametrize(
    "spec",
    ["bound", "bound:abs=1,rel=1", "bound:abs=1,rel=1,rms=1", "bound:width=8"]
    + [f"bound:{kind}={value}" for kind in ("abs", "rel", "rms") for value in ("0", "-1", "nan", "inf", "-inf", "x")]
    + ["bound:abs=1,width=24", "bound:abs=1,per=sample", "bitpack|bound:abs=1", "bound:abs=1|bound:abs=1"],
)
def test_a_bound_that_cannot_be_kept_is_taken(spec: str) -> None:
    with pytest.raises(laconic.SpecError, match=r"'(bound|lorenzo)[^']*'"):
        laconic.codec(spec)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn])
def test_what_is_no_float_is_quantised(dtype: torch.dtype) -> None:
    with pytest.raises(laconic.SpecError, match="expected floats"):
        laconic.encode(torch.zeros(4).to(dtype), "bound:abs=1")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (100, 100), (64, 8), (0,), (0, 4), ()])
def test_noise_grows(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    """However bad the data, the parts take no more than the tensor; the rest is the header and the description."""
    count, width = math.prod(shape), dtype.itemsize
    random = torch.Generator().manual_seed(4)
    noise = torch.randint(-(2**15), 2**15, (count * width // 2,), generator=random, dtype=torch.int16).view(dtype)
    for x in (noise.reshape(shape), torch.randn(shape, generator=random).to(dtype) * torch.nan):
        for after in AFTER:
            enc = laconic.encode(x, f"bound:rel=1e-7{after}")
            assert sum(part.nbytes for part in enc.parts.values()) <= TensorSpec.of(x).nbytes or count < 2
            assert enc.nbytes <= TensorSpec.of(x).nbytes + 240
            assert torch.equal(bits(laconic.decode(enc)[~x.isfinite()]), bits(x[~x.isfinite()]))
