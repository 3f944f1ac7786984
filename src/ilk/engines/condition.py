"""Conditioning of rows that are not in memory: the passes of `table/condition.py` over an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeVar

import numpy as np

from ilk.engines.base import Rows
from ilk.errors import SHOWN_ROWS
from ilk.table.block import Array, Block, Encoding
from ilk.table.condition import (
    PIVOT_ROWS,
    Spread,
    Survey,
    Tally,
    check_scale,
    encoding_of,
    first_values,
    float_type,
    infinite_cells,
    is_doubtful,
    power_for,
    tally,
)
from ilk.table.middle import content_rows, middle_and_spread, middle_rows, number_keys
from ilk.table.weights import WeightFacts


class Unconditioned(Rows, Protocol):
    """Rows whose encoding is still to be found."""

    def encoded(self, encoding: Encoding, complete: bool) -> Self:
        """The same rows, conditioned."""
        ...


RowsT = TypeVar("RowsT", bound=Unconditioned)


def survey_rows(rows: Rows, names: Sequence[str] | None = None) -> Survey:
    """Range, mean and missing cells per column in one pass (two where sums run over); infinite cells are refused."""
    head = rows.take(np.arange(min(rows.n_rows, PIVOT_ROWS)))
    facts = _pass(rows, head.raw, shrink=1.0)
    present = facts.high >= facts.low
    if (np.isinf(facts.low) | np.isinf(facts.high))[present].any():
        met = rows.reduce(_visit_infinite, None)
        raise infinite_cells(dict(enumerate(met.columns.tolist())), met.first, names)
    return facts if np.isfinite(facts.mean).all() else _pass(rows, head.raw, shrink=2.0**-100)


def conditioned(rows: RowsT, facts: Survey, scale: str | None = None) -> RowsT:
    """The rows with the encoding that suits what was surveyed; `scale="standard"` takes one pass more."""
    check_scale(scale)
    few = rows.take(middle_rows(rows.n_rows))
    power = power_for(facts)
    spread = middle_and_spread(few.raw, power, few.weight, np.arange(few.n_rows))[1]
    if few.n_rows < rows.n_rows and is_doubtful(facts, power, spread):
        few = rows.take(content_rows(np.concatenate([*rows.scan(_visit_keys, power)])))
    encoding = encoding_of(few.raw, facts, weight=few.weight)
    if scale is not None:
        about = Spread.about(facts, encoding)
        encoding = replace(encoding, factor=about.factor(facts, rows.reduce(_visit_spread, about)))
    return rows.encoded(replace(encoding, weight_unit=rows.encoding.weight_unit), facts.complete)


def _visit_keys(power: float, block: Block) -> Array:
    return number_keys(block.raw, power)


def is_complete(rows: Rows) -> bool:
    """Whether no number is missing."""
    return rows.reduce(_visit_missing, None) == 0


def _visit_missing(_: None, block: Block) -> int:
    return int(np.isnan(block.raw).sum())


def _visit_weights(_: None, block: Block) -> WeightFacts:
    return WeightFacts.of(block.weights)


def weight_facts(rows: Rows) -> WeightFacts:
    """What there is to know of the weights of rows; those that cannot be are refused."""
    facts = rows.reduce(_visit_weights, None)
    facts.check()
    return facts


def weighed(rows: RowsT) -> tuple[RowsT, int]:
    """The rows with weights that are conditioned, and how many of them count; weights that cannot be are refused."""
    if not rows.weighted:
        return rows, rows.n_rows
    facts = weight_facts(rows)
    encoding = replace(rows.encoding, weight_unit=facts.unit)
    return rows.encoded(encoding, rows.complete), facts.counting


def _pass(rows: Rows, head: Array, shrink: float) -> Survey:
    pivot = first_values(head) * shrink
    return rows.reduce(_visit_tally, (pivot, shrink)).survey(pivot, shrink, float_type(head))


def _visit_tally(state: tuple[Array, float], block: Block) -> Tally:
    return tally(block.raw, block.weight, *state)


def _visit_spread(spread: Spread, block: Block) -> Array:
    return spread.sums(block.raw, block.weight)


@dataclass(frozen=True)
class _Infinite:
    """Infinite cells by column, and the first rows that have one."""

    columns: Array
    first: tuple[int, ...]

    def __add__(self, other: _Infinite) -> _Infinite:
        first = sorted((*self.first, *other.first))[:SHOWN_ROWS]
        return _Infinite(self.columns + other.columns, tuple(first))


def _visit_infinite(_: None, block: Block) -> _Infinite:
    infinite = np.isinf(block.raw)
    rows = np.flatnonzero(infinite.any(axis=1))[:SHOWN_ROWS] + block.first_row
    return _Infinite(infinite.sum(axis=0), tuple(int(row) for row in rows))
