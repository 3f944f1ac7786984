"""CRAFT as printed, from a random row to the end: a walk from row to row, then means, shares and chosen columns.

In memory, since what a row meets depends on the rows before it. The objective can rise, so a fit ends when neither a
label nor a choice of columns changes, or at the limit of passes.
"""

from __future__ import annotations

import numpy as np

from ilk.engines.base import Rows
from ilk.families.craft import CraftParams, Paper, joined
from ilk.fitting.fit import Fit, finish
from ilk.fitting.loop import NOTHING_CHANGED, PASS_LIMIT, Record, Run, Stop
from ilk.fitting.start import draw_rows
from ilk.random import stream
from ilk.table.block import Array, Block

RAISE = 1.25
MOST_TRIALS = 16


def background_shares(codes: Array | None, weight: Array, level_start: Array) -> Array:
    """Share of each level among the known cells of its column, kept above 0 by half a row."""
    counts = np.zeros(level_start[-1])
    for j in range(len(level_start) - 1):
        assert codes is not None
        known = codes[:, j] >= 0
        np.add.at(counts, level_start[j] + codes[known, j], weight[known])
    for j in range(len(level_start) - 1):
        column = counts[level_start[j] : level_start[j + 1]]
        column[:] = np.maximum(column, 0.5) / np.maximum(column, 0.5).sum()
    return counts


def open_cost_for(block: Block, family: Paper, k: int) -> float:
    """The open cost that a wish for K groups suggests: farthest-first from the table's own shares and means.

    Distances are what a row would cost a group on average over random choices of columns.
    """
    everything = np.ones(family.n_columns, dtype=bool)
    table = CraftParams(
        np.zeros((1, family.n_numbers)),
        np.ones((1, family.n_numbers)),
        family.background[None],
        everything[None],
        np.ones(1),
    )
    closest, met = _expected(family, table, block), 0.0
    for _ in range(k):
        row = int(np.argmax(np.where(block.weights > 0, closest, -np.inf)))
        met = float(closest[row])
        closest = np.minimum(closest, _expected(family, _begun(family, block, row, everything), block))
    return max(0.0, met - family.n_columns * family.choice.f0)


def fit_wished(rows: Rows, family: Paper, k: int, seed: int, stop: Stop) -> tuple[Fit, float]:
    """About K groups, and their open cost: what farthest-first suggests, raised by quarters while more than K are
    found, and then halved in between; the first of the nearest to K is kept.

    Chosen numbers are those of small variance, so that rows come to cost more than farthest-first could know.
    """
    tried: dict[float, Fit] = {}
    low, high = open_cost_for(rows.take(np.arange(rows.n_rows)), family, k), np.inf
    open_cost = low
    while len(tried) < MOST_TRIALS and open_cost not in tried:
        found = tried[open_cost] = fit_paper(rows, family, open_cost, seed, stop)
        n_found = len(found.size)
        if n_found == k or (n_found < k and len(tried) == 1):
            break
        low, high = (open_cost, high) if n_found > k else (low, open_cost)
        open_cost = low * RAISE if high == np.inf else (low + high) / 2
    best = min(tried, key=lambda cost: abs(len(tried[cost].size) - k))
    return tried[best], best


def _expected(family: Paper, params: CraftParams, block: Block) -> Array:
    """Cost of each row with the share of the columns chosen, averaged over which: linear in each column."""
    share = family.choice.share
    none = CraftParams(params.mean, params.variance, params.level_share, ~params.chosen, params.weight)
    return np.asarray(share * family.cost(params, block)[:, 0] + (1 - share) * family.cost(none, block)[:, 0])


def fit_paper(rows: Rows, family: Paper, open_cost: float, seed: int, stop: Stop) -> Fit:
    """Passes until nothing changes."""
    everything = rows.take(np.arange(rows.n_rows))
    draws = stream(seed, "craft")
    first = int(draw_rows(everything.weights, 1, draws)[0])
    chosen = _drawn(np.full(family.n_columns, family.choice.share), draws)
    run = Run(family, _begun(family, everything, first, chosen))  # type: ignore[arg-type]
    before: Array | None = None
    while not run.reason:
        if len(run.trace) == stop.max_passes:
            run.reason = PASS_LIMIT
            break
        opened, label, cost = paper_pass(family, run.params, everything, open_cost, draws)
        held = np.flatnonzero(np.bincount(label, weights=everything.weights, minlength=len(opened.mean)) > 0)
        run.cost = objective(family, opened, everything.weights, label, cost, open_cost)
        run.trace.append(Record(len(run.trace) + 1, run.cost, len(opened.mean)))
        means = family.update(everything, label, len(opened.mean))
        same_labels = before is not None and np.array_equal(label, before)
        if same_labels and len(held) == len(opened.mean) and np.array_equal(means.chosen, run.params.chosen):
            run.reason = NOTHING_CHANGED
        run.params = family.select(means, held)
        before = label
    return finish(rows, run, [run])


def paper_pass(
    family: Paper, params: CraftParams, block: Block, open_cost: float, draws: np.random.Generator
) -> tuple[CraftParams, Array, Array]:
    """One walk over the rows: groups with those opened on the way, label and cost of each row when it was met."""
    limit = open_cost + family.n_columns * family.choice.f0
    label, cost = family.assign(params, block)
    met = 0
    while len(dear := np.flatnonzero((cost[met:] > limit) & (block.weights[met:] > 0))):
        row = met + int(dear[0])
        born = _begun(family, block, row, _drawn(family.choice.chances(params.chosen), draws))
        own = family.cost(born, block)[:, 0]
        moves = (own < cost) & (np.arange(len(cost)) > row)
        moves[row] = True  # as printed: the row that opens a group belongs to it
        label[moves], cost[moves] = len(params.mean), own[moves]
        params, met = joined(params, born), row + 1
    return params, label, cost


def objective(
    family: Paper, params: CraftParams, weight: Array, label: Array, cost: Array, open_cost: float
) -> float:
    """The printed objective: unlike the row costs, it counts F_delta once a group and not once a row."""
    per_row = family.choice.f_delta * params.chosen.sum(axis=1)[label]
    return float(weight @ (cost - per_row)) + family.penalty(params, open_cost)


def _begun(family: Paper, block: Block, row: int, chosen: Array) -> CraftParams:
    codes = np.zeros(0, dtype=np.intp) if block.codes is None else block.codes[row]
    return family.begin(block.numbers[row].astype(np.float64), codes, chosen)


def _drawn(chance: Array, draws: np.random.Generator) -> Array:
    """Each column with its chance; drawn again while none is chosen, for such a group would cost nothing."""
    while not (chosen := draws.random(len(chance)) < chance).any():
        if not chance.any():
            return np.ones(len(chance), dtype=bool)
    return np.asarray(chosen)
