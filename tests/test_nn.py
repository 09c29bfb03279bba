"""The portable modules: the same values as the codec, in operators that a static compiler has."""

from __future__ import annotations

import io
import itertools

import pytest
import torch
from torch import Tensor, nn

import laconic
from laconic import TensorSpec

from .table import PORTABLE, ramp

SHAPE = (2, 3, 64, 128)
MINIMAL = {"matmul", "mT", "narrow", "unflatten", "flatten", "cat"}


def as_tuple(parts: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return parts if isinstance(parts, tuple) else (parts,)


def pair(spec: str, shape: tuple[int, ...], serial: int = 1, **options: object) -> tuple[nn.Module, nn.Module]:
    modules = (laconic.nn.Compress, laconic.nn.Decompress)
    return tuple(module(spec, shape, serial, **options) for module in modules)  # type: ignore[return-value, arg-type]


@pytest.mark.parametrize("spec", PORTABLE)
@pytest.mark.parametrize("shape", [SHAPE, (3, 13, 21), (5, 7)])
def test_modules_and_codec_disagree(spec: str, shape: tuple[int, ...]) -> None:
    x = ramp(shape)
    enc = laconic.encode(x, spec)
    compress, decompress = pair(spec, shape)
    parts = as_tuple(compress(x))
    codes_may_round_apart = 1 if "affine" in spec else 0
    for found, expected in zip(parts, enc.parts.values(), strict=True):
        assert TensorSpec.of(found) == TensorSpec.of(expected)
        atol = codes_may_round_apart if not expected.is_floating_point() else 0.04 if "cast" in spec else 1e-4
        assert torch.allclose(found.double(), expected.double(), atol=atol)
    assert torch.allclose(decompress(*enc.parts.values()), laconic.decode(enc), atol=1e-4)


@pytest.mark.parametrize("keep", ["square", "triangle"])
@pytest.mark.parametrize("shape", [(64, 96), (3, 61, 90), (1, 200)])
@pytest.mark.parametrize("span", [None, 16])
def test_serial_tiles_give_other_values(shape: tuple[int, ...], keep: str, span: int | None) -> None:
    spec, x = f"dct:chop=4,keep={keep}", ramp(shape)
    whole, back = pair(spec, shape)
    blocks = [-(-size // 8) for size in shape[-2:]]
    admissible = [s for s in range(2, 13) if all(count % s == 0 for count in blocks)]
    for serial in admissible:
        compress, decompress = pair(spec, shape, serial, span=span)
        y = compress(x)
        assert torch.allclose(y, whole(x), atol=1e-5)
        assert torch.allclose(decompress(y), back(y), atol=1e-5)


def test_tiles_of_folded_rows_pass_for_tiles() -> None:
    """Folding an image's rows into tiles, `x.reshape(s*s, H/s, W/s)`, mixes distant rows and loses over 10 dB."""
    y, x = torch.meshgrid(torch.linspace(0, 5, 128), torch.linspace(0, 7, 128), indexing="ij")
    image = torch.sin(x) * torch.cos(y) + 0.3 * torch.sin(3 * x + y)
    compress, decompress = pair("dct:chop=2", (128, 128), 4)
    ours = laconic.metrics.psnr(image, decompress(compress(image)))
    tile_in, tile_out = pair("dct:chop=2", (16, 32, 32))
    folded = tile_out(tile_in(image.reshape(16, 32, 32))).reshape(128, 128)
    assert ours == pytest.approx(laconic.metrics.psnr(image, laconic.codec("dct:chop=2").roundtrip(image)), abs=0.01)
    assert ours > laconic.metrics.psnr(image, folded) + 10


@pytest.mark.parametrize("serial", [2, 4, 8])
def test_serial_matrices_are_no_smaller(serial: int) -> None:
    def largest(module: nn.Module) -> int:
        return max(buffer.numel() for buffer in module.buffers())

    for whole, tiled in zip(pair("dct:chop=4", (256, 256)), pair("dct:chop=4", (256, 256), serial), strict=True):
        assert largest(tiled) * serial**2 == largest(whole)
        assert sum(b.numel() for b in tiled.buffers()) * serial**2 == sum(b.numel() for b in whole.buffers())


def test_a_serial_that_cuts_a_block_is_accepted() -> None:
    with pytest.raises(laconic.SpecError, match=r"Try one of \[1, 2, 3, 6\]"):
        laconic.nn.Compress("dct:chop=4", (48, 48), serial=4)
    with pytest.raises(laconic.SpecError, match="evenly"):
        laconic.nn.Compress("dct:chop=4", (48, 48), serial=0)


@pytest.mark.parametrize("spec", PORTABLE)
@pytest.mark.parametrize("serial", [1, 2])
def test_an_undeclared_operator_is_exported(spec: str, serial: int) -> None:
    declared = set().union(*(stage.operators for stage in laconic.codec(spec).stages))
    x = ramp(SHAPE)
    compress, decompress = pair(spec, SHAPE, serial)
    parts = as_tuple(compress(x))
    for module, args in ((compress, (x,)), (decompress, parts)):
        assert exported(module, args) <= declared
        torch._dynamo.reset()
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
        for found, expected in zip(as_tuple(compiled(*args)), as_tuple(module(*args)), strict=True):
            assert torch.allclose(found.double(), expected.double(), atol=1e-5)


@pytest.mark.parametrize("spec", ["dct:chop=4", "zfp:chop=2", "hadamard:chop=5"])
def test_the_square_layout_needs_more_than_products(spec: str) -> None:
    for shape, serial in itertools.product([SHAPE, (3, 45, 63)], [1, 2]):
        compress, decompress = pair(spec, shape, serial)
        assert exported(compress, (ramp(shape),)) <= MINIMAL
        assert exported(decompress, (compress(ramp(shape)),)) <= MINIMAL


def exported(module: nn.Module, args: tuple[Tensor, ...]) -> set[str]:
    """The operators of the exported graph, without the assertions that `to` leaves for the exporter itself."""
    nodes = torch.export.export(module, args).graph.nodes
    names = {node.target.__name__.split(".")[0] for node in nodes if node.op == "call_function"}
    return names - {"_assert_tensor_metadata"}


def test_the_exported_program_forgets_its_matrices() -> None:
    compress, decompress = pair("dct:chop=8|affine:per=channel", SHAPE)
    x = ramp(SHAPE)
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(compress, (x,)), buffer)
    buffer.seek(0)
    program = torch.export.load(buffer).module()
    assert torch.allclose(decompress(*program(x)), x, atol=0.1)


def test_onnx_cannot_take_it() -> None:
    compress, _ = pair("dct:chop=4", SHAPE)
    program = torch.onnx.export(compress, (ramp(SHAPE),), dynamo=True, verbose=False)
    assert program is not None
    kinds = {node.op_type for node in program.model.graph}
    assert kinds <= {"MatMul", "Reshape", "Slice", "Concat", "Transpose", "Constant"}, kinds


@pytest.mark.parametrize("keep", ["square", "triangle"])
def test_a_matrix_stays_behind_when_the_module_moves(keep: str) -> None:
    for module in pair(f"dct:chop=4,keep={keep}", (45, 64), 2):
        moved = module.to("meta")
        assert all(tensor.device.type == "meta" for tensor in [*moved.buffers(), *moved.parameters()])
        (enc_spec,) = laconic.codec(f"dct:chop=4,keep={keep}").out_spec(TensorSpec((2, 45, 64), torch.float32))
        shape = (2, 45, 64) if isinstance(module, laconic.nn.Compress) else enc_spec.main.tensor.shape
        assert moved(torch.empty(shape, device="meta")).device.type == "meta"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.uint8])
