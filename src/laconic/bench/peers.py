"""What runs in a race: laconic's codecs, and the peers they are held against. All write into given tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from laconic import chain
from laconic.bench.measure import Contender, WrongResult
from laconic.ops.axis import repeat_diagonally
from laconic.stage import TensorSpec
from laconic.transforms.bases import Dct

BLOCK = 8
INTO_ROOM = "the call, into a given tensor"


def dct(chop: int, keep: str = "square") -> str:
    """A codec's text.

    >>> dct(4), dct(7, "triangle")
    ('dct:chop=4', 'dct:chop=7,keep=triangle')
    """
    return str(chain.codec(f"dct:chop={chop},keep={keep}"))


def copying(x: Tensor) -> Contender:
    """`copy_` into warm memory: as fast as anything can be that reads and writes the tensor."""
    y = torch.empty_like(x)
    return Contender("copy_", "copy", lambda: y.copy_(x), TensorSpec.of(x), INTO_ROOM)


def codec_pair(chop: int, x: Tensor, keep: str = "square", name: str = "laconic") -> list[Contender]:
    """Encode and decode, by way of the front door."""
    codec, spec = chain.codec(dct(chop, keep)), TensorSpec.of(x)
    enc, y = codec.empty(spec, x.device), torch.empty_like(x)
    check = round_trip_check(name, x, lambda: y, chop, keep)
    text, about = str(codec), {"chop": chop, "encoded_bytes": enc.nbytes}
    return [
        Contender(name, "encode", lambda: codec.encode(x, out=enc), spec, INTO_ROOM, codec=text, parameters=about),
        Contender(name, "decode", lambda: chain.decode(enc, out=y), spec, INTO_ROOM, check, text, parameters=about),
    ]


class Dense:
    """The two products of the paper, each with one matrix for the whole axis:

    encode:  L [h, H] @ X [.., H, W] @ R [W, w]  -->  Y [.., h, w]
    decode:  L^T      @ Y            @ R^T       -->  X'
    """

    def __init__(self, chop: int, x: Tensor) -> None:
        rows = Dct.analysis(BLOCK)[:chop].to(x)
        self.left, right = (repeat_diagonally(rows, size // BLOCK) for size in x.shape[-2:])
        self.right = right.mT
        self.x = x
        self.after_left = x.new_empty(*x.shape[:-2], self.left.shape[0], x.shape[-1])
        self.coefficients = x.new_empty(*x.shape[:-2], self.left.shape[0], self.right.shape[1])
        self.after_left_back = x.new_empty(*x.shape[:-1], self.right.shape[1])
        self.restored = torch.empty_like(x)

    def encode(self) -> None:
        torch.matmul(self.left, self.x, out=self.after_left)
        torch.matmul(self.after_left, self.right, out=self.coefficients)

    def decode(self) -> None:
        torch.matmul(self.left.mT, self.coefficients, out=self.after_left_back)
        torch.matmul(self.after_left_back, self.right.mT, out=self.restored)


def dense_pair(chop: int, x: Tensor) -> list[Contender]:
    dense, spec = Dense(chop, x), TensorSpec.of(x)
    check = round_trip_check("dense", x, lambda: dense.restored, chop)
    about = {"chop": chop}
    return [
        Contender("dense", "encode", dense.encode, spec, INTO_ROOM, parameters=about),
        Contender("dense", "decode", dense.decode, spec, INTO_ROOM, check, parameters=about),
    ]


def round_trip_check(
    name: str, x: Tensor, restored: Callable[[], Tensor], chop: int, keep: str = "square"
) -> Callable[[], None]:
    """Holds some images, spread over all, against the definition of the codec."""

    def check() -> None:
        original, found = _some_images(x), _some_images(restored()).double()
        expected = restored_by_definition(original, chop, keep)
        tolerance = 1.0 if x.dtype == torch.uint8 else 1e-4 * (1 + float(original.abs().max()))
        error = float((found - expected).abs().max())
        if not error <= tolerance:
            raise WrongResult(
                f"{name} at {dct(chop, keep)} of {TensorSpec.of(x)} is off by {error:g}, {tolerance:g} at most "
                "was expected: it was not timed"
            )

    return check


def restored_by_definition(x: Tensor, chop: int, keep: str) -> Tensor:
    """What the codec gives back, block by block in float64: A^T ((A X A^T) * kept) A."""
    analysis = Dct.analysis(BLOCK).to(x.device)
    i = torch.arange(BLOCK, device=x.device)
    kept = (i < chop) & (i < chop)[:, None]
    if keep == "triangle":
        kept &= i + i[:, None] < chop
    blocks = x.double().unfold(-2, BLOCK, BLOCK).unfold(-2, BLOCK, BLOCK)
    blocks = analysis.mT @ ((analysis @ blocks @ analysis.mT) * kept) @ analysis
    y = blocks.transpose(-3, -2).reshape(x.shape)
    return y.round().clamp(0, 255) if x.dtype == torch.uint8 else y


def _some_images(x: Tensor) -> Tensor:
    images = x.reshape(-1, *x.shape[-2:])
    return images[torch.linspace(0, len(images) - 1, min(len(images), 16)).long()]
