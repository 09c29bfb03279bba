"""Names beside points, moved until none covers another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

SIZE = 6.5
_WIDTH, _HEIGHT, _POINT = 0.56 * SIZE, 1.15 * SIZE, 4.0
"""Of a letter, and of a marker's half, in points."""
_DIRECTIONS = ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 0), (-1, 1), (-1, -1))


class Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)

    def outside(self, other: Box) -> float:
        """The area that sticks out of another."""
        return (self.right - self.left) * (self.top - self.bottom) - self.overlap(other)


class Label(NamedTuple):
    text: str
    x: float
    y: float
    colour: str
    bold: bool


def place(ax: Axes, labels: Sequence[Label]) -> None:
    """Call it when the limits are final, and the figure was laid out once."""
    scale = 72 / ax.figure.dpi
    found = ax.get_window_extent()
    frame = Box(*(float(edge) * scale for edge in (found.x0, found.y0, found.x1, found.y1)))
    points = [ax.transData.transform((label.x, label.y)) * scale for label in labels]
    taken = [Box(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]
    for label, (x, y) in zip(labels, points, strict=True):
        _, box = min((_cost(box, distance, taken, frame), box) for distance, box in _places(label.text, x, y))
        taken.append(box)
        _write(ax, label, ((box.left + box.right) / 2 - x, (box.bottom + box.top) / 2 - y))


def _places(text: str, x: float, y: float) -> Iterator[tuple[int, Box]]:
    """Around a point, near ones first."""
    width, height = len(text) * _WIDTH, _HEIGHT
    for distance in range(8):
        gap = 5 + 7 * distance
        for across, up in _DIRECTIONS:
            middle = x + across * (gap + width / 2), y + up * (gap + height / 2)
            yield (
                distance,
                Box(middle[0] - width / 2, middle[1] - height / 2, middle[0] + width / 2, middle[1] + height / 2),
            )


def _cost(box: Box, distance: int, taken: Sequence[Box], frame: Box) -> float:
    return 20 * distance + 10 * sum(box.overlap(other) for other in taken) + 100 * box.outside(frame)


def _write(ax: Axes, label: Label, offset: tuple[float, float]) -> None:
    far = max(abs(offset[0]) - len(label.text) * _WIDTH / 2, abs(offset[1]) - _HEIGHT / 2) > 6
    ax.annotate(
        label.text,
        (label.x, label.y),
        xytext=offset,
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=SIZE,
        color=label.colour,
        fontweight="bold" if label.bold else "normal",
        arrowprops={"arrowstyle": "-", "lw": 0.4, "color": label.colour, "shrinkA": 0, "shrinkB": 2} if far else None,
    )
