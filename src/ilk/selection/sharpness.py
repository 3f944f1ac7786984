"""How sharp the borders of a clustering are: silhouettes of the rows, or of a sample of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.draw import drawn_by_content
from ilk.measures.silhouettes import silhouette
from ilk.table.block import Array, Block

SILHOUETTE_ROWS = 4_000  # above, silhouettes are those of a sample of so many rows: 16 million distances a K
COMPLETE_SHARE = 0.5  # with fewer complete rows than this the silhouette goes by the centres

Kind = Literal["rows", "centres"]


@dataclass(frozen=True, kw_only=True)
class Sharpness:
    """Mean silhouette, its standard error (0 when every row was looked at), and the mean of each group.

    `kind` says what distances were taken to: other rows, or, where too many cells are missing, the centres.
    `n_rows` is how many rows were looked at: with missing cells and kind "rows", complete ones only. `looked` are
    their places among the rows and `values` their silhouettes.
    """

    mean: float
    error: float
    groups: tuple[float | None, ...]
    kind: Kind
    n_rows: int
    looked: Array = field(repr=False, compare=False)
    values: Array = field(repr=False, compare=False)


def sharpness_of(
    rows: Rows, labels: Array, k: int, costs: Callable[[Block], Array] | None, seed: int
) -> Sharpness | None:
    """Silhouettes of k groups, whose `costs` are squared distances; None for a single group, which has none.

    Without missing numbers costs are not asked for."""
    if len(np.unique(labels)) < 2:
        return None
    looked, kind = _rows_to_look_at(rows, labels, k)
    sampled = len(looked) > SILHOUETTE_ROWS
    if sampled:
        looked = np.sort(drawn_by_content(rows, SILHOUETTE_ROWS, seed, looked))
    label = labels[looked]
    if len(np.unique(label)) < 2:
        return None
    block = rows.take(looked)
    if kind == "rows":
        numbers = np.asarray(block.numbers, dtype=np.float64)
        values = silhouette(numbers, label, weight=block.weight, threads=rows.threads)
    else:
        assert costs is not None
        values = _by_centres(np.sqrt(np.maximum(costs(block), 0.0)), label)
    return _summary(values, looked, label, block.weights, k, kind, sampled)


def by_distances(matrix: Array, label: Array, weight: Array, looked: Array, k: int, n_rows: int) -> Sharpness:
    """Silhouettes by the distances of all pairs of rows, those at the places `looked` among `n_rows`."""
    size = np.bincount(label, weight, minlength=k)
    total = matrix @ (np.eye(k)[label] * weight[:, None])
    everyone = np.arange(len(label))
    left = size[label] - np.minimum(weight, 1.0)  # a row is not its own neighbour
    own = np.divide(total[everyone, label], left, out=np.zeros(len(label)), where=left > 0)
    others = np.divide(total, size, out=np.full_like(total, np.inf), where=size > 0)
    others[everyone, label] = np.inf
    other = others.min(axis=1)
    largest = np.maximum(own, other)
    ratio = np.divide(other - own, largest, out=np.zeros(len(label)), where=(largest > 0) & (left > 0))
    return _summary(ratio, looked, label, weight, k, "rows", len(label) < n_rows)


def _rows_to_look_at(rows: Rows, label: Array, k: int) -> tuple[Array, Kind]:
    parts = [*rows.scan(_visit_counted, None)]
    counted, whole = (np.concatenate(part) for part in zip(*parts, strict=True))
    if rows.complete:
        return np.flatnonzero(counted), "rows"
    every_group = np.bincount(label[whole], minlength=k).min() >= 2
    if every_group and whole.sum() >= COMPLETE_SHARE * counted.sum():
        return np.flatnonzero(whole), "rows"
    return np.flatnonzero(counted), "centres"


def _visit_counted(_: None, block: Block) -> tuple[Array, Array]:
    """Which rows count, and which of these have no missing number."""
    counted = np.ones(block.n_rows, dtype=bool) if block.weight is None else block.weight > 0
    return counted, counted if block.complete else counted & ~np.isnan(block.raw).any(axis=1)


def _by_centres(distance: Array, label: Array) -> Array:
    """`(other - own) / max(own, other)` with distances to the centres."""
    everyone = np.arange(len(label))
    own = distance[everyone, label]
    distance[everyone, label] = np.inf
    other = distance.min(axis=1)
    largest = np.maximum(own, other)
    return np.asarray(np.divide(other - own, largest, out=np.zeros(len(label)), where=largest > 0))


def _summary(
    values: Array, looked: Array, label: Array, weight: Array, k: int, kind: Kind, sampled: bool
) -> Sharpness:
    size = np.bincount(label, weights=weight, minlength=k)
    sums = np.bincount(label, weights=weight * values, minlength=k)
    groups = tuple(float(s / n) if n > 0 else None for s, n in zip(sums, size, strict=True))
    mean = float(np.average(values, weights=weight))
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if sampled else 0.0
    return Sharpness(
        mean=mean, error=error, groups=groups, kind=kind, n_rows=len(values), looked=looked, values=values
    )