def test_modules_forget_the_dtype(dtype: torch.dtype) -> None:
    x = ramp(SHAPE, dtype)
    compress, decompress = pair("dct:chop=8", SHAPE, dtype=dtype)
    y = compress(x)
    assert TensorSpec.of(y) == TensorSpec.of(laconic.encode(x, "dct:chop=8").parts["main"])
    restored = decompress(y)
    assert restored.dtype == dtype
    assert torch.allclose(restored.double(), x.double(), atol=1e-2)


def test_another_shape_is_transformed_wrongly() -> None:
    compress, decompress = pair("dct:chop=4|affine", (3, 48, 64))
    assert compress(ramp((5, 48, 64)))[0].shape == (5, 24, 32)
    for bad in (ramp((3, 48, 48)), ramp((3, 48, 64), torch.float64)):
        with pytest.raises(laconic.SpecError, match="expected float32"):
            compress(bad)
    with pytest.raises(laconic.SpecError, match="expected 3 tensors"):
        decompress(torch.zeros(3, 24, 32, dtype=torch.uint8))
    with pytest.raises(laconic.SpecError, match="at least"):
        laconic.nn.Compress("dct:chop=4", (3, 0, 8))


def test_a_model_with_a_codec_cannot_learn() -> None:
    compress, decompress = pair("dct:chop=4,keep=triangle", (1, 16, 16))
    model = nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), compress, decompress)
    model(ramp((2, 1, 16, 16))).square().mean().backward()
    assert model[0].weight.grad is not None
    assert model[0].weight.grad.abs().sum() > 0
