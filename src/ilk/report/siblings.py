"""What tells a group from the group most like it: the columns in which these two differ most.

Two groups are as far apart in a column as the Bhattacharyya distance of their distributions, in nats:

    number      (m - m')^2 / (4 (s^2 + s'^2)) + log((s^2 + s'^2) / (2 s s')) / 2     (two Gaussians with these moments)
    category    -log(sum over levels of sqrt(p p'))

The group most like another has the least sum of these over the columns used. Which columns are told is decided on
the sample; the means and shares that are told are those of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ilk.report.bins import batches
from ilk.report.evidence import Evidence
from ilk.report.facts import (
    NARROWEST,
    NOTABLE_SHARE,
    NOTABLE_SHIFT,
    Array,
    Described,
    moved_levels,
)
from ilk.report.groups import Contrast, Fact, Group
from ilk.report.moments import GroupMoments, moments_of, moments_without_gaps

MOST_CONTRASTS = 3


@dataclass(frozen=True, eq=False)
class _Unlike:
    """A column: the distances of all pairs of groups, and which of them are worth their price in BIC."""

    column: Described
    distance: Array
    clear: Array


def contrasts(evidence: Evidence, groups: Sequence[Group]) -> list[Contrast | None]:
    """For each group the one most like it, and the facts that tell the two apart, the clearest first."""
    if evidence.k < 2 or not evidence.columns:
        return [None] * evidence.k
    columns = _all_apart(evidence)
    total = np.sum([c.distance for c in columns if c.column.used] or [c.distance for c in columns], axis=0)
    np.fill_diagonal(total, np.inf)
    facts = [{fact.column: fact for fact in group.facts} for group in groups]
    made: list[Contrast | None] = []
    for g, s in enumerate(total.argmin(axis=1).tolist()):
        told: list[Fact] = []
        for one in sorted((c for c in columns if c.clear[g, s]), key=lambda c: -float(c.distance[g, s])):
            name, nats = one.column.name, float(one.distance[g, s])
            fact = _fact(one.column, evidence, (g, s), (facts[g][name], facts[s][name]))
            told += [] if fact is None else [replace(fact, nats=nats)]
            if len(told) == MOST_CONTRASTS:
                break
        made.append(Contrast(group=groups[s].letter, facts=tuple(told)))
    return made


def _all_apart(evidence: Evidence) -> list[_Unlike]:
    sample, k = evidence.sample, evidence.k
    numbers = [column for column in evidence.columns if column.is_number]
    known: dict[str, GroupMoments | None] = {}
    for some in batches(len(numbers), len(sample.place)):
        values = [column.values[sample.place] for column in numbers[some]]
        found = moments_without_gaps(values, sample.label, sample.heft, k)
        known |= zip((column.name for column in numbers[some]), found, strict=True)
    return [_apart(column, evidence, known.get(column.name)) for column in evidence.columns]


def _apart(column: Described, evidence: Evidence, moments: GroupMoments | None) -> _Unlike:
    """How far apart groups are in a column; of numbers without gaps the moments are known."""
    if moments is not None:
        return _unlike(column, moments.size, _between_numbers(moments), 2.0)
    sample, k = evidence.sample, evidence.k
    values = column.values[sample.place]
    present = ~np.isnan(values) if column.is_number else values >= 0
    values, label, heft = values[present], sample.label[present], sample.heft[present]
    size = np.bincount(label, weights=heft, minlength=k)
    if not column.is_number:
        count = _counts(values, label, heft, k)
        return _unlike(column, size, _between_levels(count), float(np.count_nonzero(count.sum(axis=0)) - 1))
    if not len(values):
        return _unlike(column, size, np.zeros((k, k)), 2.0)
    (moments,) = moments_of(values.astype(np.float64)[None], label, heft, k)
    return _unlike(column, size, _between_numbers(moments), 2.0)


def _unlike(column: Described, size: Array, distance: Array, free: float) -> _Unlike:
    there = size > 0
    distance = np.where(there[:, None] & there, distance, 0.0)
    both = np.maximum(size[:, None] + size, 1e-300)
    # For a small difference, log-likelihood that one distribution for both groups would lose.
    lost = 4 * distance * size[:, None] * size / both
    return _Unlike(column, distance, lost > free / 2 * np.log(np.maximum(both, 2.0)))


def _between_numbers(moments: GroupMoments) -> Array:
    if not moments.whole_spread > 0:
        return np.zeros((len(moments.size), len(moments.size)))
    mean, spread = moments.mean, np.maximum(moments.spread, NARROWEST * moments.whole_spread)
    both = spread[:, None] ** 2 + spread**2
    shift = (mean[:, None] - mean) ** 2 / (4 * both)
    return np.asarray(shift + np.log(both / (2 * spread[:, None] * spread)) / 2)


def _counts(codes: Array, label: Array, heft: Array, k: int) -> Array:
    """Weight of every level in every group."""
    n_levels = int(codes.max(initial=0)) + 1
    cell = label.astype(np.int64) * n_levels + codes
    return np.bincount(cell, weights=heft, minlength=k * n_levels).reshape(k, n_levels)


def _between_levels(count: Array) -> Array:
    """Each group is smoothed by one row that looks like the whole table."""
    whole = count.sum(axis=0) / max(float(count.sum()), 1e-300)
    share = (count + whole) / (count.sum(axis=1, keepdims=True) + 1.0)
    root = np.sqrt(share)
    return np.asarray(-np.log(np.clip(root @ root.T, 1e-300, 1.0)))


def _fact(
    column: Described, evidence: Evidence, pair: tuple[int, int], facts: tuple[Fact, Fact]
) -> Fact | None:
    """The column of the first group as a fact whose whole table is the second; None where they are about the same."""
    own, other = facts
    if column.is_number:
        if own.value is None or other.value is None or not own.whole_spread:
            return None
        change, least = (own.value - other.value) / own.whole_spread, NOTABLE_SHIFT
        shown = replace(own, whole=other.value, whole_spread=other.spread)
    else:
        mine = [(evidence.labels == g) & (column.values >= 0) for g in pair]
        levels = column.levels or ()
        count = [np.bincount(column.values[m], weights=evidence.heft[m], minlength=len(levels)) for m in mine]
        share = [c / max(float(c.sum()), 1e-300) for c in count]
        told = moved_levels(share[0] - share[1], cyclic=column.cyclic)
        value, whole = float(share[0][told].sum()), float(share[1][told].sum())
        change, least = value - whole, NOTABLE_SHARE
        shown = replace(own, value=value, whole=whole, category=", ".join(levels[level] for level in told))
    if abs(change) <= least:
        return None
    return replace(shown, sign="up" if change > 0 else "down", distinctive=True)
