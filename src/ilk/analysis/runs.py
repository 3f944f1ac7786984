"""What the commands `columns`, `compare` and `check` do, in Python, and a run or a model read back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ilk.analysis.folder import find_assignments, find_model, find_summary
from ilk.analysis.frames import pandas
from ilk.analysis.restore import restored
from ilk.analysis.result import Result
from ilk.errors import Caution, DataError, ModelFileError, Option, UsageError, shown
from ilk.model.file import read_model
from ilk.model.model import Model
from ilk.monitor import comparison, drift
from ilk.report.summary import column_entries, plain
from ilk.table.read import Table, read
from ilk.table.understand import understand
from ilk.text.comparison import comparison_text
from ilk.text.drift import check_text
from ilk.text.layout import Surface


class Document(dict[str, Any]):
    """A plain dictionary that prints as the command line tells it."""

    def __init__(self, content: Mapping[str, Any], text: str) -> None:
        super().__init__(content)
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> Any:
        return Document, (dict(self), self.text)


def load(path: str | os.PathLike[str]) -> Any:
    """Read back a run that `ilk fit` wrote, or a model that `Result.save` wrote.

    A file that is not ours, is damaged or makes no sense is refused. Nothing in it is run.

    Parameters
    ----------
    path : str or path
        The folder of a run, or the file of a model.

    Returns
    -------
    Result or Model
        Of a folder the result: labels, groups, verdict, summary, model. What a run does not hold is said in a
        warning: `probabilities` are None, and `table` has the number, the id and the truth of each row only. Of a
        file the model, ready to assign rows.

    See Also
    --------
    Result.save : Writes the file of a model.
    Model.assign : Gives new rows their groups.

    Examples
    --------
    >>> import ilk, os, tempfile
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.ilk")
    >>> result.save(path)
    >>> ilk.load(path).names
    ('low size', 'high size')
    """
    if not os.path.isdir(path):
        return read_model(path)
    if not os.path.exists(os.path.join(path, "summary.json")):
        raise ModelFileError(
            "not-a-model",
            f"{shown(os.fspath(path), 200)} is a folder without a run",
            do="Give a model file, or a folder that ilk fit wrote",
        )
    return restored(os.fspath(path))


def columns(
    data: Any,
    *,
    types: Any = None,
    ignore: str | Sequence[str] = (),
    id: str | None = None,
    weight: str | None = None,
    truth: str | None = None,
) -> Any:
    """Say what every column of a table is taken for, and why, before anything is fitted.

    Parameters
    ----------
    data : frame, array, list, mapping or path
        A table, as `cluster` takes it.
    types : None, mapping or path, default=None
        Types of columns where the automatic choice is wrong.
    ignore : str or sequence of str, default=()
        Columns to leave out.
    id : None or str, default=None
        Column that names the rows.
    weight : None or str, default=None
        Column that says how much a row counts.
    truth : None or str, default=None
        Column with a known class.

    Returns
    -------
    pandas.DataFrame
        A line for each column: `type`, `role`, `reason`, `missing` (cells), `distinct` (values), `categories`.

    See Also
    --------
    cluster : Uses the columns in this way.

    Examples
    --------
    >>> import ilk
    >>> told = ilk.columns({"size": [1.0, 2.5, 4.0, 3.5], "kind": ["a", "b", "a", "b"]})
    >>> told["type"].to_dict()
    {'size': 'numeric', 'kind': 'binary'}
    """
    schema = understand(read(data), types=types, ignore=ignore, id=id, weight=weight, truth=truth)
    for caution in schema.warnings:
        caution.warn()
    entries = column_entries(schema, schema)
    frame = pandas().DataFrame(entries).rename(columns={"name": "column"}).set_index("column")
    return frame[["type", "role", "reason", "missing", "distinct", "categories"]]


def compare(first: Any, second: Any, *, id: str | None = None) -> Document:
    """Compare two runs on the same rows: how far they agree, which groups correspond, which rows moved.

    Parameters
    ----------
    first : Result or path
        A result, the folder of a run, or a file with a column `group`.
    second : Result or path
        The other.
    id : None or str, default=None
        Column to match rows by. None takes the one that both runs were made with, else the number of the row.

    Returns
    -------
    dict
        The comparison: `ari`, `nmi`, `pairs` of groups that correspond, `joined`, `split`, `moved` rows, `finding`;
        `matched_by` says how rows were matched. It prints as on the command line.

    See Also
    --------
    check : Compares new rows with those of a run.
    measures.ari : Agreement of two labellings.

    Examples
    --------
    >>> import ilk
    >>> table = {"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}
    >>> found = ilk.compare(ilk.cluster(table, k=2), ilk.cluster(table, k=2, method="k-means"))
    >>> found["finding"]
    'the same groups: no row moved'
    """
    found = compared(first, second, id)
    for caution in found.cautions:
        caution.warn()
    return Document(found.document, comparison_text(found.document, Surface(width=100)))


def check(model: Any, data: Any, *, absent: str = "error") -> Document:
    """Say whether new rows still look like those that a model was fitted on.

    Parameters
    ----------
    model : Result, Model or path
        A result, a model, or where one is.
    data : frame, array, list, mapping or path
        New rows.
    absent : "error" or "missing", default="error"
        Whether a column that is not there is refused, or every value in it is taken as missing.

    Returns
    -------
    dict
        `verdict`, `columns` that changed (divergence in nats per row), shares of the `groups` then and now, `unseen`
        categories, `novelty`. It prints as on the command line.

    See Also
    --------
    compare : Compares two runs on the same rows.
    Model.assign : Gives new rows their groups.

    Examples
    --------
    >>> import ilk
    >>> table = {"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9] * 9}
    >>> ilk.check(ilk.cluster(table, k=2), table)["verdict"]["word"]
    'no drift'
    """
    if isinstance(model, Result):
        model = model.model
    elif not isinstance(model, Model):
        model = find_model(os.fspath(model))
    table = model.read(data)
    document = checked(model, table, absent)
    return Document(document, check_text(document, Surface(width=100)))


def checked(model: Model, table: Table, absent: str) -> dict[str, Any]:
    """The comparison of new rows with those of a model, as a plain document."""
    if table.n_rows == 0:
        raise DataError(
            "no-rows", f"{shown(table.source, 80)} has no rows to check", do="Give at least one row"
        )
    document: dict[str, Any] = plain(drift.check(model, table, absent=absent))
    return document


@dataclass(frozen=True)
class Compared:
    """Two labellings side by side, and what to know of how their rows were matched."""

    first: comparison.RunLabels
    second: comparison.RunLabels
    document: dict[str, Any]
    cautions: tuple[Caution, ...]


def compared(first: Any, second: Any, id: str | None) -> Compared:
    """Rows are matched by the column asked for, else by the id of both runs, else by their number."""
    sides, notes = (_Side.of(first), _Side.of(second)), list[Caution]()
    by = id if id is not None else sides[0].id if sides[0].id == sides[1].id else None
    try:
        one, two = (side.labels(by) for side in sides)
    except DataError as error:
        if id is not None or by is None:
            raise
        notes.append(Caution(error.code, f"rows are matched by their number: {error.what}"))
        by = None
        one, two = (side.labels(None) for side in sides)
    other_rows = None not in (sides[0].mark, sides[1].mark) and sides[0].mark != sides[1].mark
    if by is None and (other_rows or len(one.keys) != len(two.keys)):
        option = Option("id", "column")
        what = "the two runs are of different tables, and rows are matched by their number"
        notes.append(Caution("other-table", f"{what}; to match by a column: {option}", [option]))
    document = plain({**comparison.compare(one, two), "matched_by": by or "row"})
    return Compared(one, two, document, tuple(notes))


@dataclass(frozen=True)
class _Side:
    """One of two labellings: its rows, the id that its run was made with, the fingerprint of its table."""

    source: str
    given: Result | Table
    id: str | None
    mark: str | None

    @classmethod
    def of(cls, given: Any) -> _Side:
        if isinstance(given, Result):
            summary = given.summary()
            return cls(summary["source"], given, given.model.schema.id, summary["reproduce"]["fingerprint"])
        if not isinstance(given, (str, os.PathLike)):
            raise UsageError(
                "bad-run",
                f"{type(given).__name__} is no run",
                do="Give a Result, the folder of a run or a file",
            )
        path = os.fspath(given)
        if not os.path.isdir(path):
            return cls(path, read(path), None, None)
        summary = find_summary(path)
        name, mark = (summary.get("options") or {}).get("id"), summary["reproduce"]["fingerprint"]
        return cls(path, read(find_assignments(path)), name if isinstance(name, str) else None, mark)

    def labels(self, id: str | None) -> comparison.RunLabels:
        if isinstance(self.given, Table):
            return comparison.labels_of(self.given, self.source, id)
        table, letters = self.given.table, self.given.letters.tolist()
        keys = list(range(len(letters))) if id is None else _keys(table, id)
        return comparison.RunLabels(self.source, keys, letters)


def _keys(table: Any, id: str) -> list[Any]:
    if id not in table.names:
        option = Option("id", shown(id))
        raise UsageError(
            "unknown-column", f"{table.source} has no column {shown(id)!r}", do=f"Name another: {option}"
        )
    return list(table.column(id).to_pylist())
