"""From a grouping to what a user holds: descriptions of the groups, memberships, silhouettes, the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import ilk
from ilk.drift import baseline
from ilk.fitting.grouped import visit_memberships
from ilk.fitting.model import Model, Placed, cost_quantiles
from ilk.prepare import Job, Prepared
from ilk.report.evidence import Evidence
from ilk.report.facts import Group, describe
from ilk.selection.grouping import Grouping
from ilk.selection.search import Search
from ilk.selection.sharpness import Sharpness, sharpness_of
from ilk.table.block import Array


def for_every_row(ready: Prepared, values: Array, otherwise: float) -> Array:
    """A value for each row of the table, those set aside included."""
    everyone = np.full((ready.table.n_rows, *values.shape[1:]), otherwise, dtype=values.dtype)
    everyone[ready.kept] = values
    return everyone


def told_groups(
    ready: Prepared, grouping: Grouping, sharp: Sharpness | None, own: Array | None
) -> tuple[Group, ...]:
    """What each group is, how it returns in resamples, and which group it is parted from least."""
    made = describe(
        ready.described,
        grouping.labels,
        len(grouping.size),
        weight=ready.weight,
        silhouette=None if sharp is None else sharp.groups,
        probability=own,
    )
    stable = grouping.stable or (None,) * len(made)
    near = [
        min(((value, other) for other, value in enumerate(row) if value is not None), default=None)
        for row in grouping.valleys
    ]
    return tuple(
        replace(
            one,
            stable=value,
            nearest=None if pair is None else {"group": made[pair[1]].letter, "valley": pair[0]},
        )
        for one, value, pair in zip(made, stable, near, strict=True)
    )


def model_of(job: Job, ready: Prepared, found: Search, grouping: Grouping, groups: Sequence[Group]) -> Model:
    told = replace(found.fit, labels=grouping.labels, size=grouping.size)
    return Model(
        found.recipe.name,
        found.recipe.family.name,
        {"scale": job.scale, "trim": found.recipe.trim},
        ready.used,
        ready.encoding,
        found.fit.params,
        tuple(int(number) for number in grouping.grouped.group_of),
        tuple(g.letter for g in groups),
        tuple(g.name for g in groups),
        np.asarray(grouping.size, dtype=np.float64),
        cost_quantiles(ready.rows, found.recipe.family, told, ready.weight),
        {
            "rows": found.fit.n_rows,
            "source": ready.table.source,
            "ilk": ilk.__version__,
            "columns": baseline(ready.described, ready.weight),
        },
        ready.treat,
    )


def memberships(ready: Prepared, grouping: Grouping) -> Array | None:
    """Probability of each group for each row used; None for hard methods."""
    if not grouping.grouped.soft:
        return None
    return np.concatenate([*ready.rows.scan(visit_memberships, grouping.grouped)])


def sharpness_of_groups(ready: Prepared, found: Search, grouping: Grouping, seed: int) -> Sharpness | None:
    """Silhouettes of the groups, where the search has those of the pieces."""
    if found.sharpness is None or grouping.grouped.whole:
        return found.sharpness
    return sharpness_of(ready.rows, grouping.labels, len(grouping.size), grouping.grouped.costs, seed)


def settled(placed: Placed, labels: Array, probabilities: Array | None) -> Placed:
    """Where rows were put, which under a limit of size is not always their best group: that is then the second."""
    moved = np.flatnonzero((placed.group != labels) & (labels >= 0))
    if not len(moved):
        return placed
    second, probability = placed.second.copy(), placed.probability.copy()
    second[moved] = placed.group[moved]
    if probabilities is not None:
        probability[moved] = probabilities[moved, labels[moved]]
    return replace(placed, group=labels, second=second, probability=probability)


def evidence_of(
    ready: Prepared, grouping: Grouping, model: Model, probabilities: Array | None, sharp: Sharpness | None
) -> Evidence:
    """What the groups are explained from: plain arrays of the rows used."""
    placed = settled(model.place_rows(ready.rows), grouping.labels, probabilities)
    ids = None if ready.schema.id is None else ready.table.column(ready.schema.id).take(ready.kept)
    return Evidence(
        ready.described,
        grouping.labels,
        len(grouping.size),
        ready.kept,
        weight=ready.weight,
        probabilities=probabilities,
        second=placed.second,
        novelty=placed.novelty,
        silhouette=None if sharp is None else (sharp.looked, sharp.values),
        ids=ids,
    )
