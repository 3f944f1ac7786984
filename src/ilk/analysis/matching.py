"""Letters and names that survive a refit: a group keeps those of the earlier group it shares most rows with."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ilk.analysis.folder import MODEL
from ilk.analysis.shown import Shown
from ilk.errors import DataError, UsageError, shown
from ilk.measures.repeats import corresponding
from ilk.model.file import read_model
from ilk.model.model import Model
from ilk.report.figures import letter
from ilk.report.groups import Group
from ilk.table.block import Array

SHARED = 0.5  # of the rows of one of the two; below, a group is new


def earlier(given: Any) -> Model:
    """The model to match to: itself, or read from a run or a model file."""
    if isinstance(given, Model):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise UsageError(
            "bad-match_to",
            f"match_to={shown(repr(given))} is no earlier run",
            do="Give a Result, a Model, or the path of a run or of a model file",
        )
    path = os.fspath(given)
    inside = os.path.isdir(path)
    path = os.path.join(path, MODEL) if inside else path
    if not os.path.lexists(path):
        raise UsageError(
            "no-run",
            f"there is no run or model file {shown(path, 120)} to match to",
            do="Give a folder that ilk fit wrote, or a model file",
        )
    return read_model(path, follow=not inside)


def carried_over(old: Model, now: Shown, groups: Sequence[Group]) -> tuple[tuple[Group, ...], dict[str, Any]]:
    """The groups with the letters and names of the old ones they correspond to, and what became of these.

    Old groups are those that the old model gives the rows of this table; a row further out than any it was fitted
    on is not shared with them.
    """
    (before, known), labels = _placed(old, now), now.labels
    shared = np.zeros((old.k, len(groups)), dtype=np.int64)
    np.add.at(shared, (before[known], labels[known]), 1)
    sizes = (
        np.bincount(before[before >= 0], minlength=old.k),
        np.bincount(labels, minlength=len(groups)),
    )
    partner: dict[int, int] = {}
    for one, other in corresponding(shared):
        share = shared[one, other] / min(sizes[0][one], sizes[1][other])
        if share > SHARED:
            partner[other] = one
    marks = _marks(old, partner, len(groups))
    mark_of = {group.letter: mark for group, mark in zip(groups, marks, strict=True)}
    made = tuple(
        replace(
            group,
            letter=marks[number],
            name=old.names[partner[number]] if number in partner else group.name,
            nearest=None
            if group.nearest is None
            else {**group.nearest, "group": mark_of[group.nearest["group"]]},
            unlike=None if group.unlike is None else replace(group.unlike, group=mark_of[group.unlike.group]),
        )
        for number, group in enumerate(groups)
    )
    kept = [
        {"letter": marks[other], "rows": int(shared[one, other]), "rows_before": int(sizes[0][one])}
        for other, one in sorted(partner.items())
    ]
    return made, {
        "kept": kept,
        "new": [marks[number] for number in range(len(groups)) if number not in partner],
        "gone": [mark for one, mark in enumerate(old.letters) if one not in partner.values()],
    }


def _placed(old: Model, now: Shown) -> tuple[Array, Array]:
    """The old group of each row, and whether the row is like those of that group."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            placed = old.place(now.table)
    except DataError as error:
        raise DataError(
            error.code,
            f"the earlier run cannot place these rows: {error.what}",
            where=error.where,
            do="Match to a run of a table with the same columns",
        ) from None
    used = slice(None) if now.table.n_rows == len(now.numbers) else now.numbers
    return placed.group[used], placed.novelty[used] < 1


def _marks(old: Model, partner: dict[int, int], n_groups: int) -> list[str]:
    """The letter of each group: the old one, or for a new group the next that the old run did not use."""
    fresh = (mark for mark in map(letter, range(old.k + n_groups)) if mark not in old.letters)
    return [old.letters[partner[g]] if g in partner else next(fresh) for g in range(n_groups)]
