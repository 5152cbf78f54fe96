"""Convex piecewise-linear functions of one variable, for exact value functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

Piece = tuple[float, float]
"""A slope and the width over which it holds."""


@dataclass(frozen=True)
class Convex:
    """A convex piecewise-linear function on a closed interval.

    Attributes:
        start: left end of the interval.
        value: value at the left end.
        pieces: slopes, ascending, with their widths.
    """

    start: float
    value: float
    pieces: tuple[Piece, ...]

    @classmethod
    def through(
        cls, point: float, value: float, left: Sequence[Piece], right: Sequence[Piece]
    ) -> Self:
        """Build from a point, the pieces left of it (outermost first) and those right of it."""
        width = sum(width for _, width in left)
        drop = sum(slope * width for slope, width in left)
        return cls(point - width, value - drop, tuple(_merged([*left, *right])))

    @property
    def end(self) -> float:
        """Right end of the interval."""
        return self.start + sum(width for _, width in self.pieces)

    def at(self, x: float) -> float:
        """Value at `x`; outside the interval, that of the nearer end."""
        value, left = self.value, x - self.start
        for slope, width in self.pieces:
            if left <= width:
                return value + slope * max(left, 0.0)
            value += slope * width
            left -= width
        return value

    def reflected(self) -> "Convex":
        """The function of -x."""
        pieces = tuple((-slope, width) for slope, width in reversed(self.pieces))
        return Convex(-self.end, self.at(self.end), pieces)

    def convolved(self, other: "Convex") -> "Convex":
        """Infimal convolution, y -> min over u of self(y - u) + other(u): slopes merge in order."""
        pieces = _merged(sorted(self.pieces + other.pieces))
        return Convex(self.start + other.start, self.value + other.value, tuple(pieces))

    def restricted(self, low: float, high: float) -> "Convex":
        """The same function on the part of its interval that lies in [low, high]."""
        pieces, at = [], self.start
        for slope, width in self.pieces:
            overlap = min(at + width, high) - max(at, low)
            if overlap > 0.0:
                pieces.append((slope, overlap))
            at += width
        start = max(self.start, low)
        return Convex(start, self.at(start), tuple(pieces))

    def bent(self, at: float, left: float, right: float) -> "Convex":
        """Add `left` to the slopes left of `at` and `right` to those right of it, 0 at `at`."""
        pieces, where = [], self.start
        for slope, width in self.pieces:
            before = min(max(at - where, 0.0), width)
            pieces.extend([(slope + left, before), (slope + right, width - before)])
            where += width
        rise = left * (self.start - at) if self.start < at else right * (self.start - at)
        return Convex(self.start, self.value + rise, tuple(_merged(pieces)))


def _merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Drop empty pieces and join neighbours of equal slope."""
    merged: list[Piece] = []
    for slope, width in pieces:
        if merged and merged[-1][0] == slope:
            merged[-1] = (slope, merged[-1][1] + width)
        elif width > 0.0:
            merged.append((slope, width))
    return merged
