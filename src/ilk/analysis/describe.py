"""The call for labels that came from elsewhere: what the groups are, and how far to trust them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ilk.analysis.cautions import STOPPED
from ilk.analysis.job import Job
from ilk.analysis.result import Result
from ilk.analysis.run import run
from ilk.random import DEFAULT_SEED, seed_or_state
from ilk.threads import threads_or_jobs


def describe(
    data: Any,
    labels: Any,
    *,
    weight: Any = None,
    weights_are: str | None = None,
    types: Any = None,
    truth: str | None = None,
    id: str | None = None,
    ignore: str | Sequence[str] = (),
    columns: str | Sequence[str] | None = None,
    scale: str | None = "standard",
    seed: int = DEFAULT_SEED,
    random_state: Any = None,
    threads: int | None = None,
    n_jobs: int | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    missing: Sequence[str] | None = None,
    sheet: str | None = None,
    table: str | None = None,
    sql: str | None = None,
) -> Result:
    """Say what groups are that another program or a person made, and how far they are separated.

    The report, the facts, rules and profiles are those that `cluster` gives. Labels cannot be fitted again, so their
    stability is not known: the verdict is "weak" where groups are not separated, else "not tested".

    Parameters
    ----------
    data : frame, array, list, mapping or path
        A table, as `cluster` takes it, that fits in memory.
    labels : str or array of shape (n_rows,)
        The name of the column of labels, or a label for each row: whole numbers, texts or truth values. Rows with -1
        or without a label belong to no group.
    weight : None, str or array of shape (n_rows,), default=None
        How much a row counts: the name of a column, or a number for each row.
    weights_are : None, "counts" or "sampling", default=None
        What weights mean: numbers of repeated rows, or how many a row of a sample stands for. None finds it out.
    types : None, mapping or path, default=None
        Types of columns where the automatic choice is wrong.
    truth : None or str, default=None
        Column with a known class to compare with.
    id : None or str, default=None
        Column that names the rows.
    ignore : str or sequence of str, default=()
        Columns to leave out.
    columns : None, str or sequence of str, default=None
        The only columns to use; None uses all that can be used.
    scale : None or "standard", default="standard"
        "standard" divides each column by its standard deviation; None keeps the units given.
    seed : int, default=0
        Seed of the samples of a large table.
    random_state : None, int, Generator, RandomState or SeedSequence, default=None
        Another spelling of `seed`; give one of them.
    threads : None or int, default=None
        Number of threads; None and -1 use all cores. The result does not depend on it.
    n_jobs : None or int, default=None
        Another spelling of `threads`; give one of them.
    sep : None or str, default=None
        What separates the fields of a text file; None finds it out.
    encoding : None or str, default=None
        Encoding of a text file; None takes UTF-8, and cp1252 with a caution where it is not.
    decimal : None or str, default=None
        Decimal mark of a text file; None takes the point, and finds out columns with another.
    missing : None or sequence of str, default=None
        The texts that mean a missing value in a text file or workbook.
    sheet : None or str, default=None
        Sheet of a workbook; None takes the first with cells.
    table : None or str, default=None
        Table of an SQLite or DuckDB file; None takes the only one.
    sql : None or str, default=None
        A query over the table, which is called `data` there.

    Returns
    -------
    Result
        As `cluster` gives it, groups by size and named by their labels. It refuses to `assign` new rows.

    See Also
    --------
    cluster : Finds groups.
    measures : Figures that compare labels with each other and with points.

    Examples
    --------
    >>> import ilk
    >>> size = [1.0, 1.1, 1.2, 0.9, 1.0, 8.0, 8.2, 8.1, 7.9]
    >>> result = ilk.describe({"size": size}, ["small"] * 5 + ["large"] * 4)
    >>> [(group.letter, group.name, group.rows) for group in result.groups]
    [('A', 'small', 5), ('B', 'large', 4)]
    """
    reading = {"sep": sep, "encoding": encoding, "decimal": decimal, "missing": missing}
    reading |= {"sheet": sheet, "table": table, "sql": sql}
    roles: dict[str, Any] = {"weight": weight, "weights_are": weights_are, "truth": truth, "id": id}
    roles |= {"types": types, "ignore": ignore, "columns": columns}
    job = Job(
        data,
        labels=labels,
        scale=scale,
        seed=seed_or_state(seed, random_state),
        threads=threads_or_jobs(threads, n_jobs),
        reading={name: value for name, value in reading.items() if value is not None},
        **roles,
    )
    if (result := run(job)).interrupted:
        STOPPED.warn()
    return result
