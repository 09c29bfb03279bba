"""The one idea: a codec is a chain of stages.

encode:  x --stage 0--> .. --stage n--> main        each stage may leave side parts beside
decode:  main --stage n--> .. --stage 0--> x'       walks the specs of every boundary backwards
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from laconic import grammar, registry
from laconic.batch import EncodedBatch
from laconic.checks import check_part, check_parts, check_tensor, check_writable
from laconic.encoded import Encoded, Link, boundary_specs, has_fixed_size, promised_parts, promises
from laconic.encoders.plain import is_constant
from laconic.errors import SpecError
from laconic.run import Run, all_over, decode_all, decoded, resolve
from laconic.stage import Context, Kind, Parts, PartSpec, PartsSpec, Stage, TensorSpec


@dataclass(frozen=True)
class Codec:
    """A chain of stages. Holds no state; equal if its stages are.

    >>> dct = codec("dct:chop=4")
    >>> enc = dct.encode(torch.ones(3, 64, 64))
    >>> enc.parts["main"].shape
    torch.Size([3, 32, 32])
    >>> torch.allclose(decode(enc), torch.ones(3, 64, 64))
    True
    """

    stages: tuple[Stage, ...]
    links: tuple[Link, ...] = field(init=False, repr=False, compare=False)
    """The stages with the versions they write today."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise SpecError("A codec needs at least one stage, such as 'dct:chop=4'")
        grammar.check_order(self.stages)
        object.__setattr__(self, "links", tuple(Link(stage, stage.version) for stage in self.stages))

    def __str__(self) -> str:
        return "|".join(str(stage) for stage in self.stages)

    def out_spec(self, x: TensorSpec) -> tuple[PartsSpec, ...]:
        """What each stage gives for such a tensor. Raises SpecError for what the codec cannot take."""
        return promises(self.links, x)

    def empty(self, spec: TensorSpec, device: torch.device | str | None = None) -> Encoded:
        """Room for what `encode` gives for such a tensor, to be reused as its `out=`. Where the data decide how
        much that is: for the main part, as large as it can be."""
        specs = boundary_specs(self.links, spec)
        promised = {name: part.tensor for name, part in self._room(spec).items()}
        parts = {name: torch.empty(s.shape, dtype=s.dtype, device=device) for name, s in promised.items()}
        return Encoded(self.links, specs, parts)

    def _room(self, spec: TensorSpec) -> Mapping[str, PartSpec]:
        promised = promised_parts(self.links, boundary_specs(self.links, spec))
        return promised if has_fixed_size(self.links, spec) else {"main": promised["main"]}

    def encode(self, x: Tensor, out: Encoded | None = None, *, rows: Tensor | None = None) -> Encoded:
        """Compresses a tensor; into `out`, from `empty`, without allocating what is stored.

        `rows`, for chains with the stage `rows`, is the look-up index that each row of x came from.
        Where the codec has a fixed size, `out` itself is filled and given back. Otherwise what is given back lies at
        the beginning of its memory, and `out` remains the room for the next. Whatever that would be larger than the
        tensor itself is stored as it is, and what does not vary is stored once: see `enc.chain`.
        """
        check_tensor(x)
        self._check_hint(rows)
        spec = TensorSpec.of(x)
        fixed = has_fixed_size(self.links, spec)
        if out is not None:
            self._check_out(out, spec, x)
        if self._is_constant(x):
            return _as_plain("constant", x, out)
        enc = Run(x, rows).over(self.links, out).encoded(self.links)
        if out is None or not fixed:
            return enc if fixed else self._no_larger(x, enc, out)
        for name, part in enc.parts.items():
            if part is not out.parts[name]:  # a stage before the last gave it in memory of its own
                out.parts[name].copy_(part)
        torch.autograd.graph.increment_version(out.parts.values())
        return out

    def _no_larger(
        self, x: Tensor, enc: Encoded, out: Encoded | None, shared: Mapping[str, Tensor] = MappingProxyType({})
    ) -> Encoded:
        """What was encoded, or the tensor as it is where that takes fewer bytes. What is `shared` counts for nobody."""
        others = {id(part) for part in shared.values()}
        if sum(part.nbytes for part in enc.parts.values() if id(part) not in others) > x.nbytes:
            return _as_plain("raw", x, out)
        if out is not None:
            torch.autograd.graph.increment_version(out.parts.values())
        return enc

    def encode_many(self, tensors: Iterable[Tensor], *, rows: Iterable[Tensor] | None = None) -> EncodedBatch:
        """Compresses many tensors in one call: large ones side by side on all threads, small ones a stage for all of
        them at once; into one allocation. What can serve all of them, such as a code book, is stored once. The shapes
        and dtypes may differ. `rows` holds for each tensor what `encode` takes."""
        batch = list(tensors)
        hints: list[Tensor | None] = list(rows) if rows is not None else [None] * len(batch)
        if len(hints) != len(batch):
            raise SpecError(f"rows= has {len(hints)} tensors; expected one for each of {len(batch)}")
        for x, hint in zip(batch, hints, strict=True):
            check_tensor(x)
            self._check_hint(hint)
        for spec in {TensorSpec.of(x) for x in batch}:
            self.out_spec(spec)
        return EncodedBatch.of(self._encode_all(batch, [Run(*pair) for pair in zip(batch, hints, strict=True)]))

    def _encode_all(self, batch: list[Tensor], runs: list[Run]) -> list[Encoded]:
        nbytes = sum(x.nbytes for x in batch)
        plain = [self._is_constant(x) for x in batch]
        varied = [run for run, constant in zip(runs, plain, strict=True) if not constant]
        if self._looks_ahead:
            all_over(varied, self.links[:-1], nbytes)
            self._share(varied)
        all_over(varied, self.links, nbytes)
        return [
            _as_plain("constant", run.context.input, None) if constant else self._finished(run)
            for run, constant in zip(runs, plain, strict=True)
        ]

    @property
    def _looks_ahead(self) -> bool:
        """Whether the last stage has a use for a whole batch."""
        last = self.stages[-1]
        return last.defers or type(last).share is not Stage.share

    def _share(self, runs: Sequence[Run]) -> None:
        """Finds what does the work of the last stage, and what each of those shares among its tensors."""
        last = self.stages[-1]
        if last.defers:
            resolve(runs, self.links)
        by_stage: dict[Stage, list[Run]] = {}
        for run in runs:
            by_stage.setdefault((run.own or self.links)[-1].stage, []).append(run)
        for stage, some in by_stage.items():
            shared = stage.share([run.main for run in some]) if len(some) > 1 else {}
            for run in some:
                run.context.shared = shared

    def _finished(self, run: Run) -> Encoded:
        enc, x = run.encoded(self.links), run.context.input
        return enc if has_fixed_size(self.links, enc.spec) else self._no_larger(x, enc, None, run.context.shared)

    def decode_many(self, batch: Iterable[Encoded]) -> list[Tensor]:
        """The tensors that `encode_many` took."""
        items = list(batch)
        for enc in items:
            self._check_own(enc)
        return decode_all(items)

    def roundtrip(self, x: Tensor) -> Tensor:
        """What a receiver would see of x. Differentiable: quantisers pass gradients straight through."""
        check_tensor(x)
        if has_fixed_size(self.links, TensorSpec.of(x)):
            return _roundtrip(self.stages, x, Context(x))
        enc = self.encode(x.detach())
        stages = tuple(link.stage for link in enc.chain)
        if self._may_be(stages) and stages[0].kind is Kind.transform:
            return _roundtrip(stages, x, Context(x))
        return _StraightThrough.apply(x, decode(enc))  # type: ignore[no-any-return, no-untyped-call]

    def decode(self, enc: Encoded, out: Tensor | None = None) -> Tensor:
        """`laconic.decode`, for what this very codec encoded."""
        self._check_own(enc)
        return decode(enc, out)

    def _check_own(self, enc: Encoded) -> None:
        if enc.chain is self.links:
            return
        stages = tuple(link.stage for link in enc.chain)
        if not self._may_be(stages) and not all(stage.name in ("raw", "constant") for stage in stages):
            raise SpecError(f"'{self}' cannot decode {enc!r}; laconic.decode can: what is encoded describes itself")

    def _may_be(self, stages: tuple[Stage, ...]) -> bool:
        """Whether these are its own, but for what the last one may leave its work to."""
        return stages == self.stages or (stages[:-1] == self.stages[:-1] and stages[-1] in self.stages[-1].choices())

    def _is_constant(self, x: Tensor) -> bool:
        return x.numel() > 1 and not has_fixed_size(self.links, TensorSpec.of(x)) and is_constant(x)

    def _check_hint(self, rows: Tensor | None) -> None:
        if rows is not None and not any(stage.uses_rows for stage in self.stages):
            raise SpecError(f"'{self}' has no use for rows=. Try 'bound:rel=1e-2|rows|huffman'")

    def _check_out(self, out: Encoded, spec: TensorSpec, x: Tensor) -> None:
        if not isinstance(out, Encoded) or (out.chain, out.spec, out.device) != (self.links, spec, x.device):
            raise SpecError(
                f"out= is {out!r}; expected room for '{self}' of {spec} on {x.device}. "
                "Make it with codec.empty(TensorSpec.of(x), x.device)"
            )
        promised = self._room(spec)
        for name in promised:
            check_part(name, promised[name], out.parts.get(name))
            check_writable(out.parts[name], x)


