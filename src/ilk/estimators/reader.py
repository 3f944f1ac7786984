"""How new rows of an assorted table are read: plain data and visits that travel to where the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk import kernels
from ilk.assorted.fit import AssortedFit
from ilk.assorted.problem import ColumnTransform
from ilk.assorted.transform import TransformPlan
from ilk.estimators.tables import Format
from ilk.families.mixture import shares_of
from ilk.table.block import Array, Block


def places(plan: TransformPlan, form: Format) -> list[int]:
    """The user's column of each treated column."""
    place = {column.name: j for j, column in enumerate(form.schema.columns)}
    numeric, coded = form.schema.numeric, form.schema.coded
    numbers = [place[numeric[number.source].name] for number in plan.numbers]
    sources = [coded if category.kind == "levels" else numeric for category in plan.categories]
    pairs = zip(plan.categories, sources, strict=True)
    return numbers + [place[source[category.source].name] for category, source in pairs]


@dataclass(frozen=True)
class Reader:
    """What new rows are read by: plain data, that travels without the rows of the fit."""

    treat: ColumnTransform
    family: Any
    params: Any

    @classmethod
    def of(cls, found: AssortedFit) -> Reader:
        return cls(ColumnTransform(found.scene.plan, found.scene.scales), found.family, found.params)

    def scores(self, block: Block) -> Array:
        return np.asarray(self.family.scores(self.params, self.treat(block)))


def visit_label(reader: Reader, block: Block) -> Array:
    return np.asarray(reader.scores(block).argmax(axis=1), dtype=np.int32)


def visit_membership(reader: Reader, block: Block) -> Array:
    return shares_of(reader.scores(block))


def visit_log_density(reader: Reader, block: Block) -> Array:
    cost = kernels.memberships(reader.scores(block), False)[1]
    return np.asarray(reader.treat.plan.log_slopes(block, reader.treat.scales) - cost)
