"""From pieces to groups: pieces without a valley between them are one group.

BIC counts Gaussian pieces; one skewed or curved cloud has several. The pair with the lowest valley is merged first,
one pair at a time: two pieces that are not neighbours always show a gap, since the rows between them belong to a third.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ilk.fitting.recall import recall_by
from ilk.selection.projection import Projection
from ilk.selection.valley import Ground
from ilk.store.objects import key_of
from ilk.table.block import Array

Pieces = tuple[int, ...]
Pair = tuple[Pieces, Pieces]
FEW_ROWS = 10  # fewer cannot show a valley
N_BINS = 24
MANY_GROUPS, N_NEAREST = 24, 5  # beyond, valleys are measured between each group and its nearest few


@dataclass(frozen=True)
class ProjectionValley:
    """What is kept of a projection."""

    valley: float
    gap: float
    fewest: float

    @classmethod
    def of(cls, projection: Projection) -> ProjectionValley:
        return cls(projection.valley, projection.gap, projection.fewest)


@dataclass(frozen=True)
class Level:
    """A step of the merge: so many groups, the lowest valley among them, and the two groups that it parts."""

    groups: int
    valley: float
    merged: Pair

    def to_dict(self) -> dict[str, Any]:
        return {
            "groups": self.groups,
            "separation": self.valley,
            "merged": [list(pieces) for pieces in self.merged],
        }


@dataclass(frozen=True)
class Merge:
    """The groups as sets of pieces, and every level from all pieces down to one group."""

    threshold: float | None  # None where nothing was to be merged
    groups: tuple[Pieces, ...]
    path: tuple[Level, ...]

    @property
    def valley(self) -> float | None:
        """The lowest valley between two groups; None for a single one."""
        return next((level.valley for level in self.path if level.groups == len(self.groups)), None)

    @property
    def group_of(self) -> Array:
        """The number of each piece's group."""
        return numbered(self.groups)

    def at(self, n_groups: int) -> Array:
        """The number of each piece's group at a level of the path."""
        return self.down_to(n_groups).group_of

    def down_to(self, n_groups: int) -> Merge:
        """The same path with the groups of one of its levels."""
        current: set[Pieces] = {(piece,) for piece in range(sum(map(len, self.groups)))}
        for level in self.path:
            if level.groups > n_groups:
                one, other = level.merged
                current = current - {one, other} | {tuple(sorted(one + other))}
        return replace(self, groups=tuple(sorted(current)))


def numbered(groups: Sequence[Pieces]) -> Array:
    """The number of each piece's group."""
    made = np.empty(sum(map(len, groups)), dtype=np.intp)
    for number, pieces in enumerate(groups):
        made[list(pieces)] = number
    return made


def merge_pieces(
    ground: Ground, n_pieces: int, *, threshold: float | None, least: int = 1, whole_path: bool = True
) -> Merge:
    """Merge while the lowest valley is below `threshold` and more than `least` groups are left.

    Then, for the `whole_path`, go on to one group. Without a threshold the pieces are the groups.
    """
    way = MergePath(ground, n_pieces)
    groups = way.merged(threshold, least)
    if whole_path:
        way.merged(math.inf, 1)
    return Merge(threshold, groups, tuple(way.path))


class MergePath:
    """The merge of pieces on its way: it goes on from where it was left, since each next pair is the same whatever the
    merge is for."""

    def __init__(self, ground: Ground, n_pieces: int) -> None:
        self.ground = ground
        self.current: list[Pieces] = [(piece,) for piece in range(n_pieces)]
        self.path: list[Level] = []
        self._seen = _Valleys(ground)
        self._lowest = math.inf  # valley of the last level

    def merged(self, threshold: float | None, least: int) -> tuple[Pieces, ...]:
        """On while the lowest valley is below `threshold` and more than `least` groups are left: the groups there."""
        while len(self.current) > 1:
            if not self.path or self.path[-1].groups > len(self.current):
                self._look()
            if threshold is None or self._lowest >= threshold or len(self.current) <= least:
                break
            pair = self.path[-1].merged
            rest, made = [p for p in self.current if p not in pair], tuple(sorted(pair[0] + pair[1]))
            self._seen.merged(pair, made, rest)
            self.current = sorted([*rest, made])
        return tuple(self.current)

    def at(self, n_groups: int) -> Array:
        """The number of each piece's group where so many are left; of fewer pieces, that of the piece."""
        self.merged(math.inf, n_groups)
        return Merge(None, tuple(self.current), tuple(self.path)).at(n_groups)

    def _look(self) -> None:
        current, seen = self.current, self._seen
        pairs = [(current[i], current[j]) for i, j in near_pairs(self.ground, current)]
        seen.look(pairs, lazily=len(current) > MANY_GROUPS)
        pair, self._lowest = _next([pair for pair in pairs if pair in seen.known], seen.known)
        self.path.append(Level(len(current), seen.known[pair].valley, pair))


