"""The profile: every column in every group, as small distributions beside that of the whole table.

Numbers are counted in equal bins over the range of the table, categories by level. A column is as relevant as
its divergence (`facts`) on average over the rows: sum over groups of share * nats.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from ilk.report.bins import binned, each_column
from ilk.report.evidence import Evidence
from ilk.report.facts import Array, Described
from ilk.report.groups import Group

BINS = 18
LEVELS_TOLD = 8  # the most frequent; the others are told as one
COLUMNS_TOLD = 50  # with a distribution in every group; further columns with their relevance only
OUTLYING = 2.0  # bins leave out the far ends where these stretch the range by more than this
MIDDLE = (0.1, 0.9)


def profile(evidence: Evidence, groups: Sequence[Group]) -> list[dict[str, Any]]:
    """One entry per column, the most relevant first; the first `COLUMNS_TOLD` with their distributions."""
    relevance, tells = _relevance(groups)
    order = sorted(range(len(evidence.columns)), key=lambda j: -relevance[evidence.columns[j].name])

    def told(rank: int) -> dict[str, Any]:
        column = evidence.columns[order[rank]]
        entry: dict[str, Any] = {
            "column": column.name,
            "type": "number" if column.is_number else "category",
            "used": column.used,
            "relevance": relevance[column.name],
            "distinctive_in": tells[column.name],
            "distribution": None,
        }
        if rank < COLUMNS_TOLD:
            tell = _numbers if column.is_number else _levels
            entry["distribution"] = tell(column, evidence)
        return entry

    return each_column(told, range(len(order)), evidence.n_rows, evidence.threads)


def _relevance(groups: Sequence[Group]) -> tuple[dict[str, float], dict[str, list[str]]]:
    relevance: dict[str, float] = {}
    tells: dict[str, list[str]] = {}
    for group in groups:
        for fact in group.facts:
            relevance[fact.column] = relevance.get(fact.column, 0.0) + group.share * fact.nats
            tells.setdefault(fact.column, []).extend([group.letter] if fact.distinctive else [])
    return relevance, tells


def _numbers(column: Described, evidence: Evidence) -> dict[str, Any] | None:
    present = ~np.isnan(column.values) & (evidence.labels >= 0)
    values = column.values[present].astype(np.float64)
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    if not isfinite(high - low):  # wider than a float: there is no bin to draw
        return None
    edges, clipped = edges_of(values, low, high)
    k, n_bins = evidence.k, len(edges) - 1
    if n_bins < 1:  # integers that are one number as doubles
        return None

    def cell(run: slice) -> tuple[Array, Array]:
        there = present[run]
        own = column.values[run][there].astype(np.float64, copy=False)
        at = np.clip(np.searchsorted(edges, own, side="right") - 1, 0, n_bins - 1)
        return evidence.labels[run][there].astype(np.int64) * n_bins + at, evidence.heft[run][there]

    counts = binned(evidence.n_rows, k * n_bins, cell).reshape(k, n_bins)
    return {
        "low": low,
        "high": high,
        "from": float(edges[0]),
        "to": float(edges[-1]),
        "clipped": clipped,
        "whole": tidy(counts.sum(axis=0)),
        "groups": [tidy(c) for c in counts],
        **_middles(column, evidence),
    }


def edges_of(values: Array, low: float, high: float) -> tuple[Array, bool]:
    """Limits of the bins: one bin a value where few whole numbers are there, else equal steps.

    >>> edges_of(np.array([1.0, 2.0, 4.0]), 1.0, 4.0)[0].tolist()
    [0.5, 1.5, 2.5, 3.5, 4.5]
    """
    looked = values[:: max(1, len(values) // 10_000)]
    if high - low < BINS and np.all(looked == np.round(looked)) and low == round(low):
        return np.arange(low - 0.5, high + 1.0), False
    if high <= low:
        pad = abs(low) * 1e-6 or 0.5
        return np.array([low - pad, high + pad]), False
    with np.errstate(over="ignore", invalid="ignore"):
        inner_low, inner_high = (float(edge) for edge in np.quantile(looked, [0.005, 0.995]))
    clipped = bool(high - low > OUTLYING * (inner_high - inner_low) > 0)
    if clipped:
        low, high = inner_low, inner_high
    if np.isfinite(high - low):
        return np.linspace(low, high, BINS + 1), clipped
    return 4 * np.linspace(low / 4, high / 4, BINS + 1), clipped  # of halves the steps may overflow


def _middles(column: Described, evidence: Evidence) -> dict[str, Any]:
    """The middle 80 % of the table and of each group, read from the sample."""
    sample = evidence.sample
    values = column.values[sample.place].astype(np.float64)
    present = ~np.isnan(values)
    middles = []
    for g in range(-1, evidence.k):
        mine = present if g < 0 else present & (sample.label == g)
        middles.append(quantiles(values[mine], sample.heft[mine], MIDDLE))
    return {"middle": middles[0], "middles": middles[1:]}


def quantiles(values: Array, heft: Array, at: Sequence[float]) -> list[float] | None:
    """Weighted quantiles; None where there is no value.

    >>> quantiles(np.array([3.0, 1.0, 2.0]), np.ones(3), (0.5,))
    [2.0]
    """
    if not len(values):
        return None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(heft[order])
    places = np.searchsorted(reached, np.asarray(at) * reached[-1], side="left")
    return [float(v) for v in values[order][np.minimum(places, len(values) - 1)]]


def _levels(column: Described, evidence: Evidence) -> dict[str, Any] | None:
    assert column.levels is not None
    present = (column.values >= 0) & (evidence.labels >= 0)
    k, n_levels = evidence.k, max(1, len(column.levels))

    def cell(run: slice) -> tuple[Array, Array]:
        there = present[run]
        codes = column.values[run][there]
        return evidence.labels[run][there].astype(np.int64) * n_levels + codes, evidence.heft[run][there]

    counts = binned(evidence.n_rows, k * n_levels, cell).reshape(k, n_levels)
    whole = counts.sum(axis=0)
    if not whole.sum():
        return None
    frequent = np.argsort(-whole, kind="stable")
    told = np.sort(frequent[:LEVELS_TOLD]) if np.count_nonzero(whole) > LEVELS_TOLD else np.flatnonzero(whole)
    rest = whole.sum() - whole[told].sum()
    others = int(np.count_nonzero(whole)) - len(told)

    def of(row: Array) -> list[float]:
        return tidy(np.append(row[told], row.sum() - row[told].sum()) if others else row[told])

    return {
        "categories": [column.levels[j] for j in told],
        "others": others if rest > 0 else 0,
        "whole": of(whole),
        "groups": [of(row) for row in counts],
    }


def tidy(values: Array) -> list[float]:
    """Counts as whole numbers where they are, weights with four digits."""
    return [int(v) if float(v).is_integer() else float(f"{v:.4g}") for v in values]
