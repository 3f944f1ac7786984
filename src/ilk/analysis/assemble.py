"""From a grouping to what a user holds: descriptions of the groups, memberships, silhouettes, the model, the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import ilk
from ilk.analysis.cautions import cautions
from ilk.analysis.matching import carried_over
from ilk.analysis.prepare import Job, Prepared
from ilk.analysis.result import Result
from ilk.analysis.summary import reproduction, summary_of
from ilk.deadline import Deadline
from ilk.engines.memory import MemoryRows
from ilk.fitting.fit import label_counts
from ilk.model.grouped import visit_memberships
from ilk.model.model import Model
from ilk.model.no_prediction_rule import NO_PREDICTION_RULE
from ilk.model.placed import N_QUANTILES, Placed, cost_quantiles
from ilk.monitor.drift import baseline
from ilk.report.evidence import Evidence
from ilk.report.explanation import explanation
from ilk.report.facts import describe
from ilk.report.groups import Group
from ilk.report.summary import plain, truth_entry
from ilk.selection.candidates import Search
from ilk.selection.grouping import Grouping
from ilk.selection.sharpness import Sharpness, sharpness_of
from ilk.selection.verdict import judge
from ilk.table.block import Array
from ilk.table.ledger import Caution
from ilk.table.weights import in_unit


def for_every_row(ready: Prepared, values: Array, otherwise: float) -> Array:
    """A value for each row of the table, those set aside included."""
    n_rows = ready.table.n_rows
    if len(values) == n_rows:
        return values
    everyone = np.full((n_rows, *values.shape[1:]), otherwise, dtype=values.dtype)
    if ready.looked is None:
        everyone[ready.kept] = values
    else:
        used = np.ones(n_rows, dtype=bool)
        used[ready.looked.skipped] = False
        everyone[used] = values
    return everyone


def looked_at(ready: Prepared, grouping: Grouping) -> tuple[Prepared, Grouping]:
    """The rows that are told, and their grouping: all of a table in memory, a sample of a larger one."""
    if ready.looked is None:
        return ready, grouping
    places = ready.looked.places
    block = ready.rows.take(places)
    if len(places) < ready.rows.n_rows:
        block = replace(block, weight=None)  # they were drawn by weight
    rows = MemoryRows.of_block(block, ready.rows.threads)
    return replace(ready, rows=rows, weight=block.weight), replace(grouping, labels=grouping.labels[places])


def with_sizes(groups: Sequence[Group], grouping: Grouping) -> tuple[Group, ...]:
    """Groups that were told from a sample, with the sizes they have among all rows."""
    rows = label_counts(grouping.labels, len(grouping.size))
    total = float(grouping.size.sum())
    return tuple(
        replace(one, rows=int(n), weight=float(heft), share=float(heft) / total)
        for one, n, heft in zip(groups, rows, grouping.size, strict=True)
    )


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
            stability=value,
            nearest=None if pair is None else {"group": made[pair[1]].letter, "separation": pair[0]},
        )
        for one, value, pair in zip(made, stable, near, strict=True)
    )


def model_of(job: Job, ready: Prepared, found: Search, grouping: Grouping, groups: Sequence[Group]) -> Model:
    told = replace(found.fit, labels=grouping.labels, size=grouping.size)
    return Model(
        method=found.recipe.name,
        family=found.recipe.family.name,
        options={"scale": job.scale, "trim": found.recipe.trim},
        schema=ready.used,
        encoding=ready.encoding,
        params=found.fit.params,
        group_of=tuple(int(number) for number in grouping.grouped.group_of),
        letters=tuple(g.letter for g in groups),
        names=tuple(g.name for g in groups),
        sizes=in_unit(np.asarray(grouping.size, dtype=np.float64), ready.weight_unit),
        quantiles=np.zeros((len(grouping.size), N_QUANTILES))
        if found.recipe.family is NO_PREDICTION_RULE
        else cost_quantiles(ready.rows, found.recipe.family, told, ready.weight),
        training={
            "rows": found.fit.n_rows,
            "source": ready.table.source,
            "ilk": ilk.__version__,
            "columns": baseline(ready.described, ready.weight),
        },
        treat=ready.treat,
    )


def memberships(ready: Prepared, grouping: Grouping) -> Array | None:
    """Probability of each group for each row used; None for hard methods."""
    if not grouping.grouped.soft:
        return None
    return np.concatenate([*ready.rows.scan(visit_memberships, grouping.grouped)])


def sharpness_of_groups(ready: Prepared, found: Search, grouping: Grouping, seed: int) -> Sharpness | None:
    """Silhouettes of the groups, where the search has those of the pieces."""
    same_rows = found.n_rows_searched == ready.rows.n_rows
    if found.sharpness is None or (grouping.grouped.whole and same_rows and ready.looked is None):
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
    placed = None
    if model.has_rule:
        placed = settled(model.place_rows(ready.rows), grouping.labels, probabilities)
    ids = None if ready.schema.id is None else ready.cells(ready.schema.id)
    return Evidence(
        ready.described,
        grouping.labels,
        len(grouping.size),
        ready.kept,
        weight=ready.weight,
        probabilities=probabilities,
        second=None if placed is None else placed.second,
        novelty=None if placed is None else placed.novelty,
        silhouette=None if sharp is None else (sharp.looked, sharp.values),
        ids=ids,
    )


def answer_of(
    job: Job,
    ready: Prepared,
    found: Search,
    grouping: Grouping,
    notes: list[Caution],
    times: tuple[Deadline, float],
    old: Model | None,
) -> Result:
    """All that is told of the groups; `times` are the clock of the run and how long the search took."""
    notes = [*ready.warnings, *notes, *cautions(job, ready, found, grouping.interrupted)]
    everything, labels = grouping, grouping.labels
    ready, grouping = looked_at(ready, grouping)
    probabilities = memberships(ready, grouping)
    own = None if probabilities is None else probabilities[np.arange(ready.rows.n_rows), grouping.labels]
    sharp = sharpness_of_groups(ready, found, grouping, job.seed)
    groups = told_groups(ready, grouping, sharp, own)
    matching = None
    if old is not None:
        groups, matching = carried_over(old, ready, labels, groups)
    model = model_of(job, ready, found, grouping, groups)
    verdict = judge(found, grouping, model.letters, [c.name for c in ready.used.numeric])
    told = explanation(evidence_of(ready, grouping, model, probabilities, sharp), groups)
    if ready.looked is not None:
        groups, probabilities = with_sizes(groups, everything), None
    groups = tuple(
        replace(group, rule=rule, weight=in_unit(group.weight, ready.weight_unit))
        for group, rule in zip(groups, told.pop("rules"), strict=True)
    )
    truth = None
    if job.truth is not None:
        marks = np.array(model.letters)[grouping.labels]
        truth = truth_entry(marks, ready.cells(job.truth).to_pylist(), job.truth)
    sizing = grouping.sizing
    if sizing is not None:
        notes = [*notes, *sizing.cautions(grouping.grouped.group_of, model.letters)]
    summary = summary_of(job, ready, found, everything, sharp, notes)
    summary.update(
        verdict=verdict.to_dict(),
        merge=grouping.to_dict(model.letters),
        sizing=None if sizing is None else sizing.to_dict(grouping.grouped.group_of, model.letters),
        matching=matching,
        groups=[g.to_dict() for g in groups],
        truth=truth,
        **told,
        reproduce=reproduction(ready, found, summary["options"]),
        seconds=times[0].spent,
    )
    summary["search"]["seconds"] = times[1]
    return Result(
        labels=for_every_row(ready, labels, -1),
        probabilities=None if probabilities is None else for_every_row(ready, probabilities, np.nan),
        k=grouping.n_groups,
        components=grouping.pieces,
        groups=groups,
        candidates=found.candidates,
        verdict=verdict,
        warnings=tuple(notes),
        model=model,
        table=ready.table,
        _summary=plain(summary),
    )