class _Valleys:
    """Valleys as they are looked at. Of many groups, those of a merged one are first taken for the lower of its two
    parts', and measured when they come to be the lowest."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.measure = ground, measured_on(ground)
        self.known: dict[Pair, ProjectionValley] = {}
        self.guess: dict[Pair, float] = {}

    def look(self, pairs: Sequence[Pair], *, lazily: bool) -> None:
        """Measure all pairs, or all that nothing is known of and the lowest."""
        for pair in pairs:
            if pair not in self.known and not (lazily and pair in self.guess):
                self._measure(pair)
        while (lowest := min(pairs, key=self._value)) not in self.known:
            self._measure(lowest)

    def merged(self, pair: Pair, made: Pieces, rest: Sequence[Pieces]) -> None:
        """What two groups that become one leave to guess."""
        for other in rest:
            ways = [(min(part, other), max(part, other)) for part in pair]
            values = [self._value(way) for way in ways if way in self.known or way in self.guess]
            if values:
                self.guess[min(made, other), max(made, other)] = min(values)

    def _value(self, pair: Pair) -> float:
        return self.known[pair].valley if pair in self.known else self.guess[pair]

    def _measure(self, pair: Pair) -> None:
        self.known[pair] = self.measure(pair)


def measured_on(ground: Ground) -> Callable[[Pair], ProjectionValley]:
    """What the valley between two groups is, found again where an earlier run has measured it."""
    content = cache(lambda: key_of(ground))

    def measure(pair: Pair) -> ProjectionValley:
        return recall_by("valley", content, pair, lambda: ProjectionValley.of(ground.project(*pair)))

    return measure


def _next(pairs: Sequence[Pair], seen: Mapping[Pair, ProjectionValley]) -> tuple[Pair, float]:
    """The pair to merge, and the lowest valley: that pair's, but a group too small to show one goes to the group that
    is nearest to it."""
    lowest = min(pairs, key=lambda pair: seen[pair].valley)
    valley = seen[lowest].valley
    if seen[lowest].fewest >= FEW_ROWS:
        return lowest, valley
    beside = [pair for pair in pairs if seen[pair].fewest == seen[lowest].fewest]
    return min(beside, key=lambda pair: (seen[pair].gap, seen[pair].valley)), valley


def valley_matrix(ground: Ground, groups: Sequence[Pieces]) -> list[list[float | None]]:
    """Valleys between groups, None on the diagonal and between those of many that are not neighbours."""
    made: list[list[float | None]] = [[None] * len(groups) for _ in groups]
    measure = measured_on(ground)
    for i, j in near_pairs(ground, groups):
        made[i][j] = made[j][i] = measure((groups[i], groups[j])).valley
    return made


def near_pairs(ground: Ground, groups: Sequence[Pieces]) -> list[tuple[int, int]]:
    """The pairs in which a lowest valley may be: all, or of many groups each with those nearest to it."""
    if len(groups) <= MANY_GROUPS:
        return [(i, j) for i in range(len(groups)) for j in range(i + 1, len(groups))]
    apart = ground.distances(groups)
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1, kind="stable")[:, :N_NEAREST]
    return sorted({(min(i, int(j)), max(i, int(j))) for i, row in enumerate(nearest) for j in row})


def lowest(matrix: Sequence[Sequence[float | None]]) -> tuple[int, int] | None:
    """The pair of groups with the lowest valley."""
    pairs = [
        (value, i, j) for i, row in enumerate(matrix) for j, value in enumerate(row[:i]) if value is not None
    ]
    if not pairs:
        return None
    _, i, j = min(pairs)
    return j, i


def _bin_edges(position: Array) -> Array:
    """Bins over all positions, wider than these where float64 has too few numbers between them."""
    if not len(position):
        return np.histogram_bin_edges(position, N_BINS)
    low, high = float(position.min()), float(position.max())
    least = 2 * N_BINS * float(np.spacing(max(abs(low), abs(high))))
    room = max(least, 0.5) if high == low else least if high - low < least else 0.0
    return np.histogram_bin_edges(position, N_BINS, (low - room, high + room))


def weakest_pair(
    ground: Ground, groups: Sequence[Pieces], matrix: Sequence[Sequence[float | None]]
) -> dict[str, Any] | None:
    """The two groups that are parted least, with a histogram of their rows on the line between them."""
    pair = lowest(matrix)
    if pair is None:
        return None
    seen = ground.project(groups[pair[0]], groups[pair[1]])
    edges = _bin_edges(seen.position)
    counts = [
        np.histogram(seen.position[part], edges, weights=seen.weight[part])[0]
        for part in (~seen.of_second, seen.of_second)
    ]
    return {"pair": list(pair), "edges": edges, "counts_a": counts[0], "counts_b": counts[1]}
