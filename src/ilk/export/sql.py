"""The hard assignment of a model as one SELECT, written to be read: cells, scores of the pieces, groups, the best.

Labels are those of `ilk assign`: numbers are written with all digits and combined in the same way, ties go to the
first piece or group, a blank says nothing, and a row without a cell has no group. Only rows whose two best scores
differ by rounding may get another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ilk.errors import shown
from ilk.export.cells import CellExpression, TableExpressions, cells_of
from ilk.export.dialects import SqlDialect
from ilk.export.gaps import steps, terms
from ilk.export.scores import ScoreTerms, Terms, check_exportable, check_length, scores_of
from ilk.model.columns import free_names
from ilk.model.model import Model

INDENT = "    "
BOTH = """scores AS (
    SELECT * FROM complete
    UNION ALL
    SELECT * FROM partial
)"""
Columns = list[tuple[str, str]]
"""(name, expression) pairs of one step."""


def select(model: Model, dialect: SqlDialect, table: str) -> str:
    """The SELECT that gives every row of `table` (its name, parts divided by points) its group.

    The user's columns travel through the steps as one value, so that no name of theirs meets one of ours.
    """
    check_exportable(model)
    cells = cells_of(model, dialect)
    check_length(model, cells)
    scored = scores_of(model, cells)
    taken = [column.name for column in model.schema.columns]
    source, given = _free("input", taken), _free("given", taken)
    read = [(given, dialect.whole_row.format(source)), *((cell.name, cell.expression) for cell in cells.read)]
    name = ".".join(dialect.name_of(part) for part in table.split("."))
    parts = [
        _step(
            "read",
            "the columns in the types of the model; a NaN is a missing value",
            read,
            f"{name} AS {source}",
        ),
        _step("cells", "what the model sees of them", _kept(given, cells.made), "read"),
        *_scores(model, cells, scored, given, taken),
    ]
    last, best = _ranked(model, scored, dialect)
    parts += last
    (output,) = free_names(tuple(taken), ("segment" if model.segmented else "group",))
    body = ",\n".join(parts)
    choice = f"{INDENT}CASE\n{best}{INDENT}END AS {dialect.name_of(output)}"
    return f"{_head(model, dialect)}WITH\n{body}\nSELECT\n{INDENT}{given}.*,\n{choice}\nFROM ranked\n"


def _head(model: Model, dialect: SqlDialect) -> str:
    pieces, k = len(model.group_of), model.k
    merged = f"{pieces} components in {k} groups" if pieces > k else f"{k} group{'s' * (k != 1)}"
    source = shown(str(model.training.get("source", "a table")), 80)
    lines = [
        f"Groups of {source}: {shown(model.method)}, {merged} ({dialect.title}).",
        "Every row gets the group that `ilk assign` gives it; a row without a value in these columns gets NULL.",
        *(f"{mark}: {shown(name, 100)}" for mark, name in zip(model.letters, model.names, strict=True)),
    ]
    return "".join(dialect.comment(line) for line in lines)


def _free(name: str, taken: Sequence[str]) -> str:
    """A name that no column of the table has, nor begins with."""
    while any(other.casefold().startswith(name) for other in taken):
        name += "_"
    return name


def _step(name: str, comment: str, columns: Iterable[tuple[str, str]], source: str) -> str:
    listed = ",\n".join(
        f"{INDENT * 2}{expression}" + (f" AS {alias}" if alias != expression else "")
        for alias, expression in columns
    )
    return f"{name} AS (  -- {comment}\n{INDENT}SELECT\n{listed}\n{INDENT}FROM {source}\n)"


def _kept(given: str, cells: Sequence[CellExpression]) -> Columns:
    return [(given, given), *((cell.name, cell.expression) for cell in cells)]


def _sum(parts: Terms) -> str:
    """A sum, one term per line."""
    return f"\n{INDENT * 3}+ ".join(parts)


def _pieces(scored: Sequence[Terms], blank: str, given: str) -> Columns:
    pieces = [(f"piece_{k}", _sum(parts)) for k, parts in enumerate(scored, start=1)]
    return [(given, given), ("blank", blank), *pieces]


def _scores(
    model: Model, cells: TableExpressions, scored: ScoreTerms, given: str, taken: Sequence[str]
) -> list[str]:
    """The scores of the pieces; where cells depend on each other, rows with blanks go a longer way."""
    columns = _pieces(scored.components, cells.blank, given)
    if scored.block is None:
        return [_step("scores", scored.what, columns, "cells")]
    mark = _free("p", [*taken, given])
    whole = " AND ".join(f"{cell.name} IS NOT NULL" for cell in cells.numbers)
    parts = [
        _step("complete", f"{scored.what}, of rows without a missing value", columns, f"cells WHERE {whole}")
    ]
    source = f"cells WHERE NOT ({whole})"
    mean, log_share = scored.block.mean, scored.block.log_mixing
    covariance = scored.block.covariance.matrices()
    for j, made in enumerate(steps(cells.numbers, mean, covariance, mark), start=1):
        comment = f"rows with missing values: what column {j} leaves to explain"
        parts.append(_step(f"step_{j}", comment, [("*", "*"), *made], source))
        source = f"step_{j}"
    by_steps = [
        terms(len(cells.numbers), float(log_share[k]), f"{mark}{k + 1}") + scored.levels[k]
        for k in range(len(mean))
    ]
    parts.append(_step("partial", "and their scores", _pieces(by_steps, cells.blank, given), source))
    return [*parts, BOTH]


def _ranked(model: Model, scored: ScoreTerms, dialect: SqlDialect) -> tuple[list[str], str]:
    """The steps from the scores of pieces to the best group, and the cases that name it."""
    group_of = np.array(model.group_of)
    pieces = [f"piece_{number}" for number in range(1, len(group_of) + 1)]
    marks, parts, source = [model.letters[g] for g in group_of], [], "scores"
    if scored.sign > 0 and len(pieces) > model.k:
        members = [[pieces[i] for i in np.flatnonzero(group_of == g)] for g in range(model.k)]
        groups = [(f"group_{g}", _joined(own)) for g, own in enumerate(members, start=1)]
        comment = "the density of a group is the sum of those of its components"
        parts.append(_step("groups", comment, [("*", "*"), *groups], source))
        pieces, marks, source = [name for name, _ in groups], list(model.letters), "groups"
    best = "GREATEST" if scored.sign > 0 else "LEAST"
    top = f"{best}({', '.join(pieces)})" if len(pieces) > 1 else pieces[0]
    parts.append(_step("ranked", "the first of equals is taken", [("*", "*"), ("best", top)], source))
    cases = [f"{INDENT * 2}WHEN blank THEN NULL\n"]
    cases += [
        f"{INDENT * 2}WHEN {name} = best THEN {dialect.text(mark)}\n"
        for name, mark in zip(pieces, marks, strict=True)
    ]
    return parts, "".join(cases)


def _joined(pieces: Sequence[str]) -> str:
    """Log of the sum of exponentials, about the largest."""
    if len(pieces) == 1:
        return pieces[0]
    peak = f"GREATEST({', '.join(pieces)})"
    return f"{peak} + LN({' + '.join(f'EXP({piece} - {peak})' for piece in pieces)})"
