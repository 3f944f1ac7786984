"""The rows that the rule for K looks at: a plain sample of the table, and a wider one where pieces are rare.

A group of one row in a thousand has four in a plain sample, too few for a valley or for a resample. Thinning the larger
group instead would make a step at the border, so rare pieces are looked at on more rows, and these drawn by group for
resamples, each with the number of rows that it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from ilk.assorted.problem import InverseTransform
from ilk.assorted.switches import relevant
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.base import Family, GrowingFamily
from ilk.model.grouped import Grouped
from ilk.random import stream
from ilk.selection.left_out import LeftOut, LeftOutOdds
from ilk.selection.projection import Projection
from ilk.selection.valley import (
    MOST_ROWS,
    Ground,
    NumberGround,
    OddsGround,
    Thresholds,
    canonical,
)
from ilk.table.block import Array, Block

RARE_ROWS = 100  # of a plain sample; a piece with fewer is looked at on the wider one
WIDE_ROWS, WIDE_CELLS = 100_000, 4_000_000  # of the wider sample, at most
MOST_ALONE = 0.5  # of the gap between two groups: beyond, one column bears the line between them
MANY_AXES = 0.1  # axes for each row, above which a row pulls a line to its own side

AnyGround = NumberGround | OddsGround | LeftOutOdds


@dataclass(frozen=True)
class Scope:
    """How a model is looked at: what its columns were, and whether its pieces are the distinct rows."""

    seed: int
    untreat: InverseTransform | None = None  # where the model has other columns than the table
    exact: bool = False

    def ground(self, sample: Block, family: Family[Any], params: Any) -> AnyGround:
        """Where valleys are looked for: on lines through the numbers and the indicators of the levels that the table
        has, or the odds of the pieces where there are categories only; of a wide table in the columns in which the
        pieces differ."""
        label = family.assign(params, sample)[0]
        if self.untreat is None:
            return NumberGround.of(sample, label, seed=self.seed, exact=self.exact)
        growing = cast(GrowingFamily[Any], family)
        if growing.wide and (kept := relevant(params.group)).any():
            return self._wide_ground(sample, growing, params, kept)
        own = self.untreat(sample)
        if own.n_columns == 0:
            return OddsGround(growing.scores(params, sample), label, sample.weights, self.seed)
        of = NumberGround.of if own.codes is None else NumberGround.of_mixed
        return of(own, label, seed=self.seed, on_scales=self.untreat.on_scales)

    def _wide_ground(self, sample: Block, family: GrowingFamily[Any], params: Any, kept: Array) -> AnyGround:
        """Lines through the columns in which the pieces differ; where those are many, each row beside a line that was
        drawn without it."""
        assert self.untreat is not None
        untreat, few = self.untreat.of_columns(sample, kept)
        label, weight = family.assign(params, sample)[0], sample.weights
        many = MANY_AXES * float(weight.sum())
        own = untreat(few)
        if own.n_columns == 0:
            assert few.codes is not None
            if few.codes.shape[1] <= many:
                return OddsGround(family.scores(params, sample), label, weight, self.seed)
            return LeftOutOdds.of(few.codes, untreat.treat.plan, label, weight, self.seed)
        of = NumberGround.of if own.codes is None else NumberGround.of_mixed
        ground = of(own, label, seed=self.seed, on_scales=untreat.on_scales)
        ground = replace(ground, some_columns=True)
        if ground.width > many:
            return LeftOut(**vars(ground))
        # Few columns of many were chosen for what they show; a row beside a line that was drawn without it was not.
        among = ground.thresholds.among(len(self.untreat.treat.plan.numbers))
        return replace(ground, thresholds=among, by_several=ground.thresholds)


@dataclass(frozen=True)
class CloseUp:
    """The ground of a plain sample, and that of a wider one for pairs in which one side is rare."""

    plain: AnyGround
    wide: AnyGround

    @property
    def thresholds(self) -> Thresholds:
        return self.plain.thresholds

    @cached_property
    def _size(self) -> Array:
        """Rows of each piece in the plain sample."""
        n_pieces = 1 + max(int(self.plain.label.max(initial=-1)), int(self.wide.label.max(initial=-1)))
        return np.bincount(self.plain.label, self.plain.weight, n_pieces)

    def distances(self, groups: Sequence[Sequence[int]]) -> Array:
        return self.wide.distances(groups)

    def project(self, one: Sequence[int], other: Sequence[int]) -> Projection:
        fewest = min(float(self._size[list(side)].sum()) for side in (one, other))
        return (self.wide if fewest < RARE_ROWS else self.plain).project(one, other)


def thresholds_between(
    ground: Ground, groups: Sequence[Sequence[int]], valleys: Sequence[Sequence[float | None]]
) -> Thresholds:
    """What parts groups beyond doubt. The deepest of many columns sets a high mark for a line that one of them bears;
    columns that are independent of each other do not agree on two groups by chance."""
    plain = ground.plain if isinstance(ground, CloseUp) else ground
    if not isinstance(plain, NumberGround) or plain.by_several is None:
        return ground.thresholds
    doubtful = [
        (i, j)
        for i, row in enumerate(valleys)
        for j, valley in enumerate(row[:i])
        if valley is not None and valley < plain.thresholds.clear
    ]
    alone = any(plain.borne_by_one(groups[i], groups[j]) > MOST_ALONE for i, j in doubtful)
    return plain.thresholds if alone else plain.by_several


@dataclass(frozen=True)
class Samples:
    """Rows in their canonical order; `wide` is None where no piece is rare, or the plain sample is the table."""

    plain: Block
    wide: Block | None
    scope: Scope

    @classmethod
    def of(cls, rows: Rows, family: Family[Any], params: Any, scope: Scope) -> Samples:
        """The samples that the pieces of a model need; there is nothing between one and none."""
        if len(family.centres(params)) == 1:
            return cls(canonical(rows.sample(1, scope.seed)), None, replace(scope, exact=True))
        plain = canonical(rows.sample(MOST_ROWS, scope.seed))
        if rows.n_rows <= MOST_ROWS:
            return cls(plain, None, scope)
        ground = scope.ground(plain, family, params)
        size = np.bincount(ground.label, ground.weight, len(family.centres(params)))
        if size.min() >= RARE_ROWS:
            return cls(plain, None, scope)
        n_wide = min(WIDE_ROWS, max(MOST_ROWS, WIDE_CELLS // ground.width))
        return cls(plain, canonical(rows.sample(n_wide, scope.seed)), scope)

    def ground(self, family: Family[Any], params: Any) -> Ground:
        """Where valleys between the pieces of a model are measured."""
        plain = self.scope.ground(self.plain, family, params)
        return plain if self.wide is None else CloseUp(plain, self.scope.ground(self.wide, family, params))

    def drawn(self, n_rows: int, grouped: Grouped) -> Block:
        """At most `n_rows` rows of the plain sample; or of the wider one `RARE_ROWS` at least of each group, each
        with the number of rows for which it stands."""
        if self.wide is None:
            return MemoryRows.of_block(self.plain).sample(n_rows, self.scope.seed)
        label, weight = grouped.label(self.wide), self.wide.weights
        size = np.bincount(label[label >= 0], weight[label >= 0], grouped.n_groups)
        wanted = np.maximum(n_rows * size / size.sum(), RARE_ROWS)
        rows, stands_for = [], []
        for group in range(grouped.n_groups):
            draws = stream(self.scope.seed, "by group", group)
            of_group = np.flatnonzero((label == group) & (weight > 0))
            if not len(of_group):  # too rare even here
                continue
            some = np.sort(draws.permutation(of_group)[: round(wanted[group])])
            rows.append(some)
            stands_for.append(weight[some] * (size[group] / weight[some].sum()))
        chosen = MemoryRows.of_block(self.wide).take(np.concatenate(rows))
        return replace(chosen, weight=np.concatenate(stands_for))
