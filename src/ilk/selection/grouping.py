"""The answer made of what a search found: pieces merged to groups, and what was measured of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from ilk.assorted.problem import InverseTransform
from ilk.assorted.width import is_crowded
from ilk.engines.base import Rows
from ilk.families.gaussian import Gaussian
from ilk.fitting.deadline import Deadline
from ilk.fitting.interrupt import exposed, heard
from ilk.fitting.loop import OK, Stop
from ilk.fitting.mixture import best_run
from ilk.fitting.restarts import from_labels
from ilk.fitting.size_order import by_size
from ilk.fitting.small_tables import run_quick
from ilk.fitting.split_merge import SPLIT_PASSES, split_labels
from ilk.fitting.weights import row_weights
from ilk.measures.criteria import bic
from ilk.measures.external import ari
from ilk.model.grouped import Grouped
from ilk.model.registry import fitted_as, is_soft
from ilk.selection.candidates import EXACT, Model, Search
from ilk.selection.doubts import Doubts, doubts_of, torn_part
from ilk.selection.merging import Merge, Pieces, merge_pieces, valley_matrix, weakest_pair
from ilk.selection.resampling import DISSOLVED, STABLE_MIN, Resampled, ResamplingPlan, refit_of, resampled
from ilk.selection.samples import CloseUp, Samples, Scope, thresholds_between
from ilk.selection.search_rows import each_once
from ilk.selection.sizing import Joined, Sizing, join_small, limited
from ilk.selection.valley import Ground, NumberGround, Thresholds
from ilk.table.block import BLOCK_ROWS, Array, Block

MERGES = ("separation", "none")
UNSETTLED_GAIN = 2.0  # BIC that a further split may gain in a search that has settled
SPLIT_STOP = Stop(tolerance=1e-6, max_passes=500)


@dataclass(frozen=True, kw_only=True)
class GroupingOptions:
    """What the user left open: whether pieces may be merged, and down to how many groups."""

    merge: str = "separation"
    least: int = 1
    asked: int | None = (
        None  # groups, where one K was given: more pieces than that are merged until so many are left
    )
    min_size: int | None = None
    max_size: int | None = None
    deadline: Deadline = field(default_factory=Deadline.none)


@dataclass(frozen=True)
class Merged:
    """Coarser groups, as sets of the groups of the answer; all of them stable."""

    members: tuple[tuple[int, ...], ...]
    separation: float
    stable: tuple[float, ...]

    @property
    def n_groups(self) -> int:
        return len(self.members)

    def to_dict(self, letters: Sequence[str]) -> dict[str, Any]:
        return {
            "groups": self.n_groups,
            "members": [[letters[group] for group in groups] for groups in self.members],
            "separation": self.separation,
            "stability": list(self.stable),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Grouping:
    """Groups, larger first; `n_groups` is 1 where there are no clear ones, and the pieces are then told as segments.

    `group_of` holds the number of each piece's group (or segment), `labels` that of each row's.
    """

    grouped: Grouped
    labels: Array
    size: Array
    n_groups: int
    merge: Merge
    thresholds: Thresholds
    valleys: list[list[float | None]]
    weakest: dict[str, Any] | None
    stable: tuple[float, ...] | None
    n_rows: float  # as the weights count them
    skewness: Array
    split_gain: float  # BIC that one piece more would gain
    regrouped: float | None = None  # adjusted Rand index with the groups that the piece more would give
    interrupted: bool = False
    sizing: Sizing | None = None  # what the wish for sizes changed
    dissolved: tuple[int, int] | None = (
        None  # groups that the dips alone leave, and how many of these dissolve, or may
    )
    signs: tuple[tuple[int, float], ...] = ()  # of each K, where the method chose by a sign of its own
    merged: Merged | None = None  # offered where a group is not stable
    crowded: bool = False  # an assorted model of more than a fifth as many columns as rows
    errors: tuple[float, ...] | None = None  # standard errors of the stability
    doubts: Doubts = Doubts()  # what speaks against groups that are separated and stable
    gap: float | None = None  # by which groups of any shape lie apart; from 1 on no row has a stranger near

    @property
    def segmented(self) -> bool:
        return self.n_groups == 1 and len(self.size) > 1

    @property
    def pieces(self) -> int:
        return len(self.grouped.group_of)

    @property
    def members(self) -> tuple[Pieces, ...]:
        """The pieces of each group."""
        return members(self.grouped.group_of)

    def to_dict(self, letters: Sequence[str]) -> dict[str, Any]:
        """The merge as the summary holds it: pieces by number, larger first, groups by letter."""
        weakest = self.weakest
        if weakest is not None:
            weakest = {**weakest, "pair": [letters[group] for group in weakest["pair"]]}
        return {
            "threshold": self.merge.threshold,
            "path": [level.to_dict() for level in self.merge.path],
            "groups": [list(pieces) for pieces in self.members],
            "separations": self.valleys,
            "weakest": weakest,
        }


def group(
    rows: Rows, found: Search, wish: GroupingOptions, seed: int, untreat: InverseTransform | None = None
) -> Grouping:
    """Merge the pieces of the chosen model and measure what the verdict needs; `untreat` gives back the columns of
    the table where the model has others."""
    fit, family = found.fit, found.recipe.family
    n_pieces, soft = len(fit.size), is_soft(family.name)
    exact = found.chosen.status == EXACT
    samples = Samples.of(rows, family, fit.params, Scope(seed, untreat, exact))
    ground = samples.ground(family, fit.params)
    merging = wish.merge == "separation" and (wish.asked is None or n_pieces > wish.asked) and not exact
    threshold = ground.thresholds.merge if merging else None
    merge = merge_pieces(ground, n_pieces, threshold=threshold, least=wish.least)
    n_groups = len(merge.groups)
    told = merge.group_of if n_groups > 1 else np.arange(n_pieces)
    told_apart, joined = join_small(rows, Grouped(family, fit.params, told, soft), wish.min_size)
    n_groups = min(n_groups, told_apart.n_groups)
    grouped, labels, size = _in_order(rows, told_apart)
    labels, size, sizing = _sized(rows, grouped, labels, size, wish, joined)
    valleys = valley_matrix(ground, members(grouped.group_of))
    made = Grouping(
        grouped=grouped,
        labels=labels,
        size=size,
        n_groups=n_groups,
        merge=merge,
        thresholds=thresholds_between(ground, members(grouped.group_of), valleys),
        valleys=valleys,
        weakest=weakest_pair(ground, members(grouped.group_of), valleys),
        stable=None,
        n_rows=row_weights(rows).effective_rows,
        crowded=fitted_as(family.name) == "growth"
        and is_crowded(row_weights(rows).effective_rows, _n_columns(rows)),
        skewness=_skewness(ground),
        split_gain=0.0,
        interrupted=found.interrupted,
        sizing=sizing,
    )
    if n_groups == 1 or found.interrupted or wish.deadline.over:
        return made
    plan = ResamplingPlan(
        refit=refit_of(found.recipe, wish.deadline),
        n_pieces=n_pieces,
        threshold=threshold,
        least=wish.least,
        soft=soft,
        deadline=wish.deadline,
    )
    try:
        with exposed():
            return _tested(made, found, wish, _Looked(rows, samples, ground, plan, seed))
    except KeyboardInterrupt:  # the groups are there; only the verdict knows less
        return replace(made, interrupted=True)


@dataclass(frozen=True)
class _Looked:
    """What a grouping was made from, and how it is made again."""

    rows: Rows
    samples: Samples
    ground: Ground
    plan: ResamplingPlan
    seed: int


def _tested(made: Grouping, found: Search, wish: GroupingOptions, looked: _Looked) -> Grouping:
    """The groups with their stability; where some are not stable, with what a merge of them would mend."""
    gain, more = (0.0, None) if found.chosen.status == EXACT else split_gain(found, wish.deadline)
    if more is not None and gain > UNSETTLED_GAIN:
        made = replace(made, regrouped=_regrouped(made, more, looked))
    again = resampled(looked.samples, made.grouped, looked.plan, looked.seed, looked.rows.threads)
    if heard():  # resamples that were cut short measure nothing
        return replace(made, interrupted=True)
    if again is None:
        return replace(made, split_gain=gain)
    made = replace(made, stable=again.stable, errors=again.errors, split_gain=gain)
    if made.sizing is None and min(again.stable) >= DISSOLVED and not wish.deadline.over:
        made = replace(made, doubts=doubts_of(looked.ground, made.merge, made.grouped, again))
    if made.sizing is not None or min(again.stable) >= STABLE_MIN or wish.deadline.over:
        return made
    merged = stable_merge(again, made.merge, made.grouped, made.thresholds.merge)
    free = wish.merge == "separation" and wish.asked is None
    lost = [group for group, least in enumerate(again.at_least) if least < DISSOLVED]
    if (
        merged is None
        or not free
        or merged.n_groups < wish.least
        or not lost
        or merged.separation < looked.ground.thresholds.clear
    ):
        return replace(made, merged=merged)
    merge = made.merge.down_to(merged.n_groups)
    grouped, labels, size = _in_order(looked.rows, replace(made.grouped, group_of=merge.group_of))
    valleys = valley_matrix(looked.ground, members(grouped.group_of))
    doubts = doubts_of(looked.ground, merge, grouped, again)
    torn = torn_part(made.grouped, made.valleys, made.size, lost, grouped)
    return replace(
        made,
        grouped=grouped,
        labels=labels,
        size=size,
        n_groups=merged.n_groups,
        merge=merge,
        thresholds=thresholds_between(looked.ground, members(grouped.group_of), valleys),
        valleys=valleys,
        weakest=weakest_pair(looked.ground, members(grouped.group_of), valleys),
        stable=again.merged_to(grouped),
        errors=None,
        doubts=replace(doubts, finer=None, torn=torn),  # what is finer dissolves
        dissolved=(made.n_groups, len(lost)),
    )


def _regrouped(made: Grouping, more: Model, looked: _Looked) -> float:
    """How far the groups stay the same with the components of another model, merged by the same rule."""
    ground, plan, sample = looked.samples.ground(*more), looked.plan, looked.samples.plain
    n_pieces = len(more[0].centres(more[1]))
    merge = merge_pieces(ground, n_pieces, threshold=plan.threshold, least=plan.least, whole_path=False)
    other = Grouped(*more, merge.group_of, plan.soft)
    return ari(made.grouped.label(sample), other.label(sample))


def stable_merge(again: Resampled, merge: Merge, grouped: Grouped, least: float) -> Merged | None:
    """The finest merge of groups, of which some are unstable, that leaves only stable ones with a dip between them."""
    for level in merge.path:
        if not 1 < level.groups < grouped.n_groups or level.valley < least:
            continue
        coarser = replace(grouped, group_of=merge.at(level.groups))
        stable = again.merged_to(coarser)
        if min(stable) >= STABLE_MIN:
            pieces = [np.unique(grouped.group_of[coarser.group_of == g]) for g in range(level.groups)]
            order = sorted(range(level.groups), key=lambda g: int(pieces[g][0]))
            return Merged(
                tuple(tuple(int(one) for one in pieces[g]) for g in order),
                level.valley,
                tuple(stable[g] for g in order),
            )
    return None


def groups_by_rule(rows: Rows, found: Search, seed: int, untreat: InverseTransform | None = None) -> int:
    """How many groups are left when the components of the chosen model are merged by the rule."""
    fit, family = found.fit, found.recipe.family
    if len(fit.size) == 1 or found.chosen.status == EXACT:
        return len(fit.size)
    ground = Samples.of(rows, family, fit.params, Scope(seed, untreat)).ground(family, fit.params)
    threshold = ground.thresholds.merge
    return len(merge_pieces(ground, len(fit.size), threshold=threshold, whole_path=False).groups)


def _sized(
    rows: Rows,
    grouped: Grouped,
    labels: Array,
    size: Array,
    wish: GroupingOptions,
    joined: tuple[Joined, ...],
) -> tuple[Array, Array, Sizing | None]:
    """Labels and sizes as wished, and what that changed; None where nothing was wished."""
    if wish.min_size is None and wish.max_size is None:
        return labels, size, None
    unit = "nats" if grouped.soft else "units of cost"
    kept, sizing = limited(
        rows, grouped, labels, Sizing(least=wish.min_size, most=wish.max_size, unit=unit, joined=joined)
    )
    if sizing.moves:
        weight = np.concatenate([*rows.scan(_visit_weight, None)])
        size = np.bincount(kept, weight, grouped.n_groups)
    return kept, size, sizing


def _visit_weight(_: None, block: Block) -> Array:
    return block.weights


def members(group_of: Array) -> tuple[Pieces, ...]:
    """The pieces of each group."""
    return tuple(
        tuple(int(piece) for piece in np.flatnonzero(group_of == group))
        for group in range(group_of.max() + 1)
    )


def _in_order(rows: Rows, grouped: Grouped) -> tuple[Grouped, Array, Array]:
    """Groups by size, larger first, ties by their least row; with the labels of all rows and the sizes."""
    n_groups = grouped.n_groups
    labels = np.empty(rows.n_rows, dtype=np.int32)
    size = np.zeros(n_groups)
    for start, label, heft in rows.scan(_visit_order, grouped):
        labels[start : start + len(label)] = label
        size += heft
    order = by_size(rows, labels, size)
    rank = np.empty(n_groups, dtype=np.int32)
    rank[order] = np.arange(n_groups)
    ordered = replace(grouped, group_of=rank[grouped.group_of].astype(np.intp))
    for start in range(0, rows.n_rows, BLOCK_ROWS):  # block by block, so that no index of all rows is made
        labels[start : start + BLOCK_ROWS] = rank[labels[start : start + BLOCK_ROWS]]
    return ordered, labels, np.asarray(size[order])


def _visit_order(grouped: Grouped, block: Block) -> tuple[int, Array, Array]:
    """First row, labels, and for each group its weight."""
    label = grouped.label(block)
    return block.first_row, label, np.bincount(label, block.weight, grouped.n_groups)


def _n_columns(rows: Rows) -> int:
    """Of numbers and categories."""
    codes = rows.take(np.arange(0)).codes
    return rows.n_columns + (0 if codes is None else codes.shape[1])


def _skewness(ground: Ground) -> Array:
    """Of the columns of numbers; none where there are categories only, or some of the columns."""
    ground = ground.plain if isinstance(ground, CloseUp) else ground
    if not isinstance(ground, NumberGround) or ground.some_columns:
        return np.zeros(0)
    points, weight = ground.points, ground.weight
    away = points - np.average(points, axis=0, weights=weight)
    deviation = np.sqrt(np.average(away**2, axis=0, weights=weight))
    cube = np.average(away**3, axis=0, weights=weight)
    return np.asarray(np.divide(cube, deviation**3, out=np.zeros_like(cube), where=deviation > 0))


def split_gain(found: Search, deadline: Deadline) -> tuple[float, Model | None]:
    """By how much one component more, from the best cut of one in two, lowers the BIC, and that model; 0 where it does
    not, or where there was no time to see.

    A search that has settled has tried this; where much is gained after all, it has not.
    """
    if fitted_as(found.recipe.family.name) != "mixture" or found.few is None:
        return 0.0, None
    family = cast(Gaussian, found.recipe.family)
    few = each_once(found.few)
    block, stop = few.take(np.arange(few.n_rows)), replace(SPLIT_STOP, deadline=deadline)
    k = len(found.fit.size)
    starts = [
        from_labels(few, family, label, k + 1) for label in split_labels(block, family, found.fit.params)
    ]
    starts = [start for start in starts if start.status == OK]
    short = [
        run
        for run in run_quick(few, [family] * len(starts), starts, replace(stop, max_passes=SPLIT_PASSES))
        if run.status == OK
    ]
    if not short or deadline.over:
        return 0.0, None
    chosen, run = run_quick(few, [family] * 2, [found.fit.params, best_run(short).params], stop)
    if run.status != OK or deadline.over:
        return 0.0, None
    # Both at their best on these rows: parameters of a larger table are not.
    cost = float(block.weights @ family.assign(found.fit.params, block)[1])
    cost = min(cost, chosen.cost) if chosen.status == OK else cost
    n_rows = float(block.weights.sum())
    before = bic(-cost, family.free_parameters(found.fit.params), n_rows)
    after = bic(-run.cost, family.free_parameters(run.params), n_rows)
    return max(0.0, before - after) if math.isfinite(after) else 0.0, (family, run.params)
