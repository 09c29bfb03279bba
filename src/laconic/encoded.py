"""What a codec gives: the parts, and all that is needed to read them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch.utils.data._utils.collate import default_collate_fn_map

from laconic.errors import CorruptData, SpecError, VersionError
from laconic.memo import remembered
from laconic.stage import PartSpec, PartsSpec, Stage, TensorSpec


class Link(NamedTuple):
    """One stage of a chain as it ran: every field of it, and the version of the bits it wrote."""

    stage: Stage
    version: int

    def promise(self, x: TensorSpec) -> PartsSpec:
        """What it gave for such a tensor; VersionError where this laconic does not know the bits."""
        if not 1 <= self.version <= self.stage.version:
            raise VersionError(
                f"'{self.stage.name}' wrote version {self.version} of its bits; "
                f"this laconic reads 1 to {self.stage.version}. Upgrade it"
            )
        return self.stage.out_spec(x)

    def __str__(self) -> str:
        return f"{self.stage.text(spell_defaults=True)}@{self.version}"


@dataclass(frozen=True, eq=False)
class Encoded:
    """A compressed tensor that describes itself: `laconic.decode(enc)` needs nothing else.

    `specs[0]` is the tensor that went in, `specs[i + 1]` what stage `i` gave; `parts` holds the last of these as
    "main", and stage `i`'s side parts as "i.name".
    """

    chain: tuple[Link, ...]
    specs: tuple[TensorSpec, ...]
    parts: Mapping[str, Tensor]

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype of the tensor that went in, and that decoding gives back."""
        return self.specs[0]

    @property
    def device(self) -> torch.device:
        return self.parts["main"].device

    @property
    def nbytes(self) -> int:
        """What this takes on the wire, header and side parts included: `len(self.to_bytes())`."""
        from laconic.wire import wire_size

        return wire_size(self)

    @property
    def ratio(self) -> float:
        """Bytes that went in over bytes that came out, every one of them counted."""
        return self.spec.nbytes / self.nbytes

    def to_bytes(self) -> bytes:
        """One buffer for the wire or a file; `Encoded.from_bytes` reads it."""
        from laconic.wire import to_bytes

        return to_bytes(self)

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Encoded:
        """Reads what `to_bytes` wrote; CorruptData if it is anything else. Copies: `data` may be reused."""
        from laconic.wire import from_bytes

        return from_bytes(data)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Encoded:
        return self._map(lambda part: part.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Encoded:
        return self._map(lambda part: part.pin_memory())

    def _map(self, change: Any) -> Encoded:
        return replace(self, parts={name: change(part) for name, part in self.parts.items()})

    def __getitem__(self, index: int | slice) -> Encoded:
        """A sample, or some, along the first dimension, without decoding. Fixed-size codecs only."""
        if not isinstance(index, int | slice):
            raise SpecError(f"expected a whole number or a slice, got {index!r}. Decode first for more")
        whole, split = split_parts(self.chain, self.spec)
        shape = torch.empty(self.spec.shape, device="meta")[index].shape
        item = TensorSpec(tuple(shape), self.spec.dtype)
        parts = {name: self.parts[name][index] if name in split else self.parts[name] for name in whole}
        if part_specs(self.chain, item, "The sample") != {name: TensorSpec.of(part) for name, part in parts.items()}:
            raise SpecError(f"{self!r} cannot be indexed: its parts do not split by sample")
        return Encoded(self.chain, boundary_specs(self.chain, item), parts)

    def __bool__(self) -> bool:
        return True  # whatever its length

    def __len__(self) -> int:
        return self.spec.shape[0]

    def __iter__(self) -> Iterator[Encoded]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        chain = "|".join(str(link.stage) for link in self.chain)
        return f"Encoded({chain!r}, {self.spec}, {self.nbytes:,} bytes, {self.ratio:.2f}x)"


def stack(items: Sequence[Encoded]) -> Encoded:
    """Batches encoded samples of one codec and shape along a new first dimension: a `collate_fn`."""
    if not items:
        raise SpecError("stack needs at least one Encoded, got none")
    first = items[0]
    for item in items:
        if not isinstance(item, Encoded):
            raise SpecError(f"stack needs Encoded, got {type(item).__name__}")
        if (item.chain, item.specs) != (first.chain, first.specs):
            raise SpecError(f"stack needs one codec and one shape, got {first!r} and {item!r}")
    spec = TensorSpec((len(items), *first.spec.shape), first.spec.dtype)
    expected = part_specs(first.chain, spec, "These cannot be stacked: the result")
    _check_splits(first.chain, spec, "These cannot be stacked")
    parts = {name: _stack_part(name, [item.parts[name] for item in items], expected[name]) for name in first.parts}
    return Encoded(first.chain, boundary_specs(first.chain, spec), parts)


@remembered
def promises(chain: tuple[Link, ...], x: TensorSpec) -> tuple[PartsSpec, ...]:
    """What each stage gives when such a tensor goes in, known before the data is."""
    promised = []
    for link in chain:
        promised.append(link.promise(x))
        x = promised[-1].main.tensor
    return tuple(promised)


def boundary_specs(chain: tuple[Link, ...], x: TensorSpec) -> tuple[TensorSpec, ...]:
    """The spec before the first stage, and after each, as far as they are promised."""
    return (x, *(promised.main.tensor for promised in promises(chain, x)))


@remembered
def promised_parts(chain: tuple[Link, ...], specs: tuple[TensorSpec, ...]) -> Mapping[str, PartSpec]:
    """What every part must be, by its name in `Encoded.parts`, given the tensors at each boundary. Raises where
    these are not what the stages would have given."""
    if not chain or len(specs) != len(chain) + 1:
        raise CorruptData(f"expected stages and a spec more than those, found {len(chain)} and {len(specs)}")
    side: dict[str, PartSpec] = {}
    for i, (link, before, after) in enumerate(zip(chain, specs, specs[1:], strict=False)):
        promised = link.promise(before)
        if not promised.main.allows(after):
            raise CorruptData(f"what '{link.stage}' gave: expected {promised.main.tensor}, found {after}")
        side |= {f"{i}.{name}": part for name, part in promised.side.items()}
    return {"main": PartSpec(specs[-1]), **side}


@remembered
def split_parts(chain: tuple[Link, ...], x: TensorSpec) -> tuple[dict[str, TensorSpec], set[str]]:
    """All parts, and the names of those that go by sample: so many samples more make them as much longer."""
    whole = part_specs(chain, x, "This cannot be indexed: it")
    _check_splits(chain, x, "This cannot be indexed")
    many = 2**20 + 1  # one for several samples does not pass for one for all, nor a few for each
    more = TensorSpec((x.shape[0] + many, *x.shape[1:]), x.dtype) if x.shape else x
    longer = part_specs(chain, more, "This cannot be indexed: it")
    split = set()
    for name, part in whole.items():
        if longer[name].shape == (more.shape[0], *part.shape[1:]) and part.shape[:1] == x.shape[:1]:
            split.add(name)
        elif name == "main" or longer[name] != part:
            raise SpecError(f"This cannot be indexed: '{name}', {part}, does not split by the samples of {x}")
    return whole, split


def _check_splits(chain: tuple[Link, ...], x: TensorSpec, refusal: str) -> None:
    for link, before in zip(chain, boundary_specs(chain, x), strict=False):
        if not link.stage.splits(before):
            raise SpecError(f"{refusal}: '{link.stage}' foretells the samples of {before} from each other")


@remembered
def has_fixed_size(chain: tuple[Link, ...], x: TensorSpec) -> bool:
    """Whether every part's spec is known before the data is."""
    return all(promised.exact for promised in promises(chain, x))


def part_specs(chain: tuple[Link, ...], x: TensorSpec, refusal: str) -> dict[str, TensorSpec]:
    """Every part's spec, known before the data is; SpecError where one depends on it."""
    if not has_fixed_size(chain, x):
        raise SpecError(f"{refusal} has no fixed size: it depends on the data")
    return {name: part.tensor for name, part in promised_parts(chain, boundary_specs(chain, x)).items()}


def _stack_part(name: str, pieces: list[Tensor], expected: TensorSpec) -> Tensor:
    if (len(pieces), *pieces[0].shape) == expected.shape:
        return torch.stack(pieces)
    if tuple(pieces[0].shape) == expected.shape and all(torch.equal(piece, pieces[0]) for piece in pieces):
        return pieces[0]
    raise SpecError(
        f"These cannot be stacked: each has its own '{name}' where the codec keeps one for all. "
        "Use an option such as per=channel, which keeps one for each"
    )


def _flatten(enc: Encoded) -> tuple[list[Tensor], Any]:
    return list(enc.parts.values()), (enc.chain, enc.specs, tuple(enc.parts))


def _unflatten(parts: Any, context: Any) -> Encoded:
    chain, specs, names = context
    return Encoded(chain, specs, dict(zip(names, parts, strict=True)))


pytree.register_pytree_node(Encoded, _flatten, _unflatten, serialized_type_name="laconic.Encoded")
default_collate_fn_map[Encoded] = lambda batch, *, collate_fn_map=None: stack(batch)
