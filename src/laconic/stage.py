"""The vocabulary of a chain: the four kinds of stage, what they are told, and what they hand on.

    x --transform--> floats --quantiser--> codes --predictor--> codes --encoder--> bytes

Each stage sees only the `main` tensor of the one before it, and keeps what else it needs in side parts of its own.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from laconic.errors import SpecError


class Kind(IntEnum):
    """The four kinds of stage, in the only order in which they may stand."""

    transform = 0
    quantiser = 1
    predictor = 2
    encoder = 3


class _ShapeAndDtype(NamedTuple):
    shape: tuple[int, ...]
    dtype: torch.dtype


class TensorSpec(_ShapeAndDtype):
    """A tensor's shape and dtype, without its data.

    >>> TensorSpec((2, 3), torch.float16)
    float16[2,3]
    """

    __slots__ = ()  # a tuple: every call makes several, compares them and looks them up

    def __new__(cls, shape: Iterable[int], dtype: torch.dtype) -> TensorSpec:
        return tuple.__new__(cls, (tuple(shape), dtype))

    @classmethod
    def of(cls, x: Tensor) -> TensorSpec:
        return tuple.__new__(cls, (tuple(x.shape), x.dtype))

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.numel * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class PartSpec:
    """What a part will be. Not `exact`: the data decide how much of it there is. Either it has one dimension, whose
    size is a capacity that they may not fill; or they choose one of `dtypes`, of which `tensor` has the widest."""

    tensor: TensorSpec
    exact: bool = True
    dtypes: tuple[torch.dtype, ...] = ()

    @classmethod
    def up_to(cls, count: int, dtype: torch.dtype) -> PartSpec:
        return cls(TensorSpec((count,), dtype), exact=False)

    @classmethod
    def one_of(cls, shape: tuple[int, ...], dtypes: tuple[torch.dtype, ...]) -> PartSpec:
        """The dtypes from narrow to wide; where there is no choice, nothing is left to the data."""
        exact = len(dtypes) == 1
        return cls(TensorSpec(shape, dtypes[-1]), exact, () if exact else dtypes)

    def allows(self, found: TensorSpec) -> bool:
        if self.exact:
            return found == self.tensor
        if self.dtypes:
            return found.shape == self.tensor.shape and found.dtype in self.dtypes
        return len(found.shape) == 1 and found.dtype == self.tensor.dtype and found.numel <= self.tensor.numel


@dataclass(frozen=True)
class PartsSpec:
    """What a stage gives: the tensor that the next stage reads, and side parts by name."""

    main: PartSpec
    side: Mapping[str, PartSpec] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether all of it is known before the data is."""
        return all(part.exact for part in (self.main, *self.side.values()))


class Parts(NamedTuple):
    """What a stage gave."""

    main: Tensor
    side: Mapping[str, Tensor] = MappingProxyType({})


def room_for(spec: TensorSpec, device: torch.device, room: Tensor | None = None) -> Tensor:
    """A tensor of this spec: the beginning of `room`, or new memory where there is none or too little of it."""
    if room is None or room.nbytes < spec.nbytes or not room.is_contiguous():
        return torch.empty(spec.shape, dtype=spec.dtype, device=device)
    return room.reshape(-1).view(torch.uint8)[: spec.nbytes].view(spec.dtype).view(spec.shape)


def written(
    x: TensorSpec,
    device: torch.device,
    out: Tensor | None,
    write: Callable[[Tensor], object],
    make: Callable[[TensorSpec, torch.device], Tensor] = room_for,
) -> Tensor:
    """For `decode`: a tensor of spec `x` that `write` fills. It is given contiguous memory: that of `out` where it is
    so, else what `make` makes, which is then copied to `out` when given."""
    target = out if out is not None and out.is_contiguous() else make(x, device)
    write(target.detach())
    return target if out is None or target is out else out.copy_(target)


class Context:
    """What a stage may ask about the codec's own input, what the caller knows of it, and what a batch shares."""

    def __init__(
        self, input: Tensor, shared: Mapping[str, Tensor] = MappingProxyType({}), rows: Tensor | None = None
    ) -> None:
        self.input = input
        self.shared = shared
        self.rows = rows
        """The look-up index that each row of the input came from, where the caller gave them."""


