"""The stage of an assorted fit: a table, the treatment of its columns, and the family that this makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ilk import kernels
from ilk.assorted.blended import Blended
from ilk.assorted.dense_factors import DenseFactors, as_tuples
from ilk.assorted.every_scale import EveryScale, Held
from ilk.assorted.family import Assorted, Clusters
from ilk.assorted.scales import PLAIN, SCALES
from ilk.assorted.sharing import CellSums, ColumnCosts, grouping_costs, regroup
from ilk.assorted.switches import relevance_price, relevant
from ilk.assorted.transform import TransformPlan
from ilk.engines.base import Rows
from ilk.engines.derived import derive
from ilk.errors import NoModelError
from ilk.families.base import GrowingFamily, Sums
from ilk.fitting.table_moments import table_moments
from ilk.kernels.constants import SINGULAR
from ilk.table.block import Array, Block, Encoding

CELLS, BLOCKS = "cells", ("EEE", "VVV")  # models of the numbers


@dataclass(frozen=True)
class ColumnTransform:
    """Treats blocks by a plan, the numbers on given scales: each a cell, or all one block of a structure, whose pooled
    covariance is `anchor`. Dense factors, where there are some, are taken out before."""

    plan: TransformPlan
    scales: tuple[int, ...]
    numbers: str = CELLS
    anchor: tuple[tuple[float, ...], ...] = ()
    factors: DenseFactors | None = None

    def __call__(self, block: Block) -> Block:
        return self.plan.treated(block if self.factors is None else self.factors(block), self.scales)

    @property
    def family(self) -> GrowingFamily[Any]:
        """The family that scores the rows treated so."""
        if self.numbers == CELLS:
            return Assorted(columns_of(self.plan, self.scales, ModelOptions()), self.plan.total_weight)
        levels = Assorted(_levels_of(self.plan, ModelOptions()), self.plan.total_weight)
        return Blended(self.numbers, np.array(self.anchor), levels)

    def to_dict(self) -> dict[str, Any]:
        """As plain lists, numbers and text; `model_treatment.py` reads them."""
        block = {"structure": self.numbers, "anchor": [list(row) for row in self.anchor]}
        factors = {} if self.factors is None else {"factors": asdict(self.factors)}
        return {**asdict(self.plan), "scales": list(self.scales), "block": block, **factors}


@dataclass(frozen=True)
class InverseTransform:
    """Treated blocks as the table has them; `encoding` is that of the table's numbers."""

    treat: ColumnTransform
    encoding: Encoding

    def __call__(self, block: Block) -> Block:
        return self.treat.plan.untreated(block, self.treat.scales, self.encoding)

    def of_columns(self, block: Block, kept: Array) -> tuple[InverseTransform, Block]:
        """The same for some of the columns, and these of a treated block."""
        plan = self.treat.plan
        kept, n = plan.with_atoms(kept), len(plan.numbers)
        numbers, levels = np.flatnonzero(kept[:n]), np.flatnonzero(kept[n:])
        treat = ColumnTransform(plan.only(kept), tuple(self.treat.scales[j] for j in numbers))
        codes = None if block.codes is None or not len(levels) else block.codes[:, levels]
        encoding = block.encoding.columns(numbers)
        few = replace(block, raw=block.raw[:, numbers], encoding=encoding, codes=codes, memo=None)
        return InverseTransform(treat, self.encoding), few

    def on_scales(self, numbers: Array) -> Array:
        """Numbers of such blocks on the scales of the model."""
        return self.treat.plan.on_scales(numbers, self.treat.scales)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What a user may ask of the model."""

    sharing: str = "background"
    membership: str = "soft"
    variance: str = "own"
    budget: int | None = None
    open_cost: float = 0.0
    spread_prior: float = 0.1  # a whole pseudo-row would widen small tight clusters (decision 35)
    level_prior: float = 1.0
    numbers: str = CELLS
    anchors: tuple[float, ...] = ()  # of the spreads, found by the search (`anchors.py`); none: the table's


@dataclass(frozen=True)
class AssortedProblem:
    """A table with its plan and the scale of each number; rows and family follow from these. Pickled, it leaves the
    table behind and keeps what was made of it."""

    table: Rows
    plan: TransformPlan
    options: ModelOptions
    scales: tuple[int, ...]
    held: Held = field(default_factory=Held, compare=False, repr=False)  # shared by all scales of one table

    @classmethod
    def plain(cls, table: Rows, plan: TransformPlan, options: ModelOptions) -> AssortedProblem:
        """Every number as it is."""
        return cls(table, plan, options, (PLAIN,) * len(plan.numbers))

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name != "rows"}
        return kept | {"table": None, "held": Held()}

    @property
    def has_table(self) -> bool:
        return self.table is not None

    @cached_property
    def rows(self) -> Rows:
        made = self.held.rows(self.table, self.scales)
        return derive(self.table, ColumnTransform(self.plan, self.scales)) if made is None else made

    @cached_property
    def columns(self) -> ColumnCosts:
        return columns_of(self.plan, self.scales, self.options)

    @cached_property
    def family(self) -> GrowingFamily[Any]:
        if self.options.numbers == CELLS:
            return self.cells
        if self.collinear:
            raise NoModelError(
                "collinear-numbers",
                f"some numbers follow from others, so no {self.options.numbers} block of them has a density",
                do='Use numbers="cells", or leave out columns that others determine',
            )
        levels = self._cells(_levels_of(self.plan, self.options))
        return Blended(self.options.numbers, self._covariance, levels)

    @property
    def treat(self) -> ColumnTransform:
        """How other rows are treated alike, and scored."""
        if self.options.numbers == CELLS:
            return ColumnTransform(self.plan, self.scales)
        return ColumnTransform(self.plan, self.scales, self.options.numbers, as_tuples(self._covariance))

    @cached_property
    def _covariance(self) -> Array:
        """Pooled, of the treated numbers."""
        return table_moments(self.rows).covariance

    @property
    def collinear(self) -> bool:
        """Whether the numbers lie in a plane: then they cannot be one Gaussian block."""
        return bool(np.linalg.eigvalsh(self._covariance)[0] < SINGULAR)

    @cached_property
    def cells(self) -> Assorted:
        """The family in which every number is a cell of its own."""
        return self._cells(self.columns)

    def _cells(self, columns: ColumnCosts) -> Assorted:
        options, plan = self.options, self.plan
        return Assorted(
            columns,
            plan.total_weight,
            sharing=options.sharing,
            membership="hard" if options.membership == "hard" else "soft",
            open_cost=options.open_cost,
            budget=options.budget,
            offset=plan.number_columns.scale_cost(self.scales) + self._anchors_cost,
        )

    @property
    def _anchors_cost(self) -> float:
        """Half a log N for each anchor that is not the table's."""
        pairs = zip(self.plan.numbers, self.options.anchors, strict=bool(self.options.anchors))
        return sum(float(np.log(max(n.weight, 1.0))) / 2 for n, anchor in pairs if anchor != 1)

    def anchored(self, anchors: tuple[float, ...]) -> AssortedProblem:
        """The same with the spreads anchored elsewhere."""
        before = self.options.anchors or (1.0,) * len(self.plan.numbers)
        units = [new / old for new, old in zip(anchors or (1.0,) * len(before), before, strict=True)]
        options = replace(self.options, anchors=anchors)
        return replace(self, plan=self.plan.in_units(units), options=options, held=Held())

    def like(self, other: AssortedProblem) -> AssortedProblem:
        """This table in the model, with the scales and the anchors, of another problem."""
        made = self.anchored(other.options.anchors) if other.options.anchors else self
        return replace(made, scales=other.scales, options=other.options)

    def on(self, table: Rows, share: float) -> AssortedProblem:
        """The same treatment on other rows, such as a sample that holds `share` of the weight."""
        return replace(self, table=table, plan=self.plan.weighing(share), held=Held())

    def reading(self, params: Any) -> tuple[Clusters, Mapping[str, Any]]:
        """The clusters of cells, and their sums, that have the memberships which `params` give: the parameters
        themselves, but for a block of numbers, which has no switches to read."""
        sums = self.rows.reduce(_visit_reading, (self.family, self.cells, params)).values
        if self.options.numbers == CELLS:
            return params, sums
        return self.cells.update(self.cells.blank(len(params)), sums), sums

    def rescaled(self, params: Clusters) -> tuple[AssortedProblem, Clusters] | None:
        """The scene in which every number has its best scale under the memberships that `params` give, and the
        parameters there; None when no change lowers the cost."""
        if not self.scales or self.options.numbers != CELLS:
            return None
        family, plan, n = self.cells, self.plan, len(self.plan.numbers)
        held = self.held.make(self.table, plan)
        sums = self.table.reduce(_visit_scales, (plan, self.scales, held, family, params)).values
        cells = CellSums.of_sums(
            np.zeros((len(params), len(SCALES) * n)),
            sums["observed"],
            sums["first"],
            sums["second"],
            sums["counts"],
        )
        numbers, columns = (
            replace(cells, counts=cells.counts[:, :0]),
            _numbers_on_every_scale(self.columns, plan),
        )
        price = relevance_price(params.group) if family.two_codes else 0.0
        before = np.tile(params.group[:, :n], len(SCALES))
        group = regroup(numbers, columns, self.options.sharing, before, price)
        told = grouping_costs(numbers, group, columns) + price * relevant(group)
        costs = told.reshape(len(SCALES), n) + plan.number_columns.scale_costs.T
        current, place = np.array(self.scales), np.arange(n)
        best = costs.argmin(axis=0)
        slack = 1e-9 * np.abs(costs[current, place])
        best = np.where(costs[best, place] < costs[current, place] - slack, best, current)
        if (best == current).all():
            return None
        here = best * n + place
        chosen = CellSums(cells.weight[:, here], cells.mean[:, here], cells.scatter[:, here], cells.counts)
        previous = params.group.copy()
        previous[:, :n] = np.where(best != current, group[:, here], previous[:, :n])
        scene = replace(self, scales=tuple(int(s) for s in best))
        return scene, scene.cells.from_cells(chosen, sums["weight"], previous)


