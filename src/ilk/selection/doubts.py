"""What speaks against groups that are separated and stable: merges that could have gone otherwise, and overlap.

- A finer level of the merge whose groups return in resamples as well. Few rows show no dip between groups three or four
  deviations apart, so that its absence alone does not make one group of them.
- A component that no dip separates from another group either: its rows may be of both.
- A group that dissolved and was merged, where another group was hardly farther.
- Labels that, by the memberships of the model itself, agree too little with the groups that they stand for.

The first three count where they decide on a twentieth of the rows: of two even groups with so many rows on the wrong
side the adjusted Rand index is 0.8, below which labels are not called right (`benchmarks.calibration`). The last is
what the labels are worth if the model is true, so more is asked where something else speaks against it, and for
"solid".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ilk.model.grouped import Grouped
from ilk.selection.merging import FEW_ROWS, N_NEAREST, Level, Merge, Pieces
from ilk.selection.resampling import STABLE_MIN, Resampled
from ilk.selection.valley import Ground
from ilk.table.block import Array

UNDECIDED = 0.05  # of the rows
RIGHT = 0.8  # adjusted Rand index that labels have to be expected to reach
RIGHT_IN_DOUBT, RIGHT_FOR_SURE = 0.9, 0.95  # where there is another doubt, and for "solid" (decision 53)
MOST_LEVELS = 4  # finer ones that are looked at
DIPS_ALIKE = 0.15  # what lies between no dip (0.40) and a clear one (0.55)


@dataclass(frozen=True)
class Finer:
    """A finer level at which all groups are stable: how many there are, how stable, the lowest separation, and the
    group of the answer that it divides."""

    n_groups: int
    stability: float
    separation: float
    group: int


@dataclass(frozen=True)
class Between:
    """A component of `group` that is not separated from `other` either."""

    group: int
    other: int
    separation: float


@dataclass(frozen=True)
class Torn:
    """A part of `group` that dips separate from the rest of it by `own` and from `other` by hardly more."""

    group: int
    other: int
    n_rows: float
    own: float
    away: float


@dataclass(frozen=True)
class Doubts:
    """What was found against an answer; nothing as long as it was not looked at."""

    finer: Finer | None = None
    between: Between | None = None
    agreement: float | None = None  # expected adjusted Rand index of the labels, where memberships are soft
    torn: Torn | None = None


def doubts_of(ground: Ground, merge: Merge, grouped: Grouped, again: Resampled) -> Doubts:
    """What speaks against the groups of a merge that was repeated on resamples."""
    piece = grouped.family.assign(grouped.params, again.sample)[0]
    kept = piece >= 0
    size = np.bincount(piece[kept], again.sample.weights[kept], len(grouped.group_of))
    found = list(_between(ground, grouped, size))
    scattered = {number for number, _ in found}
    moved = float(size[list(scattered)].sum())
    undecided = moved >= UNDECIDED * size.sum()
    return Doubts(
        finer=_finer(merge, grouped, again, size, scattered),
        between=min((one for _, one in found), key=lambda one: one.separation) if undecided else None,
        agreement=expected_agreement(grouped.costs(again.sample), again.sample.weights)
        if grouped.soft
        else None,
    )


def _between(ground: Ground, grouped: Grouped, size: Array) -> Iterator[tuple[int, Between]]:
    """Components of merged groups that no dip separates from another group, each with that group."""
    members = [
        tuple(map(int, np.flatnonzero(grouped.group_of == group))) for group in range(grouped.n_groups)
    ]
    for group, pieces in enumerate(members):
        for piece in pieces if len(pieces) > 1 else ():
            if size[piece] < FEW_ROWS:
                continue
            near = [
                (ground.project((piece,), members[other]).valley, other)
                for other in _nearest(ground, piece, members)
                if other != group
            ]
            separation, other = min(near)
            if separation < ground.thresholds.merge:
                yield piece, Between(group, other, separation)


def torn_part(
    finer: Grouped,
    valleys: Sequence[Sequence[float | None]],
    size: Array,
    lost: Sequence[int],
    coarse: Grouped,
) -> Torn | None:
    """The largest of the groups of `finer` that were `lost` in a merge to `coarse` and might as well have gone to
    another group: the dips towards the two differ by less than those of no dip and a clear one (decision 54)."""
    into = [int(coarse.group_of[np.flatnonzero(finer.group_of == part)[0]]) for part in range(finer.n_groups)]
    found = []
    for part in lost:
        dips = [
            (dip, into[other]) for other, dip in enumerate(valleys[part]) if dip is not None and other != part
        ]
        own = min((dip for dip, group in dips if group == into[part]), default=None)
        away = min(((dip, group) for dip, group in dips if group != into[part]), default=None)
        if own is None or away is None or size[part] < UNDECIDED * size.sum():
            continue
        if away[0] - own < DIPS_ALIKE:
            found.append(Torn(into[part], away[1], float(size[part]), own, away[0]))
    return max(found, key=lambda torn: torn.n_rows, default=None)


def _nearest(ground: Ground, piece: int, members: Sequence[Pieces]) -> list[int]:
    """The groups nearest to a component; its own is one of them."""
    if len(members) <= N_NEAREST + 1:
        return [*range(len(members))]
    away = ground.distances([(piece,), *members])[0, 1:]
    return [int(group) for group in np.argsort(away, kind="stable")[: N_NEAREST + 1]]


def _finer(
    merge: Merge, grouped: Grouped, again: Resampled, size: Array, scattered: set[int]
) -> Finer | None:
    """The coarsest finer level at which all groups are stable and large enough to count."""
    levels = [level for level in reversed(merge.path) if level.groups > grouped.n_groups]
    for level in levels[:MOST_LEVELS]:
        finer = replace(grouped, group_of=merge.at(level.groups))
        divided = _divided(grouped, finer, size, scattered)
        if divided is None:
            continue
        stability = min(again.merged_to(finer))
        if stability >= STABLE_MIN:
            return Finer(level.groups, stability, _separation(levels, level), divided)
    return None


def _separation(levels: Sequence[Level], finest: Level) -> float:
    """The lowest on the way from the finest of these levels to the answer."""
    return min(level.valley for level in levels if level.groups <= finest.groups)


def _divided(grouped: Grouped, finer: Grouped, size: Array, scattered: set[int]) -> int | None:
    """The group of which a finer level takes most rows; None where these are few, or parts are small or scattered."""
    taken = np.zeros(grouped.n_groups)
    for group in range(grouped.n_groups):
        inside = np.unique(finer.group_of[grouped.group_of == group])
        parts = [np.flatnonzero(finer.group_of == part) for part in inside]
        heft = [float(size[part].sum()) for part in parts]
        if len(parts) > 1:
            if min(heft) < FEW_ROWS or any(set(map(int, part)) <= scattered for part in parts):
                return None
            taken[group] = sum(heft) - max(heft)
    return int(taken.argmax()) if taken.sum() >= UNDECIDED * size.sum() else None


def expected_agreement(costs: Array, weight: Array) -> float:
    """Adjusted Rand index of the labels with groups drawn by the memberships, in expectation.

    >>> expected_agreement(np.array([[0.0, 50.0], [50.0, 0.0]]), np.ones(2))
    1.0
    """
    counted = weight > 0  # of other rows costs may be of any size
    costs, weight = costs[counted], weight[counted]
    membership = np.exp(costs.min(axis=1, keepdims=True) - costs)
    membership /= membership.sum(axis=1, keepdims=True)
    label, shared = costs.argmin(axis=1), np.zeros((costs.shape[1],) * 2)
    np.add.at(shared, label, membership * weight[:, None])
    both, of_labels, of_groups = (np.square(part).sum() for part in (shared, shared.sum(1), shared.sum(0)))
    chance = of_labels * of_groups / shared.sum() ** 2
    most = (of_labels + of_groups) / 2
    return 1.0 if most <= chance else float((both - chance) / (most - chance))
