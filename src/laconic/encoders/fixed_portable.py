"""`bitpack:width=N` as modules that multiply, add and round down: for static compilers, which seldom have shifts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from laconic.ops.fixed import by_block, by_plane

OPERATORS = frozenset(
    {"to", "mul", "sub", "floor", "sum", "stack", "cat", "narrow", "unflatten", "flatten", "transpose", "unsqueeze"}
    | {"select"}
)


class _Weighted(nn.Module):
    """What both directions share: the weights of a byte's bits, which move with the module."""

    weights: Tensor

    def __init__(self, width: int, weights: list[float]) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("weights", torch.tensor(weights, dtype=torch.float32, device="cpu"), persistent=False)


class FixedEncode(_Weighted):
    """Codes to planes. Nothing is checked: of codes that do not fit, the lowest bits are kept."""

    def __init__(self, width: int) -> None:
        super().__init__(width, [2.0**i for i in range(8)])

    def forward(self, codes: Tensor) -> Tensor:
        planes, rest = [], codes.to(torch.float32)
        for _ in range(self.width):
            half = torch.floor(rest * 0.5)
            planes.append(self._bytes(rest - half * 2.0))
            rest = half
        return by_block(torch.stack(planes, -2)).to(torch.uint8)

    def _bytes(self, bits: Tensor) -> Tensor:
        """The sums of eight bits at a time, the last of fewer."""
        row = bits.shape[-1]
        whole, left = row // 8 * 8, row % 8
        sums = [(bits.narrow(-1, 0, whole).unflatten(-1, (row // 8, 8)) * self.weights).sum(-1)] if whole else []
        if left:
            sums.append((bits.narrow(-1, whole, left) * self.weights.narrow(0, 0, left)).sum(-1, keepdim=True))
        return sums[0] if len(sums) == 1 else torch.cat(sums, -1)


class FixedDecode(_Weighted):
    """The way back, to rows of so many codes."""

    def __init__(self, width: int, row: int, dtype: torch.dtype) -> None:
        super().__init__(width, [2.0**-i for i in range(8)])
        self.row = row
        self.dtype = dtype

    def forward(self, data: Tensor) -> Tensor:
        planes = by_plane(data, self.width).to(torch.float32)
        shifted = torch.floor(planes.unsqueeze(-1) * self.weights)
        bits = (shifted - torch.floor(shifted * 0.5) * 2.0).flatten(-2).narrow(-1, 0, self.row)
        signs = [-1.0 if self.dtype == torch.int8 and bit == self.width - 1 else 1.0 for bit in range(self.width)]
        weighted = [bits.select(-2, bit) * (sign * 2.0**bit) for bit, sign in enumerate(signs)]
        return torch.stack(weighted, -1).sum(-1).to(self.dtype)