def columns_of(plan: TransformPlan, scales: Sequence[int], options: ModelOptions) -> ColumnCosts:
    """What the costs of groups need to know of the treated columns."""
    numbers, common = plan.number_columns, options.variance == "shared"
    half_log = np.log(np.maximum(numbers.weight, 1.0)) / 2
    return ColumnCosts(
        floor=numbers.least_variance(scales),
        level_start=plan.level_start,
        share=plan.level_share,
        penalty=np.concatenate([half_log if common else 2 * half_log, plan.level_penalty]),
        column_penalty=float(half_log.sum()) if common else 0.0,
        spread_prior=options.spread_prior,
        level_prior=options.level_prior,
        common_variance=common,
    )


def _numbers_on_every_scale(columns: ColumnCosts, plan: TransformPlan) -> ColumnCosts:
    """Of the columns the numbers alone, once for each scale."""
    n, n_scales = len(plan.numbers), len(SCALES)
    floor = np.concatenate([plan.number_columns.least_variance((scale,) * n) for scale in range(n_scales)])
    penalty, level_start = np.tile(columns.penalty[:n], n_scales), np.zeros(1, dtype=np.int64)
    return replace(columns, floor=floor, penalty=penalty, level_start=level_start, share=np.zeros(0))


def _levels_of(plan: TransformPlan, options: ModelOptions) -> ColumnCosts:
    """As `columns_of`, of the categories alone."""
    return columns_of(replace(plan, numbers=()), (), options)


def _visit_reading(state: Any, block: Block) -> Sums:
    family, cells, params = state
    membership, _ = kernels.memberships(family.scores(params, block), family.hard)
    about = params if family is cells else cells.blank(len(params))
    return Sums(cells.gather(about, block, membership))


def _visit_scales(state: Any, block: Block) -> Sums:
    """Sums of the numbers on every scale (K, scales * numbers) under the memberships of the treated block."""
    plan, scales, held, family, params = state
    every = EveryScale.of(block, plan) if held is None else held.part(block)
    scores = family.scores(params, every.treated(block, scales))
    membership, _ = kernels.memberships(scores, family.hard)
    counted = np.ascontiguousarray(membership * block.weights[:, None])
    width, start = every.numbers.shape[1], family.columns.level_start
    mean = np.zeros((len(params), width))
    sums = kernels.product_sums(every.numbers, 1.0, np.zeros(width), None, every.codes, counted, mean, start)
    return Sums(sums._asdict())
