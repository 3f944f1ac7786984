"""Groups that were given, measured as those of a method are: silhouettes, separation, gaps. Nothing is fitted, so that
there is nothing to fit again: whether such groups are stable is not known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ilk.engines.base import Rows
from ilk.fitting.weights import row_weights
from ilk.methods import GIVEN, METHODS
from ilk.model.grouped import Grouped
from ilk.model.registry import is_soft
from ilk.selection.candidates import Search
from ilk.selection.from_partition import gap_between, search_of, some_rows
from ilk.selection.grouping import Grouping
from ilk.selection.merging import lowest, merge_pieces, valley_matrix, weakest_pair
from ilk.selection.paradigm_input import Material
from ilk.selection.paradigms import Parting
from ilk.selection.samples import RARE_ROWS, WIDE_CELLS, WIDE_ROWS, CloseUp
from ilk.selection.sharpness import SILHOUETTE_ROWS, Sharpness, by_distances, sharpness_of
from ilk.selection.valley import MOST_ROWS, Ground, NumberGround
from ilk.table.block import Array, Block
from ilk.table.schema import Schema

GAP_ROWS = 2_000  # of which all pairs are compared


def measured(rows: Rows, schema: Schema, labels: Array, seed: int) -> tuple[Search, Grouping]:
    """What the verdict asks of groups 0, 1, ..., larger ones first, that `labels` give all rows."""
    search = search_of(METHODS[GIVEN], Parting(labels), labels, 0.0, None)
    return examined(rows, schema, replace(search, fit=replace(search.fit, size=_sizes(rows, labels))), seed)


def examined(rows: Rows, schema: Schema, search: Search, seed: int) -> tuple[Search, Grouping]:
    """The same of the groups of a fit that are not to be found again: what it keeps is not in the rows."""
    labels = search.fit.labels
    try:
        sharp = _silhouettes(rows, schema, labels, seed)
        cells = list(search.candidates)
        cells[search.winner] = replace(search.chosen, silhouette=None if sharp is None else sharp.mean)
        search = replace(search, candidates=tuple(cells), sharpness=sharp)
        return search, _grouping(rows, schema, search, seed)
    except KeyboardInterrupt:  # the groups are there: once more without what takes time
        search = replace(search, interrupted=True)
        return search, _grouping(rows, schema, search, seed)


def _grouping(rows: Rows, schema: Schema, search: Search, seed: int) -> Grouping:
    labels, k = search.fit.labels, len(search.fit.size)
    ground = _ground(rows, labels, k, seed)
    groups = tuple((group,) for group in range(k))
    valleys = valley_matrix(ground, groups)
    pair = lowest(valleys)
    unclear = pair is not None and (valleys[pair[0]][pair[1]] or 0.0) < ground.thresholds.clear
    looked = some_rows(rows.n_rows, GAP_ROWS, seed)
    gap = None
    if unclear and not search.interrupted:  # they may wind around each other
        gap = gap_between(_material(rows, schema, looked), labels[looked])
    family = search.recipe.family
    return Grouping(
        grouped=Grouped(family, search.fit.params, np.arange(k), is_soft(family.name)),
        labels=labels,
        size=search.fit.size,
        n_groups=k,
        merge=merge_pieces(ground, k, threshold=None),
        thresholds=ground.thresholds,
        valleys=valleys,
        weakest=weakest_pair(ground, groups, valleys),
        stable=None,
        n_rows=row_weights(rows).effective_rows,
        skewness=np.zeros(0),
        split_gain=0.0,
        interrupted=search.interrupted,
        gap=gap,
    )


def _ground(rows: Rows, labels: Array, k: int, seed: int) -> Ground:
    """Where separation is measured: on a sample, and on a wider one for groups that are rare in it."""
    looked = some_rows(rows.n_rows, MOST_ROWS, seed)
    plain = _seen(rows.take(looked), labels[looked], seed)
    if rows.n_rows <= MOST_ROWS or np.bincount(labels[looked], minlength=k).min() >= RARE_ROWS:
        return plain
    n_wide = min(WIDE_ROWS, max(MOST_ROWS, WIDE_CELLS // max(plain.width, 1)))
    looked = some_rows(rows.n_rows, n_wide, seed)
    return CloseUp(plain, _seen(rows.take(looked), labels[looked], seed))


def _seen(sample: Block, labels: Array, seed: int) -> NumberGround:
    of = NumberGround.of if sample.codes is None else NumberGround.of_mixed
    return of(sample, labels, seed=seed)


def _silhouettes(rows: Rows, schema: Schema, labels: Array, seed: int) -> Sharpness | None:
    """By the distances that methods of distances would take: Euclidean, or Gower's for mixed tables."""
    k, material = int(labels.max()) + 1, _material(rows, schema, np.arange(0))
    if not material.mixed:
        return sharpness_of(rows, labels, k, None, seed)
    looked = some_rows(rows.n_rows, SILHOUETTE_ROWS, seed)
    if len(np.unique(labels[looked])) < 2:
        return None
    matrix = _material(rows, schema, looked).distances.matrix
    return by_distances(matrix, labels[looked], rows.take(looked).weights, looked, k, rows.n_rows)


def _material(rows: Rows, schema: Schema, looked: Array) -> Material:
    return Material.of(rows.take(looked), schema)


def _sizes(rows: Rows, labels: Array) -> Array:
    weight = rows.take(np.arange(rows.n_rows)).weight
    return np.asarray(np.bincount(labels, weight), dtype=np.float64)