def codec(spec: str | Codec) -> Codec:
    """The codec that a line of text describes.

    >>> print(codec("dct:chop=4,block=8|affine:bits=8"))
    dct:chop=4|affine
    """
    if isinstance(spec, Codec):
        return spec
    if not isinstance(spec, str):
        raise SpecError(f"expected a codec or its text, such as 'dct:chop=4', got {type(spec).__name__}")
    return Codec(grammar.parse(spec))


def encode(x: Tensor, spec: str | Codec) -> Encoded:
    """Compresses a tensor with the codec that `spec` names."""
    return codec(spec).encode(x)


def decode(enc: Encoded, out: Tensor | None = None) -> Tensor:
    """The tensor that went in, as nearly as the codec kept it; into `out` when given."""
    if not isinstance(enc, Encoded):
        raise SpecError(f"expected an Encoded, got {type(enc).__name__}")
    check_parts(enc)
    if out is not None:
        if (TensorSpec.of(out), out.device) != (enc.spec, enc.device):
            raise SpecError(f"out= is {TensorSpec.of(out)} on {out.device}; expected {enc.spec} on {enc.device}")
        for part in enc.parts.values():
            check_writable(out, part)
    x = decoded(enc, out)
    if out is not None:
        torch.autograd.graph.increment_version(out)
    return x


