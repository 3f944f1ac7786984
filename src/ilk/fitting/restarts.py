"""From a recipe to a fit: make the starts, run them together, keep the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, cast

import numpy as np

from ilk import kernels
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.errors import UsageError
from ilk.families.base import Family, SpreadFamily, Sums
from ilk.families.centroid import Means, Moments, coded
from ilk.fitting import parallel
from ilk.fitting.exact import LINE_ROWS, solve_line, solve_tiny
from ilk.fitting.fit import Fit, finish, fit, start_records
from ilk.fitting.loop import INTERRUPTED, PASS_LIMIT, PROVEN, Event, Run, Stop, run_starts
from ilk.fitting.recall import recall
from ilk.fitting.reservoir import Repeats
from ilk.fitting.start import STARTS, in_content_order, sample_rows, start_centres
from ilk.table.block import Array, Block

STARTS_ON_SAMPLE = 2  # times the starts asked for: on a sample they cost little
NEAR_BEST = 1.001  # of the starts that ended on a sample, those that cost at most so much more
MOST_CONTINUED = 3
HEAT_PASSES = 20  # of those that go on, after which only the best does


@dataclass(frozen=True)
class Recipe:
    """A method: what a component is, how rows are assigned, where it begins and when it ends."""

    name: str
    family: Family[Any]
    _: KW_ONLY
    init: str = "k-means++"
    n_starts: int = 10
    trim: float = 0.0
    stop: Stop = Stop()


def fit_recipe(
    rows: Rows,
    recipe: Recipe,
    k: int,
    seed: int,
    *,
    callback: Callable[[Event], None] | None = None,
) -> Fit:
    """Fit `recipe` with K components. Several starts on a large table run to their end on the sample they were
    drawn from; those that end near the best of them go on with all rows. "k-means||" draws from all rows."""
    family, trim, stop = recipe.family, recipe.trim, recipe.stop
    if recipe.init == parallel.NAME:
        repeats = Repeats.of(rows, seed)
        drawn = [parallel.parallel_centres(rows, k, repeats, number) for number in range(recipe.n_starts)]
        starts = [from_centres(rows, family, points) for points in drawn]
        return fit(rows, family, starts, trim=trim, stop=stop, callback=callback)
    stored = rows.cells_per_row if isinstance(rows, MemoryRows) else rows.n_columns
    block = rows.sample(sample_rows(max(stored, 1), k), seed)
    on_all_rows = block.n_rows == rows.n_rows or recipe.n_starts == 1
    if not on_all_rows:
        recipe = replace(recipe, n_starts=recipe.n_starts * STARTS_ON_SAMPLE)
    sample = MemoryRows.of_block(block, rows.threads)
    drawn_by = recipe.init, recipe.n_starts, k, seed
    centres = recall("starts", sample, drawn_by, lambda: named_starts(block, recipe, k, seed, rows))
    if on_all_rows:
        starts = [from_centres(rows, family, points) for points in centres]
        return fit(rows, family, starts, trim=trim, stop=stop, callback=callback)
    starts = [from_centres(sample, family, points) for points in centres]
    runs = run_starts(sample, [family] * len(starts), starts, trim=trim, stop=stop, callback=callback)
    if any(run.reason == INTERRUPTED for run in runs):
        return finish(rows, min(runs, key=lambda run: run.cost), runs, trim=trim)
    least = min(run.cost for run in runs)
    near = sorted((run for run in runs if run.cost <= least * NEAR_BEST), key=lambda run: run.cost)
    chosen = [run.params for run in near[:MOST_CONTINUED]]
    found = _fit_by_heats(rows, family, chosen, trim, stop, callback)
    return replace(found, starts=start_records(runs))


def _fit_by_heats(
    rows: Rows,
    family: Family[Any],
    starts: list[Any],
    trim: float,
    stop: Stop,
    callback: Callable[[Event], None] | None,
) -> Fit:
    """All starts for some passes, then the best of them to its end."""
    if len(starts) == 1 or stop.max_passes <= HEAT_PASSES:
        return fit(rows, family, starts, trim=trim, stop=stop, callback=callback)
    heat = replace(stop, max_passes=HEAT_PASSES)
    runs = run_starts(rows, [family] * len(starts), starts, trim=trim, stop=heat, callback=callback)
    best = min(runs, key=lambda run: run.cost)
    if best.reason != PASS_LIMIT:
        return finish(rows, best, runs, trim=trim)
    rest = replace(stop, max_passes=stop.max_passes - HEAT_PASSES)
    found = fit(rows, family, [best.params], trim=trim, stop=rest, callback=callback)
    later = tuple(replace(record, number=record.number + HEAT_PASSES) for record in found.trace)
    return replace(found, trace=(*best.trace, *later), n_passes=found.n_passes + HEAT_PASSES)


def named_starts(sample: Block, recipe: Recipe, k: int, seed: int, rows: Rows | None = None) -> list[Array]:
    """Centres of every start of the recipe; each start draws from its own stream. Of `rows` on a device the sample is
    put beside them, where distances are told with the same bits."""
    if recipe.init not in STARTS:
        known = ", ".join((*STARTS, parallel.NAME))
        raise UsageError("bad-start", f"init={recipe.init!r} is not a start", do=f"Choose one of {known}")
    ordered = in_content_order(sample)
    if recipe.init == "k-means++" and isinstance(rows, MemoryRows) and rows.resident is not None:
        ordered = rows.beside(MemoryRows.of_block(ordered)).whole or ordered
    return [start_centres(recipe.init, ordered, k, seed, number) for number in range(recipe.n_starts)]


def given_params(rows: Rows, family: Family[Any], init: Array, k: int) -> list[Any]:
    """First parameters from centres (K, columns) in the user's units, or from a label per row."""
    if init.ndim == 1:
        return all_from_labels(rows, family, init, k)
    return [from_centres(rows, family, rows.encoding.apply(np.asarray(init, dtype=np.float64)))]


