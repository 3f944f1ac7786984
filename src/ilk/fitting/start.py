"""Where a fit begins: every start of the sources, each a function from a sample of rows to centres.

Draws go by cumulative weight, so a row of weight 2 is drawn as if it stood there twice, and a row of weight
0 never is. All starts work in encoded units on a sample that is the whole table unless that is very large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import ceil, e, log, log2
from typing import Any

import numpy as np

from ilk import kernels
from ilk.errors import UsageError
from ilk.families.centroid import Moments, coded, partial_costs
from ilk.kernels import sparse
from ilk.random import stream
from ilk.table.block import Array, Block, Encoding, is_sparse

# A start looks at a sample of at most so many rows and about so many cells.
SAMPLE_ROWS = 65536
SAMPLE_CELLS = 1 << 21
ROWS_PER_CENTRE = 50
WARD_ROWS = 2000

Generator = np.random.Generator
Start = Callable[[Block, int, Generator], Array]


def random_rows(sample: Block, k: int, draws: Generator) -> Array:
    """K distinct data rows (distinct in value where the table has that many)."""
    chosen = _draw_distinct(sample, k, draws)
    return _filled(sample, chosen)


def random_hull(sample: Block, k: int, draws: Generator) -> Array:
    """Random convex combinations of data rows, `n_columns + 1` rows each (inside the convex hull).

    Introduction to Data Mining 05: Clustering (Paaßen, Bielefeld 2023).
    """
    if is_sparse(sample.raw):
        raise UsageError(
            "sparse-start",
            'init="random-hull" mixes as many rows as there are columns, and a sparse matrix has many',
            do='Choose "k-means++", "random", "farthest-first", "k-log-k" or "k-means||"',
        )
    n_corners = sample.n_columns + 1
    corners = draw_rows(sample.weights, (k, n_corners), draws)
    share = draws.dirichlet(np.ones(n_corners), size=k)
    points = _filled(sample, corners.ravel()).reshape(k, n_corners, -1)
    return np.asarray(np.einsum("kc,kcd->kd", share, points))


def farthest_first(sample: Block, k: int, draws: Generator) -> Array:
    """First a random row, then always the row farthest from those chosen; ties to the first row."""
    chosen = [int(draw_rows(sample.weights, 1, draws)[0])]
    closest = _distances(sample, _filled(sample, chosen))[0]
    for _ in range(1, k):
        chosen.append(int(np.argmax(np.where(sample.weights > 0, closest, -1.0))))
        closest = np.minimum(closest, _distances(sample, _filled(sample, chosen[-1:]))[0])
    return _filled(sample, chosen)


def k_means_plus_plus(sample: Block, k: int, draws: Generator) -> Array:
    """First a random row, then rows drawn by squared distance to the nearest chosen one; of 2 + log K draws
    the one that lowers the cost most is taken (Arthur and Vassilvitskii 2007, greedy variant)."""
    weight = sample.weights
    n_trials = 2 + int(log(k))
    chosen = [int(draw_rows(weight, 1, draws)[0])]
    absent = weight == 0  # such rows may lie at no finite distance
    closest = np.where(absent, 0.0, _distances(sample, _filled(sample, chosen))[0])
    for _ in range(1, k):
        trials = draw_rows(weight * closest, n_trials, draws)
        distance = _distances(sample, _filled(sample, trials))
        distance[:, absent] = 0.0
        np.minimum(distance, closest, out=distance)
        best = int(np.argmin(distance @ weight))
        chosen.append(int(trials[best]))
        closest = distance[best]
    return _filled(sample, chosen)


def n_log_n(k: int) -> int:
    """How many centres K-log-K draws first: ceil(K log2 K), at least K.

    >>> [n_log_n(k) for k in (1, 2, 3, 7)]
    [1, 2, 5, 20]
    """
    return max(k, ceil(k * log2(k)))


def k_log_k(sample: Block, k: int, draws: Generator) -> Array:
    """K log K random rows, one K-means step, small centres dropped, farthest-first among the rest.

    STAT 391, lecture 20: Clustering (Meilă 2023).
    """
    n_centres = n_log_n(k)
    centres = random_rows(sample, n_centres, draws)
    label = np.argmin(_distances(sample, centres), axis=0)
    size = np.bincount(label, weights=sample.weights, minlength=n_centres)
    centres = Moments.of(sample, label, n_centres).means(centres)
    # A centre that holds fewer than this many rows is likely an outlier; when too few are left, the largest stay.
    threshold = size.sum() / (e * n_centres)
    large = np.flatnonzero(size >= threshold)
    if len(large) < k:
        large = np.sort(np.argsort(-size, kind="stable")[:k])
    pool = Block(centres[large], _identity(sample.n_columns))
    return farthest_first(pool, k, draws)


def ward(sample: Block, k: int, draws: Generator) -> Array:
    """Ward linkage on at most 2,000 rows, cut at K: group means (mclust's way)."""
    from scipy.cluster.hierarchy import fcluster, linkage

    counting = np.flatnonzero(sample.weights > 0)
    if len(counting) > WARD_ROWS:
        counting = np.sort(draws.choice(counting, WARD_ROWS, replace=False))
    sample = _rows_of(sample, counting)
    if sample.n_rows == 1:
        return _filled(sample, [0])
    label = fcluster(linkage(_apart(sample), "ward"), k, criterion="maxclust") - 1
    n_groups = int(label.max()) + 1
    return Moments.of(sample, label, n_groups).means(np.zeros((n_groups, sample.n_columns)))


def _apart(sample: Block) -> Array:
    """The rows as `linkage` takes them: as they are, or their distances from each other where they are compressed."""
    if not is_sparse(sample.raw):
        return _filled(sample, np.arange(sample.n_rows))
    strip = max(1, SAMPLE_CELLS // max(sample.n_columns, 1))
    parts = [
        np.sqrt(_distances(sample, _filled(sample, np.arange(first, min(first + strip, sample.n_rows)))))
        for first in range(0, sample.n_rows, strip)
    ]
    return np.concatenate(parts)[np.triu_indices(sample.n_rows, 1)]


STARTS: dict[str, Start] = {
    "random": random_rows,
    "random-hull": random_hull,
    "farthest-first": farthest_first,
    "k-means++": k_means_plus_plus,
    "k-log-k": k_log_k,
    "ward": ward,
}


def sample_rows(n_columns: int, k: int) -> int:
    """How many rows a start looks at: the whole table up to 65,536 rows of 32 columns."""
    wanted = max(SAMPLE_CELLS // n_columns, ROWS_PER_CENTRE * k, WARD_ROWS)
    return min(wanted, SAMPLE_ROWS)


def start_centres(name: str, sample: Block, k: int, seed: int, number: int) -> Array:
    """Centres of start `number`; the same whatever other starts there are."""
    return STARTS[name](sample, k, stream(seed, f"start {name}", number))


def in_content_order(sample: Block) -> Block:
    """The same rows in an order that depends on their cells alone, so that a start does not depend on how the
    rows of the table were ordered, nor on whether one counts twice or stands there twice."""
    return _rows_of(sample, np.argsort(_content_key(sample), kind="stable"))


def distinct_rows(sample: Block) -> tuple[Block, Array]:
    """The different rows that count, in the order of their cells, their weights added up, and where each row of the
    sample went (to the first, for rows of weight 0): to the bit the same for a row of weight 2 and for two equal rows,
    and in the same order in any units."""
    counting = np.flatnonzero(sample.weights > 0)
    _, first, inverse = np.unique(_content_key(sample)[counting], return_index=True, return_inverse=True)
    order = in_cell_order(_rows_of(sample, counting[first]))
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    where = np.zeros(sample.n_rows, dtype=np.intp)
    where[counting] = rank[inverse]
    weight = np.bincount(rank[inverse], weights=sample.weights[counting])
    return replace(_rows_of(sample, counting[first[order]]), weight=weight), where


def in_cell_order(sample: Block) -> Array:
    """Row numbers by the first column of numbers, then by the next ones, then by categories."""
    if is_sparse(sample.raw) or is_sparse(sample.codes):
        return np.array(sorted(range(sample.n_rows), key=_filled_cells(sample).__getitem__), dtype=np.intp)
    codes = [] if sample.codes is None else list(sample.codes.T[::-1])
    return np.lexsort(codes + list(sample.raw.T[::-1]))


def _filled_cells(sample: Block) -> list[list[float]]:
    """Per row its stored cells, so that lists compare as whole rows would: of two rows the one with a cell above 0 in
    an earlier column is the larger."""
    places: list[list[float]] = [[] for _ in range(sample.n_rows)]
    for cells, first in ((sample.raw, 0), (sample.codes, sample.n_columns)):
        if not is_sparse(cells):
            continue
        stored: Any = cells
        for row, (begin, end) in enumerate(pairwise(stored.indptr.tolist())):
            for column, value in zip(
                stored.indices[begin:end].tolist(), stored.data[begin:end].tolist(), strict=True
            ):
                places[row] += [-first - column, value]
    return places


def _content_key(sample: Block) -> Array:
    """One number per row: the same for equal rows, different (but for odds of 2^-64) for others."""
    n_cells = sample.n_columns + (0 if sample.codes is None else sample.codes.shape[1])
    mix = stream(0, "content order").integers(1, 2**63, size=n_cells, dtype=np.uint64) | np.uint64(1)
    if is_sparse(sample.raw) or is_sparse(sample.codes):
        return _sparse_key(sample, mix)
    # Encoded cells, so that a change of unit by a power of two changes nothing; -0.0 is 0.0.
    bits = (sample.numbers + 0.0).astype(np.float64).view(np.uint64)
    bits = np.where(np.isnan(sample.raw), np.uint64(1), bits)
    bits ^= bits >> np.uint64(32)  # the low bits of short numbers are all zero
    if sample.codes is not None:
        bits = np.hstack([bits, sample.codes.astype(np.int64).view(np.uint64)])
    return np.asarray((bits * mix).sum(axis=1, dtype=np.uint64))


def _sparse_key(sample: Block, mix: Array) -> Array:
    """The same key, from the stored cells and what a row without any would have."""
    key = np.zeros(sample.n_rows, dtype=np.uint64)
    if is_sparse(sample.raw):
        cells: Any
        encoding, cells, own = sample.encoding, sample.raw, mix[: sample.n_columns]
        nothing = _bits(sparse.zero_of(encoding.centre, encoding.factor, cells.dtype))
        bits = _bits(sparse.encoded(*coded(sample))) - nothing[cells.indices]
        key += (nothing * own).sum(dtype=np.uint64)
        key += _row_totals(cells, bits * own[cells.indices])
    if is_sparse(sample.codes):
        codes: Any = sample.codes
        key += _row_totals(
            codes, codes.data.astype(np.int64).view(np.uint64) * mix[sample.n_columns :][codes.indices]
        )
    return key


def _bits(numbers: Array) -> Array:
    bits = (numbers + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))


def _row_totals(cells: Any, terms: Array) -> Array:
    """Sums of the stored terms of each row, modulo 2^64."""
    reached = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return np.asarray(reached[cells.indptr[1:]] - reached[cells.indptr[:-1]])


def _rows_of(sample: Block, rows: Array) -> Block:
    weight = None if sample.weight is None else sample.weight[rows]
    codes = None if sample.codes is None else sample.codes[rows]
    return Block(
        sample.raw[rows], sample.encoding, first_row=0, weight=weight, codes=codes, complete=sample.complete
    )


def _identity(n_columns: int) -> Encoding:
    return Encoding(1.0, np.zeros(n_columns))


def draw_rows(weight: Array, size: int | tuple[int, ...], draws: Generator) -> Array:
    """Row numbers drawn with probability proportional to weight, by inverse cumulative weight."""
    cumulative = np.cumsum(weight)
    if not cumulative[-1] > 0:  # every row lies on a chosen centre: any row is as good
        return draws.integers(0, len(weight), size)
    position = np.searchsorted(cumulative, draws.random(size) * cumulative[-1], side="right")
    # Rounding can point past the last row that counts, which is the first to reach the total.
    return np.asarray(np.minimum(position, np.searchsorted(cumulative, cumulative[-1])))


def _draw_distinct(sample: Block, k: int, draws: Generator) -> Array:
    """K row numbers, different in value as long as the table has different rows left."""
    weight = sample.weights.astype(np.float64, copy=True)
    chosen: list[int] = []
    while len(chosen) < k:
        row = int(draw_rows(weight, 1, draws)[0])
        chosen.append(row)
        weight[_distances(sample, _filled(sample, [row]))[0] == 0.0] = 0.0
        if not weight.any():
            weight = sample.weights.astype(np.float64, copy=True)
    return np.array(chosen)


def _filled(sample: Block, rows: Array | list[int]) -> Array:
    """Encoded rows as centres, in float64; a missing cell becomes 0, the table's own centre."""
    points = sample.encoding.apply(sample.raw[rows]).astype(np.float64)
    return points if sample.complete else np.nan_to_num(points, nan=0.0)


def _distances(sample: Block, points: Array) -> Array:
    """Squared distances (points, rows); with missing cells over the observed ones, scaled up."""
    if sample.complete:
        encoding = sample.encoding
        return kernels.distances(sample.raw, encoding.power, encoding.centre, encoding.factor, points)
    return partial_costs(sample, points, np.square).T
