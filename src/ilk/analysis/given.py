"""Groups that came from elsewhere: the labels of a user, as a run would have found them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ilk.analysis.findings import Findings
from ilk.analysis.job import Job
from ilk.analysis.matching import earlier
from ilk.analysis.on_cluster import ClusterFrame
from ilk.analysis.prepare import Input, Seen, prepare
from ilk.analysis.result import Result
from ilk.errors import DataError, Option, ResourceError, shown
from ilk.fitting.deadline import Deadline
from ilk.measures.labels import codes_of, same_length
from ilk.methods import GIVEN
from ilk.table.block import Array
from ilk.table.out_of_core.memory_limit import open_table
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table
from ilk.table.schema import check_name

OUTLIER = -1  # the label of rows in no group, as scikit-learn has it
ROWS_A_GROUP = 2  # on average; labels of fewer are names of rows


def labelled(job: Job, clock: Deadline) -> tuple[Findings, list[str | None]]:
    """What is known of the groups that `job.labels` are, and the name of each."""
    from ilk.selection.given_labels import measured  # imports scikit-learn, which takes a second

    table = in_memory(job, "labels are described")
    codes, levels = _codes(job, table)
    aside = (job.labels,) if isinstance(job.labels, str) else ()
    ignore = (job.ignore,) if isinstance(job.ignore, str) else tuple(job.ignore or ())
    given = prepare(replace(job, data=table, method=GIVEN, ignore=(*ignore, *aside)))
    codes = codes[given.numbers_of(np.arange(given.rows.n_rows))]
    counted = given.only(np.flatnonzero(codes >= 0), "without a label (missing, or -1)", "rows-without-label")
    labels, order = _by_size(codes[codes >= 0], counted.weight)
    _check_groups(labels, counted)
    search, grouping = measured(counted.rows, counted.used, labels, job.seed)
    findings = Findings(
        job=job,
        given=counted,
        seen=Seen(counted.rows, counted.encoding),
        search=search,
        grouping=grouping,
        notes=(),
        earlier=None if job.match_to is None else earlier(job.match_to),
        clock=clock,
        search_seconds=clock.spent,
    )
    return findings, [name_of(levels[code], job.labels) for code in order]


def named(result: Result, names: Sequence[str | None]) -> Result:
    """The result with the labels as names of its groups, where they have one."""
    given = {mark: name for mark, name in zip(result.model.letters, names, strict=True) if name is not None}
    return result.rename(given) if given else result


def in_memory(job: Job, what: str) -> Table:
    """The table of a job; refused where it is larger than memory or elsewhere."""
    if ClusterFrame.of(job.data, job.seed) is None:
        table = open_table(job.data, job.memory, **job.reading)
        if not isinstance(table, PieceTable):
            return table
    raise ResourceError(
        "not-in-memory",
        f"{what} of rows in memory, and the table is larger or elsewhere",
        do="Give a sample of the rows",
    )


def label_cells(labels: Any, table: Table, option: str) -> Any:
    """Labels of the rows, of the column that was named or as they were given."""
    if isinstance(labels, str):
        check_name(table, labels, Option(option, shown(labels)))
        return table.column(labels).to_pylist()
    return labels.to_pylist() if hasattr(labels, "to_pylist") else labels


def _codes(job: Job, table: Table) -> tuple[Array, list[Any]]:
    """A code for each row of the table, -1 for a row in no group, and the labels that the codes stand for."""
    name = f"column {shown(job.labels)!r}" if isinstance(job.labels, str) else "labels"
    codes, levels = codes_of(label_cells(job.labels, table, "labels"), name)
    same_length(table.n_rows, len(codes), table.source, name)
    if any(isinstance(level, float) and not level.is_integer() for level in levels):
        raise DataError(
            "not-labels",
            f"{name}: numbers with decimals are no labels",
            do="Give whole numbers or texts, one for each group",
        )
    outliers = [
        code for code, level in enumerate(levels) if isinstance(level, (int, float)) and level == OUTLIER
    ]
    return np.where(np.isin(codes, outliers), -1, codes), levels


def _by_size(codes: Array, weight: Array | None) -> tuple[Array, Array]:
    """Labels 0, 1, ..., larger groups first, ties by their first row; and the code of each."""
    names, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    size = np.bincount(inverse, weight, len(names))
    order = np.lexsort((first, -size))
    rank = np.empty(len(names), dtype=np.int32)
    rank[order] = np.arange(len(names))
    return rank[inverse], names[order]


def _check_groups(labels: Array, given: Input) -> None:
    n_groups = int(labels.max(initial=-1)) + 1
    if n_groups < 2:
        what = "no row has a label" if n_groups == 0 else "all rows have the same label"
        raise DataError("one-group", what, do="Give the labels of two groups at least")
    if given.weight is not None and (np.bincount(labels, given.weight) <= 0).any():
        raise DataError("no-weight", "all rows of a label have weight 0", do="Leave these rows out")
    if n_groups * ROWS_A_GROUP > len(labels):
        option = Option("labels", "column")
        raise DataError(
            "not-labels",
            f"there are {n_groups} different labels in {len(labels)} rows, which are names of rows, not of groups",
            do=f"Name the column that says the group of a row: {option}",
            options=[option],
        )


def name_of(level: Any, labels: Any) -> str:
    """What a group is called: its label, beside the name of the column where it is a number or a truth value."""
    if isinstance(level, str) and level.strip():
        return level
    column = labels if isinstance(labels, str) else "label"
    told = int(level) if isinstance(level, float) else level
    return f"{column} {told if isinstance(told, str) else str(told).lower()}"
