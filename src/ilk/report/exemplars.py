"""Rows to look at: typical ones (medoids), those on the border, the least sure, the most unusual.

Every entry names its row, says what is known of it and holds the cells that matter, so that nothing else of
the table is needed to print it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ilk.report.evidence import Evidence
from ilk.report.facts import Array
from ilk.report.figures import value_text
from ilk.report.groups import Group
from ilk.report.plane import Design

TYPICAL, BORDER = 3, 2
LISTED = 20
COLUMNS_SHOWN = 8
DEFINING = 6
MEDOID_ROWS = 400  # rows of a group among which the medoids are looked for
UNUSUAL_TRIED = 500  # rows of the highest novelty that are put in order by their distance
LONGEST_TEXT = 80
BORDERLINE = 0.80  # sure below this: the row sits between groups
FARTHEST = 1e300  # squared deviations, so that they can be added


def exemplars(
    evidence: Evidence, groups: Sequence[Group], made: Design, columns: Sequence[str]
) -> dict[str, Any]:
    """Typical and border rows of each group, and three lists over the whole table."""
    shown = list(columns[:COLUMNS_SHOWN])
    return {
        "columns": shown,
        "groups": [_of_group(evidence, groups, made, g) for g in range(evidence.k)],
        "least_certain": [entry(evidence, i, groups, shown) for i in least_sure(evidence)],
        "unusual": [
            {**entry(evidence, i, groups, shown), "because": because}
            for i, because in most_unusual(evidence, groups)
        ],
        "nearer": [
            {**entry(evidence, i, groups, shown), "silhouette": value}
            for i, value in nearer_elsewhere(evidence)
        ],
    }


def counts(evidence: Evidence) -> dict[str, Any]:
    """How many rows are of each sort; said even where the rows themselves are not shown."""
    sure, looked = evidence.sure, evidence.silhouette
    return {
        "uncertain": None if sure is None or evidence.k < 2 else int((sure < BORDERLINE).sum()),
        "uncertain_below": BORDERLINE,
        "examined": evidence.n_rows,
        "nearer": None if looked is None else int((looked[1] < 0).sum()),
        "silhouette_rows": None if looked is None else len(looked[1]),
    }


def entry(evidence: Evidence, i: int, groups: Sequence[Group], columns: Sequence[str]) -> dict[str, Any]:
    """What is known of one row."""
    by_name = {column.name: column for column in evidence.columns}
    second = -1 if evidence.next_group is None else int(evidence.next_group[i])
    group = int(evidence.labels[i])
    likely = None
    if evidence.probabilities is not None and second >= 0:
        likely = float(evidence.probabilities[i, second])
    return {
        "row": int(evidence.row_numbers[i]),
        "id": None if evidence.ids is None else cut(evidence.ids[i]),
        "group": groups[group].letter if group >= 0 else None,
        "probability": None if evidence.sure is None else float(evidence.sure[i]),
        "second": groups[second].letter if second >= 0 else None,
        "second_probability": likely,
        "novelty": None if evidence.novelty is None else float(evidence.novelty[i]),
        "cells": [_cell(by_name[name], i) for name in columns],
    }


def cut(value: Any) -> str | None:
    """A cell as text of a bearable length."""
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _cell(column: Any, i: int) -> float | str | None:
    value = column.values[i]
    if column.is_number:
        if column.clock is not None and not np.isnan(value):
            return value_text(float(value), float(value) % 1 > 0, column.clock)
        return None if np.isnan(value) else float(value)
    return None if value < 0 else cut(column.levels[int(value)])


def _of_group(evidence: Evidence, groups: Sequence[Group], made: Design, g: int) -> dict[str, Any]:
    columns = [fact.column for fact in groups[g].facts if fact.distinctive][:DEFINING]
    columns = columns or [fact.column for fact in groups[g].facts][:DEFINING]
    return {
        "columns": columns,
        "typical": [entry(evidence, i, groups, columns) for i in medoids(evidence, made, g)],
        "border": [entry(evidence, i, groups, columns) for i in _border(evidence, g)],
    }


def medoids(evidence: Evidence, made: Design, g: int) -> list[int]:
    """Rows of the group with the least sum of distances to the others of it."""
    sample = evidence.sample
    mine = np.flatnonzero(sample.label == g)
    mine = mine[:: max(1, -(-len(mine) // MEDOID_ROWS))]
    if not len(mine):
        return []
    values, heft = made.values[mine], sample.heft[mine]
    square = (values**2).sum(axis=1)
    distance = np.sqrt(np.maximum(square[:, None] + square - 2 * values @ values.T, 0.0))
    best = np.argsort(distance @ heft, kind="stable")[:TYPICAL]
    return [int(i) for i in sample.place[mine[best]]]


def _border(evidence: Evidence, g: int) -> list[int]:
    """Rows of the group that are nearest to another: least sure, or of the lowest silhouette."""
    if evidence.k < 2:
        return []
    if evidence.sure is not None:
        return _lowest(np.where(evidence.labels == g, evidence.sure, np.inf), BORDER)
    if evidence.silhouette is None:
        return []
    looked, value = evidence.silhouette
    low = _lowest(np.where(evidence.labels[looked] == g, value, np.inf), BORDER)
    return [int(looked[i]) for i in low]


def _lowest(values: Array, most: int) -> list[int]:
    """Places of the smallest finite values, the smallest first, ties by place."""
    at = np.flatnonzero(np.isfinite(values))
    if len(at) > 4 * most:
        limit = np.partition(values[at], most)[most]
        at = at[values[at] <= limit]
    return [int(i) for i in at[np.argsort(values[at], kind="stable")][:most]]


def least_sure(evidence: Evidence) -> list[int]:
    """Rows with the smallest probability of their own group."""
    if evidence.sure is None or evidence.k < 2:
        return []
    return _lowest(np.where(evidence.labels >= 0, evidence.sure, np.inf), LISTED)


def most_unusual(evidence: Evidence, groups: Sequence[Group]) -> list[tuple[int, dict[str, Any] | None]]:
    """Rows furthest out in their groups, with the column that puts them there.

    The model's novelty picks the candidates; equal ones are put in order by their distance from the group,
    the squares of their deviations in spreads and, for levels, -2 log of the share.
    """
    score = np.zeros(evidence.n_rows) if evidence.novelty is None else np.nan_to_num(evidence.novelty)
    score = np.where(evidence.labels >= 0, score, -1.0)
    limit = np.partition(score, -min(UNUSUAL_TRIED, len(score)))[-min(UNUSUAL_TRIED, len(score))]
    tried = np.flatnonzero((score >= limit) & (score >= 0))[: 4 * UNUSUAL_TRIED]
    away = _strangeness(evidence, groups, tried)
    order = np.lexsort((-away.sum(axis=1), -score[tried]))[:LISTED]
    found = []
    for at in order:
        j = int(away[at].argmax()) if away.shape[1] else 0
        strange = away.shape[1] > 0 and away[at, j] > 4.0  # beyond two spreads
        because = (
            {"column": evidence.columns[j].name, "spreads": float(np.sqrt(away[at, j]))} if strange else None
        )
        found.append((int(tried[at]), because))
    return found


def _strangeness(evidence: Evidence, groups: Sequence[Group], tried: Array) -> Array:
    """Squared deviation of each tried row from its group, column by column."""
    away = np.zeros((len(tried), len(evidence.columns)))
    facts = [{fact.column: fact for fact in group.facts} for group in groups]
    label = evidence.labels[tried]
    for j, column in enumerate(evidence.columns):
        if not column.used or not column.is_number:
            continue
        of_groups = [one[column.name] for one in facts]
        middle = np.array([np.nan if fact.value is None else fact.value for fact in of_groups])
        spread = np.array([max(fact.spread or 0.0, 0.05 * (fact.whole_spread or 0.0)) for fact in of_groups])
        with np.errstate(over="ignore"):  # what is beyond all numbers is as far as one can be
            gap = column.values[tried].astype(np.float64) - middle[label]
            seen = ~np.isnan(gap) & (spread[label] > 0)
            away[seen, j] = np.minimum((gap[seen] / spread[label][seen]) ** 2, FARTHEST)
    return away


def nearer_elsewhere(evidence: Evidence) -> list[tuple[int, float]]:
    """Rows with the lowest negative silhouettes, of those that were looked at."""
    if evidence.silhouette is None:
        return []
    looked, value = evidence.silhouette
    low = _lowest(np.where(value < 0, value, np.inf), LISTED)
    return [(int(looked[i]), float(value[i])) for i in low]