class Stage(ABC):
    """One step of a chain. A subclass is a frozen dataclass, and its fields are its whole configuration:
    the text of a codec is parsed into them and printed from them."""

    name: ClassVar[str]
    kind: ClassVar[Kind]
    version: ClassVar[int] = 1
    """Of the bits this stage writes. Raised when they change; `decode` is told which one it reads."""
    example: ClassVar[str]
    """A spec that works, shown where one did not."""
    operators: ClassVar[frozenset[str]] = frozenset()
    """The ATen operators that the portable modules may export to, and no others."""
    uses_rows: ClassVar[bool] = False
    """Whether it has a use for `codec.encode(x, rows=...)`."""

    @abstractmethod
    def out_spec(self, x: TensorSpec) -> PartsSpec:
        """What `encode` will give for such an input. Sees no data; raises SpecError for what it cannot take."""

    @abstractmethod
    def encode(self, x: Tensor, ctx: Context, out: Parts | None = None) -> Parts:
        """Encodes; into the tensors of `out` when given, or the beginning of those whose size the data decide."""

    @abstractmethod
    def decode(self, parts: Parts, x: TensorSpec, version: int, out: Tensor | None = None) -> Tensor:
        """Gives back a tensor of spec `x`, from parts that `version` of this stage wrote; into `out` when given."""

    def encode_many(self, batch: Sequence[Tensor], contexts: Sequence[Context]) -> list[Parts]:
        """What `encode` gives for each. Worth a body of its own where many small tensors can be one call."""
        return [self.encode(x, ctx) for x, ctx in zip(batch, contexts, strict=True)]

    def decode_many(self, batch: Sequence[Parts], specs: Sequence[TensorSpec], version: int) -> list[Tensor]:
        """What `decode` gives for each."""
        return [self.decode(parts, x, version) for parts, x in zip(batch, specs, strict=True)]

    def splits(self, x: TensorSpec) -> bool:
        """Whether it treats each sample along the first dimension on its own, and so one alone or more together."""
        return True

    def resolved(self, batch: Sequence[Tensor]) -> Stage:
        """For the last stage of a chain: the one that does its work for these tensors, which have one spec. What is
        stored names that one, and its own `encode` is never called."""
        return self

    def choices(self) -> Sequence[Stage]:
        """What `resolved` may give."""
        return (self,)

    @property
    def defers(self) -> bool:
        """Whether it leaves its work to another."""
        return type(self).resolved is not Stage.resolved

    def share(self, batch: Sequence[Tensor]) -> Mapping[str, Tensor]:
        """For the last stage of a chain: side parts that serve all of a batch, such as a code book. Its `encode`
        finds them in `ctx.shared`, and gives these very tensors back among its own."""
        return {}

    def portable(self, x: TensorSpec, tiling: Tiling) -> tuple[nn.Module, nn.Module]:
        """The pure-torch pair (encode: x -> parts in order, decode: parts -> x) that static compilers take."""
        raise SpecError(f"{self} has no portable form for laconic.nn: it does not give parts of fixed size")

    def refuse_empty(self, x: TensorSpec) -> None:
        """For `out_spec` of transforms: nothing has no frequencies."""
        if x.numel == 0:
            raise SpecError(f"{self}: expected at least one element, got {x}")

    def options(self, *, spell_defaults: bool) -> dict[str, Any]:
        """The fields to print: all that differ from their default, or all of them. None means 'not given'."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # every concrete stage is a dataclass
        values = {f.name: getattr(self, f.name) for f in fields}
        kept = [f for f in fields if spell_defaults or values[f.name] != f.default]
        return {option_name(f): values[f.name] for f in kept if values[f.name] is not None}

    def text(self, *, spell_defaults: bool = False) -> str:
        """This stage as a person would write it, or with every field spelled out, as files keep it."""
        options = self.options(spell_defaults=spell_defaults)
        return self.name + ":" * bool(options) + ",".join(f"{k}={_print(v)}" for k, v in options.items())

    def __str__(self) -> str:
        return self.text()


class Tiling(NamedTuple):
    """How a portable module cuts its work: `serial x serial` tiles one after another, and within a tile
    products with matrices that cover `span` pixels (None: the whole tile, one dense product)."""

    serial: int = 1
    span: int | None = None


def option_name(field: dataclasses.Field[Any]) -> str:
    """How the text of a codec calls a field: by its name, unless its metadata say otherwise."""
    return str(field.metadata.get("option", field.name))


def _print(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
