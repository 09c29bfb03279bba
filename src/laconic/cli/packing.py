"""What `laconic compress` does: a tensor after another, so that no more than one is in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

import laconic
from laconic import metrics
from laconic.checkpoint import Outcome, Rule, Rules
from laconic.cli import formats
from laconic.cli.console import progress
from laconic.cli.packing_report import Report, Row
from laconic.container import saving
from laconic.errors import SpecError


def compress_file(
    source: Path, target: Path, spec: str | None, only: Sequence[str] = (), rules: Sequence[str] = ()
) -> Report:
    """Writes the compressed file. One tensor that does not fit is an error; among many, it is kept."""
    chosen = _chosen(spec, only, rules)
    formats.check_output(target, source, any_suffix=True)
    with formats.reading(source) as found:
        if isinstance(found, Tensor):
            if only or rules:
                raise SpecError(
                    f"'{source}' holds one tensor: --only and --rule choose among those of .safetensors and .npz"
                )
            rows = _compress_one(found, target, chosen.rules[0])
        else:
            _check_named(source, found, chosen)
            rows = _compress_many(found, target, chosen)
    codec = None if spec is None else str(laconic.codec(spec))
    return Report.of(codec, chosen, source.stat().st_size, target.stat().st_size, rows)


def _chosen(spec: str | None, only: Sequence[str], rules: Sequence[str]) -> Rules:
    """`--rule` first, in order; then `--codec`, for `--only` these names or for all that are left."""
    if spec is None and (only or not rules):
        raise SpecError("expected --codec SPEC, or rules such as --rule '*.weight=dct:chop=4'. See: laconic codecs")
    last = [Rule.of(pattern, spec) for pattern in only or ["*"]] if spec is not None else []
    return Rules((*map(Rule.parse, rules), *last))


def _check_named(source: Path, found: Mapping[str, Tensor], rules: Rules) -> None:
    if not any(rules.find(name) for name in found):
        patterns = ", ".join(f"'{rule.pattern}'" for rule in rules.rules)
        some = ", ".join(list(found)[:5])
        raise SpecError(f"No tensor of '{source}' has a name like {patterns}. There are {len(found)}: {some}, ..")


def _compress_one(x: Tensor, target: Path, rule: Rule) -> list[Row]:
    if rule.codec is None:
        raise SpecError("expected a codec, such as --codec dct:chop=4: there is nothing else to keep")
    enc = rule.codec.encode(x)
    laconic.save(target, enc)
    return [_row(formats.SINGLE, x, Outcome(enc, rule, None))]


def _compress_many(found: Mapping[str, Tensor], target: Path, rules: Rules) -> list[Row]:
    rows = []
    with progress(len(found)) as begin, saving(target) as add:
        for name, x in found.items():
            begin(name)
            outcome = rules.encode(name, x)
            rows.append(_row(name, x, outcome))
            add(name, outcome.item)
    return rows


def _row(name: str, x: Tensor, outcome: Outcome) -> Row:
    named = (name, list(x.shape), str(x.dtype).removeprefix("torch."))
    rule = None if outcome.rule is None else str(outcome.rule)
    if isinstance(outcome.item, Tensor):
        return Row(*named, x.nbytes, x.nbytes, float("inf"), 0.0, rule, outcome.kept)
    after = sum(part.nbytes for part in outcome.item.parts.values())
    return Row(*named, x.nbytes, after, *_quality(x, laconic.decode(outcome.item)), rule)


def _quality(x: Tensor, restored: Tensor) -> tuple[float, float]:
    """PSNR and the largest error. What came back as it was needs no measuring, and may have no values at all."""
    if torch.equal(x, restored):
        return float("inf"), 0.0
    return metrics.psnr(x, restored), metrics.max_error(x, restored)