def _as_plain(name: str, x: Tensor, out: Encoded | None) -> Encoded:
    """An Encoded of the stage `raw` or `constant`, in the memory of `out` where that is given."""
    link = Link(registry.find(name)(), 1)
    room = None if out is None else Parts(out.parts["main"])
    parts = link.stage.encode(x.detach(), Context(x), room)
    return Encoded((link,), (TensorSpec.of(x), TensorSpec.of(parts.main)), {"main": parts.main})


def _roundtrip(stages: Sequence[Stage], x: Tensor, context: Context) -> Tensor:
    if not stages:
        return x
    first, rest = stages[0], stages[1:]
    if first.kind is not Kind.transform:
        restored = _there_and_back(stages, x.detach(), context)
        return _StraightThrough.apply(x, restored)  # type: ignore[no-any-return, no-untyped-call]
    parts = first.encode(x, context)
    main = _roundtrip(rest, parts.main, context)
    return first.decode(Parts(main, parts.side), TensorSpec.of(x), first.version)


def _there_and_back(stages: Sequence[Stage], x: Tensor, context: Context) -> Tensor:
    chain = []
    for stage in stages:
        parts = stage.encode(x, context)
        chain.append((stage, parts.side, TensorSpec.of(x)))
        x = parts.main
    for stage, side, spec in reversed(chain):
        x = stage.decode(Parts(x, side), spec, stage.version)
    return x


class _StraightThrough(torch.autograd.Function):
    """What came back in place of x; its gradient is that of doing nothing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, restored: Tensor) -> Tensor:
        return restored

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None
