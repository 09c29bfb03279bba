"""Which codec each tensor of a state dict gets: rules by name, of which the first that fits decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from torch import Tensor

from laconic.chain import Codec
from laconic.chain import codec as to_codec
from laconic.encoded import Encoded
from laconic.errors import DataError, SpecError
from laconic.stage import Kind, TensorSpec

KEEP = "keep"
"""In place of a codec: these tensors stay as they are."""
_EXAMPLE = "*.weight=bound:rel=1e-3|lorenzo|huffman"


@dataclass(frozen=True)
class Rule:
    """A codec for the tensors whose names fit a pattern; None keeps them as they are.

    >>> rule = Rule.parse("*.weight=dct:chop=4")
    >>> rule.fits("layer.0.weight"), rule.fits("layer.0.bias"), str(rule)
    (True, False, '*.weight=dct:chop=4')
    """

    pattern: str
    codec: Codec | None

    @classmethod
    def of(cls, pattern: str, codec: str | Codec | None) -> Rule:
        if not isinstance(pattern, str) or not pattern:
            raise SpecError(f"expected a pattern of names, such as '*.weight', got {pattern!r}")
        return cls(pattern, None if codec is None or codec == KEEP else to_codec(codec))

    @classmethod
    def parse(cls, text: str) -> Rule:
        """From `PATTERN=SPEC` or `PATTERN=keep`."""
        pattern, equals, spec = (piece.strip() for piece in text.partition("="))
        if not (pattern and equals and spec):
            raise SpecError(f"'{text}' is not a rule: expected PATTERN=SPEC, such as '{_EXAMPLE}', or '*.bias={KEEP}'")
        return cls.of(pattern, spec)

    def fits(self, name: str) -> bool:
        return fnmatchcase(name, self.pattern)

    def __str__(self) -> str:
        return f"{self.pattern}={self.codec or KEEP}"


class Outcome(NamedTuple):
    """What became of a tensor."""

    item: Encoded | Tensor
    rule: Rule | None
    """The one that named it."""
    kept: str | None
    """Why it stayed as it was."""


@dataclass(frozen=True)
class Rules:
    """Rules in order. What none of them names is kept as it is."""

    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, given: Rules | Mapping[str, str | Codec | None] | str | Codec) -> Rules:
        """From codecs by pattern, in order; from a codec, for every tensor."""
        if isinstance(given, Rules):
            return given
        named = given if isinstance(given, Mapping) else {"*": given}
        return cls(tuple(Rule.of(pattern, codec) for pattern, codec in named.items()))

    def find(self, name: str) -> Rule | None:
        """The first rule that fits a name."""
        return next((rule for rule in self.rules if rule.fits(name)), None)

    def encode(self, name: str, x: Tensor) -> Outcome:
        """Compresses a tensor by its rule; or keeps it, where the rule's codec cannot take it, would lose the digits
        of whole numbers, or would not gain."""
        rule = self.find(name)
        if rule is None or rule.codec is None:
            return Outcome(x, rule, "no rule names it" if rule is None else f"by the rule '{rule}'")
        try:
            rule.codec.out_spec(TensorSpec.of(x))
            if is_lossy(rule.codec) and not (x.is_floating_point() or x.is_complex()):
                return Outcome(x, rule, f"'{rule.codec}' is lossy, and these are whole numbers")
            enc = rule.codec.encode(x.detach())
        except (SpecError, DataError) as error:
            return Outcome(x, rule, str(error))
        if enc.nbytes >= x.nbytes:
            return Outcome(x, rule, f"it has {x.nbytes:,} bytes as it is, and {enc.nbytes:,} compressed")
        return Outcome(enc, rule, None)


def is_lossy(codec: Codec) -> bool:
    """Whether what comes back may differ: only predictors and encoders are inverted exactly."""
    return any(stage.kind not in (Kind.predictor, Kind.encoder) for stage in codec.stages)


def compress(
    state: Mapping[str, Any], rules: Rules | Mapping[str, str | Codec | None] | str | Codec
) -> dict[str, Encoded | Tensor]:
    """A state dict for `laconic.save`: each tensor compressed by the first rule that fits its name, or kept.

    >>> import torch
    >>> state = torch.nn.Linear(64, 64).state_dict()
    >>> sorted(type(x).__name__ for x in compress(state, {"*bias": None, "*": "affine"}).values())
    ['Encoded', 'Tensor']
    """
    chosen = Rules.of(rules)
    for name, x in state.items():
        if not isinstance(x, Tensor):
            raise SpecError(f"'{name}': expected a tensor, got {type(x).__name__}. Keep what is not a tensor elsewhere")
    return {name: chosen.encode(name, x).item for name, x in state.items()}