@dataclass(frozen=True)
class _StartLabels:
    label: Array
    n_groups: int


def _visit_labels(state: _StartLabels, block: Block) -> Moments:
    label = state.label[block.first_row : block.first_row + block.n_rows]
    return Moments.of(block, label, state.n_groups)


def from_centres(rows: Rows, family: Family[Any], centres: Array) -> Any:
    """First parameters from centres; a family with spreads takes them from the rows nearest to each."""
    if not family.starts_from_partition:
        return family.start(centres)
    nearest = Means()
    parts = rows.scan(_visit_nearest, (nearest, nearest.start(centres)))
    return from_labels(rows, family, np.concatenate([*parts]), len(centres))


def from_labels(rows: Rows, family: Family[Any], label: Array, k: int) -> Any:
    """First parameters from a partition: the update from its sums, gathered about its own means."""
    return all_from_labels(rows, family, label, k)[0]


def all_from_labels(rows: Rows, family: Family[Any], label: Array, k: int) -> list[Any]:
    """As `from_labels`, with the further optima of the first update, where it has them."""
    if not family.starts_from_partition:
        return [family.start(label_means(rows, label, k))]
    spread = cast(SpreadFamily[Any], family)
    means = quick_means if rows.complete and spread.shares_blocks else label_means
    params = spread.start(means(rows, label, k))
    return spread.first_updates(params, gathered(rows, spread, params, label))


def from_given(rows: Rows, family: SpreadFamily[Any], given: Array, k: int) -> Any:
    """The update from given labels (rows,) or memberships (rows, K), its sums about the centre of the table."""
    params = family.start(np.zeros((k, rows.n_columns)))
    return family.update(params, gathered(rows, family, params, given))


def gathered(rows: Rows, family: SpreadFamily[Any], params: Any, given: Array) -> Mapping[str, Any]:
    """Sums about `params` of all rows under given labels (rows,) or memberships (rows, K)."""
    state = _Given(family, params, given)
    whole = rows.whole if family.shares_blocks else None
    return (rows.reduce(_visit_given, state) if whole is None else _visit_given(state, whole)).values


def memberships_of(label: Array, k: int) -> Array:
    """A partition as memberships (rows, K) of 0 and 1."""
    membership = np.zeros((len(label), k))
    membership[np.arange(len(label)), label] = 1.0
    return membership


@dataclass(frozen=True)
class _Given:
    family: SpreadFamily[Any]
    params: Any
    given: Array  # a label per row, or memberships (rows, K)


def _visit_given(state: _Given, block: Block) -> Sums:
    mine = state.given[block.first_row : block.first_row + block.n_rows]
    if mine.ndim == 1 and not (block.complete and state.family.shares_blocks):
        mine = memberships_of(mine, len(state.family.centres(state.params)))
    return Sums(state.family.gather(state.params, block, mine))


def _visit_nearest(state: Any, block: Block) -> Array:
    family, params = state
    label: Array = family.assign(params, block)[0]
    return label


def label_means(rows: Rows, label: Array, k: int) -> Array:
    """Means of the groups that `label` (0 .. k-1) makes; a group or column without cells lies at the centre."""
    return rows.reduce(_visit_labels, _StartLabels(label, k)).means(np.zeros((k, rows.n_columns)))


def quick_means(rows: Rows, label: Array, k: int) -> Array:
    """The same of complete rows, but for rounding, as the place that sums of a spread are gathered about."""
    state, whole = _StartLabels(label, k), rows.whole
    sums = (rows.reduce(_visit_quick, state) if whole is None else _visit_quick(state, whole)).values
    count = sums["count"][:, None]
    means: Array = np.divide(sums["shift"], count, out=np.zeros_like(sums["shift"]), where=count > 0)
    return means


def _visit_quick(state: _StartLabels, block: Block) -> Sums:
    label = state.label[block.first_row : block.first_row + block.n_rows]
    given = np.zeros((state.n_groups, block.n_columns)), label, "diagonal"
    count, shift, _ = kernels.mixture_gather(
        *coded(block), block.weight, *given, block.part_rows, block.threads
    )
    return Sums({"count": count, "shift": shift})


def solves_line(rows: Rows, recipe: Recipe) -> bool:
    """Whether the optimum of this table is found at once: one complete column of not too many values."""
    return rows.n_columns == 1 and rows.complete and not recipe.trim and rows.n_rows <= LINE_ROWS


def fit_exact(rows: Rows, recipe: Recipe, k: int, seed: int) -> Fit:
    """The proven optimum of K-means: dynamic programming for one column, branch and bound for a tiny table."""
    everything = rows.take(np.arange(rows.n_rows))
    points, weight = everything.numbers.astype(np.float64), everything.weights
    points, weight = points[weight > 0], weight[weight > 0]
    if rows.n_columns == 1:
        centres = solve_line(points[:, 0], weight, k)[:, None]
    else:
        known = fit_recipe(rows, recipe, k, seed)
        label, _ = solve_tiny(points, weight, k, known.cost)
        n_groups = int(label.max()) + 1
        centres = np.array(
            [np.average(points[label == g], axis=0, weights=weight[label == g]) for g in range(n_groups)]
        )
    run = Run(recipe.family, recipe.family.start(centres), reason=PROVEN)
    found = finish(rows, run, [run])
    return replace(found, starts=start_records([replace(run, cost=found.cost)]))
