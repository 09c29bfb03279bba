"""Which tensor gets which codec, and which had better get none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import laconic
from laconic import checkpoint
from laconic.checkpoint import Rule, Rules


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), torch.nn.Embedding(50, 64))


def test_a_model_does_not_come_back(tmp_path: Path) -> None:
    before, after = model(), model()
    torch.nn.init.zeros_(after[0].weight)
    rules = {"2.*": "bound:rel=1e-3,per=row|huffman", "*.weight": "affine:bits=8,per=row"}
    laconic.save(tmp_path / "m.laconic.safetensors", checkpoint.compress(before.state_dict(), rules))
    state = laconic.load(tmp_path / "m.laconic.safetensors", decode=True)
    assert all(type(x) is torch.Tensor for x in state.values())
    after.load_state_dict(state)
    for (name, a), b in zip(before.state_dict().items(), after.state_dict().values(), strict=True):
        worst = float((a.double() - b.double()).abs().max())
        assert worst == 0 if name.endswith("bias") else worst <= 0.01, name


def test_a_single_tensor_is_decoded_on_loading(tmp_path: Path) -> None:
    x = torch.randn(16, 16)
    enc = laconic.encode(x, "affine")
    laconic.save(tmp_path / "x", enc)
    assert torch.equal(laconic.load(tmp_path / "x", decode=True), laconic.decode(enc))


def test_a_later_rule_overrides_the_first() -> None:
    rules = Rules.of({"head.*": None, "*.weight": "affine", "*": "zstd"})
    chosen = {name: str(rules.find(name)) for name in ("head.weight", "body.weight", "body.bias")}
    assert chosen == {"head.weight": "head.*=keep", "body.weight": "*.weight=affine", "body.bias": "*=zstd"}
    assert Rules.of({"*.weight": "affine"}).find("weight") is None


def test_a_codec_alone_is_for_all_and_rules_are_themselves() -> None:
    rules = Rules.of("affine")
    assert rules.find("any.thing") == Rule("*", laconic.codec("affine"))
    assert Rules.of(rules) is rules
    assert Rules.of(laconic.codec("affine")) == rules


@pytest.mark.parametrize("text", ["*.weight", "=affine", "*.weight=", "", "*.weight=afine", "w=keep:bits=8"])
def test_what_is_no_rule_is_taken_for_one(text: str) -> None:
    with pytest.raises(laconic.SpecError, match=r"not a rule|no stage"):
        Rule.parse(text)


@pytest.mark.parametrize("pattern", ["", None, 3])
def test_a_pattern_without_a_text_is_taken(pattern: object) -> None:
    with pytest.raises(laconic.SpecError, match="pattern"):
        Rules.of({pattern: "affine"})


@pytest.mark.parametrize(
    ("x", "spec", "why"),
    [
        (torch.arange(5000), "bound:rel=1e-3", "expected floats"),
        (torch.arange(64 * 64, dtype=torch.uint8).reshape(64, 64), "dct:chop=4", "lossy, and these are whole numbers"),
        (torch.randn(9), "dct:chop=4", "at least two dimensions"),
        (torch.randn(4), "affine", "bytes as it is, and"),
        (torch.randn(5000), "lz4", "bytes as it is, and"),
        (torch.full((64, 64), torch.nan), "affine", "NaN"),
        (torch.empty(0, 8), "zstd", "bytes as it is, and"),
        (torch.randn(64, 64), "keep", "by the rule"),
    ],
)
def test_what_had_better_stay_is_compressed(x: torch.Tensor, spec: str, why: str) -> None:
    item, rule, kept = Rules.of({"x": spec}).encode("x", x)
    assert item is x
    assert rule is not None
    assert why in str(kept)


def test_whole_numbers_are_not_compressed_without_loss() -> None:
    x = torch.arange(5000)
    item, _, kept = Rules.of("zstd").encode("steps", x.to(torch.int32))
    assert kept is None
    assert torch.equal(laconic.decode(item), x.to(torch.int32))


def test_a_parameter_takes_its_gradient_along() -> None:
    x = torch.nn.Parameter(torch.randn(64, 64))
    (enc,) = checkpoint.compress({"w": x}, "dct:chop=4").values()
    assert not enc.parts["main"].requires_grad


def test_what_is_no_tensor_is_lost() -> None:
    with pytest.raises(laconic.SpecError, match="'lr': expected a tensor, got float"):
        checkpoint.compress({"lr": 0.1}, "affine")
