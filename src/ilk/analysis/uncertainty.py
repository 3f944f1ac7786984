"""How sure the profiles of the groups are: shares, means and category shares over bootstrap resamples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ilk.analysis.frames import pandas
from ilk.analysis.result import Result
from ilk.engines.memory import MemoryRows
from ilk.errors import NoModelError, UsageError
from ilk.fitting.resamples import KINDS, refitted
from ilk.fitting.table_moments import table_moments
from ilk.measures.estimates import Estimate
from ilk.methods import METHODS
from ilk.model.registry import fitted_as
from ilk.random import seed_of
from ilk.table.block import Array, Block
from ilk.table.encode import codes_of, numbers_of
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table
from ilk.table.weights import check_weight

SHARE = "(share)"  # of the rows, beside the columns
FITTED = ("recipe", "mixtures", "growth")  # searches whose model can be fitted again from its parameters


def profile_errors(result: Result, n: int, kind: str, level: float, seed: Any) -> Any:
    """A line for each group and figure: its value, standard error and percentile interval."""
    table = _table_of(result)
    if kind not in KINDS:
        raise UsageError("bad-kind", f"kind={kind!r} is not known", do=f"Use {' or '.join(KINDS)}")
    if not isinstance(n, int) or n < 2:
        raise UsageError("bad-n", f"n={n!r}", do="Give a number of resamples of 2 or more")
    used = np.flatnonzero(result.finest() >= 0)
    rows, figures = _rows_of(result, table, used), _Figures.of(result, table, used)
    grouped = result.model.grouped
    if fitted_as(result.model.family) == "mixture":
        family: Any = replace(grouped.family, column_variances=table_moments(rows).variance)  # type: ignore[type-var]
        grouped = replace(grouped, family=family)
    trim = float(result.model.options.get("trim") or 0.0)
    block, drawn = rows.take(np.arange(rows.n_rows)), []
    for again in refitted(rows, grouped.family, grouped.params, kind, n, seed_of(seed), trim):
        if again is not None:
            params, weight = again
            drawn.append(figures(_labels(replace(grouped, params=params), block), weight))
    if len(drawn) < 2:
        raise NoModelError(
            "no-valid-model",
            f"a component is lost in {n - len(drawn)} of {n} resamples",
            do="Ask for fewer groups",
        )
    estimate = Estimate.of(figures(result.finest()[used], block.weights), drawn, level)
    index = pandas().MultiIndex.from_tuples([*figures.lines()], names=["group", "column", "category"])
    made = {name: getattr(estimate, name).ravel() for name in ("value", "standard_error", "lower", "upper")}
    return pandas().DataFrame(made, index=index)


def _labels(grouped: Any, block: Block) -> Array:
    label: Array = grouped.label(block)
    return label


def _table_of(result: Result) -> Table:
    table, method = result.table, METHODS.get(result.summary()["chosen"]["method"])
    if method is None or method.search not in FITTED:
        raise UsageError(
            "no-standard-errors",
            f"{result.model.method} has no parameters that resamples could start from",
            do="Use k-means, k-medians, a Gaussian mixture or the assorted model",
        )
    held = set(table.names)
    if isinstance(table, PieceTable) or any(column.name not in held for column in result.model.schema.used):
        raise UsageError(
            "read-in-parts",
            "the rows of this result are not in memory",
            do="Use the result of ilk.cluster on a table, or on a sample of it",
        )
    return table


def _rows_of(result: Result, table: Table, used: Array) -> MemoryRows:
    """The rows that have a group as the model sees them, with their weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns beside those of the model
        rows = result.model._read_rows(table, "error")
    assert isinstance(rows, MemoryRows)
    name = result.model.schema.weight
    weight = None
    if name is not None:
        given = check_weight(np.asarray(table.column(name), dtype=np.float64), table.n_rows)[used]
        total = float(result.summary()["table"]["rows_used"])
        whole = (given == np.round(given)).all()
        weight = given if whole else given * (total / given.sum())
    block = rows.take(used)
    return MemoryRows(
        block.raw,
        block.encoding,
        weight=weight,
        codes=block.codes,
        complete=block.complete,
        threads=rows.threads,
    )


class _Figures:
    """Share of each group, and its means and category shares, from labels and weights of the rows."""

    def __init__(self, letters: tuple[str, ...], parts: list[tuple[str, str, Array]]) -> None:
        self.letters, self.parts = letters, parts  # name, category, value of each row (NaN where missing)

    @classmethod
    def of(cls, result: Result, table: Table, used: Array) -> _Figures:
        schema, parts = result.model.schema, list[tuple[str, str, Array]]()
        numbers = numbers_of(table, schema.numeric)[used]
        parts += [(column.name, "", numbers[:, j]) for j, column in enumerate(schema.numeric)]
        codes = codes_of(table, schema.coded)[0]
        for j, column in enumerate(schema.coded):
            assert codes is not None
            code = codes[used, j]
            parts += [
                (column.name, level, np.where(code < 0, np.nan, code == number))
                for number, level in enumerate(column.levels or ())
            ]
        return cls(result.model.letters, parts)

    def lines(self) -> Iterator[tuple[str, str, str]]:
        for letter in self.letters:
            yield letter, SHARE, ""
            yield from ((letter, name, category) for name, category, _ in self.parts)

    def __call__(self, label: Array, weight: Array) -> Array:
        """Figures (groups, 1 + columns and categories)."""
        k = len(self.letters)
        kept = label >= 0
        size = np.bincount(label[kept], weight[kept], k)
        made = [size / size.sum()]
        for _, _, values in self.parts:
            there = kept & ~np.isnan(values)
            seen = np.bincount(label[there], weight[there], k)
            total = np.bincount(label[there], weight[there] * values[there], k)
            made.append(np.divide(total, seen, out=np.full(k, np.nan), where=seen > 0))
        return np.stack(made, axis=1)
