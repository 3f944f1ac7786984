"""From a grouping to what a user holds: descriptions of the groups, memberships, silhouettes, the model, the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import ilk
from ilk.analysis.cautions import cautions
from ilk.analysis.findings import Findings
from ilk.analysis.matching import carried_over
from ilk.analysis.prepare import Input
from ilk.analysis.result import Result
from ilk.analysis.shown import Shown
from ilk.analysis.summary import reproduction, summary_of
from ilk.errors import Caution
from ilk.fitting.fit import label_counts
from ilk.model.model import Model
from ilk.model.no_prediction_rule import NO_PREDICTION_RULE
from ilk.model.placed import N_QUANTILES, Placed, Scored, cost_quantiles, settled
from ilk.model.registry import known
from ilk.monitor.drift import baseline
from ilk.report.evidence import Evidence
from ilk.report.explanation import explanation, told_apart
from ilk.report.facts import describe
from ilk.report.groups import Group
from ilk.report.summary import plain, truth_entry
from ilk.selection.grouping import Grouping
from ilk.selection.sharpness import Sharpness, sharpness_of
from ilk.selection.verdict import judge
from ilk.table.block import Array
from ilk.table.weights import in_unit


def with_sizes(groups: Sequence[Group], grouping: Grouping) -> tuple[Group, ...]:
    """Groups that were told from a sample, with the sizes they have among all rows."""
    rows = label_counts(grouping.labels, len(grouping.size))
    total = float(grouping.size.sum())
    return tuple(
        replace(one, rows=int(n), weight=float(heft), share=float(heft) / total)
        for one, n, heft in zip(groups, rows, grouping.size, strict=True)
    )


def told_groups(
    shown: Shown, grouping: Grouping, sharp: Sharpness | None, scored: Scored | None
) -> tuple[Group, ...]:
    """What each group is, how it returns in resamples, and which group it is parted from least."""
    shares = None if scored is None else scored.memberships
    made = describe(
        shown.columns,
        shown.labels,
        len(grouping.size),
        weight=shown.weight,
        silhouette=None if sharp is None else sharp.groups,
        probability=None if shares is None else shares[np.arange(len(shares)), shown.labels],
        threads=shown.rows.threads,
    )
    stable = grouping.stable or (None,) * len(made)
    near = [
        min(((value, other) for other, value in enumerate(row) if value is not None), default=None)
        for row in grouping.valleys
    ]
    evidence = Evidence(shown.columns, shown.labels, len(made), shown.numbers, weight=shown.weight)
    return told_apart(
        evidence,
        tuple(
            replace(
                one,
                stability=value,
                nearest=None if pair is None else {"group": made[pair[1]].letter, "separation": pair[0]},
            )
            for one, value, pair in zip(made, stable, near, strict=True)
        ),
    )


def model_of(findings: Findings, shown: Shown, scored: Scored | None, groups: Sequence[Group]) -> Model:
    """The model that gives new rows their groups."""
    given, seen, grouping = findings.given, findings.seen, findings.grouping
    recipe, fit = findings.search.recipe, findings.search.fit
    n_groups = len(grouping.size)
    known(recipe.family.name)  # refused here, not where the model is used
    return Model(
        method=recipe.name,
        family=recipe.family.name,
        options={"scale": findings.job.scale, "trim": recipe.trim, **_marks_of(findings)},
        schema=given.used,
        encoding=seen.encoding,
        params=fit.params,
        group_of=tuple(int(number) for number in grouping.grouped.group_of),
        letters=tuple(g.letter for g in groups),
        names=tuple(g.name for g in groups),
        sizes=in_unit(np.asarray(grouping.size, dtype=np.float64), given.weight_unit),
        quantiles=np.zeros((n_groups, N_QUANTILES))
        if scored is None
        else cost_quantiles(scored.cost, shown.labels, n_groups, shown.weight, shown.rows.threads),
        training={
            "rows": fit.n_rows,
            "source": given.table.source,
            "ilk": ilk.__version__,
            "columns": baseline(shown.columns, shown.weight, shown.rows.threads),
        },
        treat=seen.treat,
        transforms=given.transforms,
    )


def _marks_of(findings: Findings) -> dict[str, bool]:
    """What an answer of the model has besides the group: a segment, a name that somebody gave."""
    named = findings.earlier is not None and findings.earlier.named
    marks = {"segmented": findings.grouping.segmented, "named": named}
    return {name: True for name, there in marks.items() if there}


def scores_of(findings: Findings, shown: Shown) -> Scored | None:
    """The rows shown under the model; None where it has no rule."""
    if findings.search.recipe.family is NO_PREDICTION_RULE:
        return None
    return Scored.of(shown.rows, findings.grouping.grouped)


def sharpness_of_groups(findings: Findings, shown: Shown) -> Sharpness | None:
    """Silhouettes of the groups, where the search has those of the pieces."""
    search, grouping = findings.search, findings.grouping
    same_rows = search.n_rows_searched == shown.rows.n_rows and not shown.sample
    if search.sharpness is None or (grouping.grouped.whole and same_rows):
        return search.sharpness
    costs, seed = grouping.grouped.costs, findings.job.seed
    return sharpness_of(shown.rows, shown.labels, len(grouping.size), costs, seed)


def placed_rows(shown: Shown, scored: Scored, model: Model) -> Placed:
    """Where the rows shown were put."""
    return settled(scored.placed(model.quantiles), shown.labels, scored.memberships)


def evidence_of(
    findings: Findings,
    shown: Shown,
    scored: Scored | None,
    placed: Placed | None,
    sharp: Sharpness | None,
) -> Evidence:
    """What the groups are explained from: plain arrays of the rows shown."""
    name = findings.given.schema.id
    return Evidence(
        shown.columns,
        shown.labels,
        len(findings.grouping.size),
        shown.numbers,
        weight=shown.weight,
        probabilities=None if scored is None else scored.memberships,
        second=None if placed is None else placed.second,
        novelty=None if placed is None else placed.novelty,
        silhouette=None if sharp is None else (sharp.looked, sharp.values),
        ids=None if name is None else shown.cells(name),
        threads=shown.rows.threads,
    )


def answer_of(findings: Findings, shown: Shown) -> Result:
    """All that is told of the groups."""
    given, search, grouping = findings.given, findings.search, findings.grouping
    scored, sharp = scores_of(findings, shown), sharpness_of_groups(findings, shown)
    lettered, matching = _lettered(findings, shown, told_groups(shown, grouping, sharp, scored))
    model = model_of(findings, shown, scored, lettered)
    placed = None if scored is None else placed_rows(shown, scored, model)
    verdict = judge(search, grouping, model.letters, [c.name for c in given.used.numeric])
    told = explanation(evidence_of(findings, shown, scored, placed, sharp), lettered)
    groups = _finished(findings, shown, lettered, told.pop("rules"))
    notes = (*given.warnings, *findings.notes, *cautions(findings, shown), *_size_notes(grouping, model))
    summary = {
        **summary_of(findings, sharp, notes),
        "verdict": verdict.to_dict(),
        "merge": grouping.to_dict(model.letters),
        "sizing": _sizing(grouping, model),
        "matching": matching,
        "groups": [group.to_dict() for group in groups],
        "names": _given_names(findings, matching, groups),
        "truth": _truth(findings, shown, model),
        **told,
        "reproduce": reproduction(findings, shown),
        "seconds": findings.clock.spent,
    }
    finest = given.for_every_row(grouping.labels, -1)
    probabilities, placed = _for_every_row(given, scored, placed) if not shown.sample else (None, None)
    return Result(
        labels=np.minimum(finest, 0) if grouping.segmented else finest,
        segments=finest if grouping.segmented else None,
        probabilities=probabilities,
        k=grouping.n_groups,
        components=grouping.pieces,
        groups=groups,
        candidates=search.candidates,
        verdict=verdict,
        warnings=notes,
        model=model,
        table=given.table,
        placed=placed,
        _summary=plain(summary),
    )


def _for_every_row(
    given: Input, scored: Scored | None, placed: Placed | None
) -> tuple[Array | None, Placed | None]:
    """Probabilities and places for each row of the table, where all rows used are shown."""
    if scored is None or placed is None:
        return None, None
    shares = scored.memberships
    everyone = None if shares is None else given.for_every_row(shares, np.nan)
    group, second = (given.for_every_row(number, -1) for number in (placed.group, placed.second))
    novelty, probability = (given.for_every_row(v, np.nan) for v in (placed.novelty, placed.probability))
    return everyone, Placed(group, second, novelty, probability)


def _lettered(
    findings: Findings, shown: Shown, groups: tuple[Group, ...]
) -> tuple[tuple[Group, ...], dict[str, Any] | None]:
    """The groups with the letters and names of an earlier run, if there is one, and what became of its groups."""
    if findings.earlier is None:
        return groups, None
    return carried_over(findings.earlier, shown, groups)


def _given_names(
    findings: Findings, matching: dict[str, Any] | None, groups: Sequence[Group]
) -> dict[str, str]:
    """By letter, the names that somebody gave to groups of an earlier run."""
    if matching is None or findings.earlier is None or not findings.earlier.named:
        return {}
    kept = {entry["letter"] for entry in matching["kept"]}
    return {group.letter: group.name for group in groups if group.letter in kept}


def _finished(
    findings: Findings, shown: Shown, groups: tuple[Group, ...], rules: Sequence[Any]
) -> tuple[Group, ...]:
    """The groups with their rules, their sizes those among all rows, weights as the user counts them."""
    sized = with_sizes(groups, findings.grouping) if shown.sample else groups
    unit = findings.given.weight_unit
    return tuple(
        replace(group, rule=rule, weight=in_unit(group.weight, unit))
        for group, rule in zip(sized, rules, strict=True)
    )


def _size_notes(grouping: Grouping, model: Model) -> list[Caution]:
    sizing = grouping.sizing
    return [] if sizing is None else sizing.cautions(grouping.grouped.group_of, model.letters)


def _sizing(grouping: Grouping, model: Model) -> dict[str, Any] | None:
    sizing = grouping.sizing
    return None if sizing is None else sizing.to_dict(grouping.grouped.group_of, model.letters)


def _truth(findings: Findings, shown: Shown, model: Model) -> dict[str, Any] | None:
    """How the groups compare with a class that is known."""
    name = findings.job.truth
    if name is None:
        return None
    return truth_entry(np.array(model.letters)[shown.labels], shown.cells(name).to_pylist(), name)
