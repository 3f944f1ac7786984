"""Do the groups return in resamples? The whole rule, from the fit to the merge, on bootstraps of the rows.

Bootstraps of n out of n separate best: half samples lose good groups, and a warm start keeps false ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ilk.assorted.blended import Blended
from ilk.assorted.compiled_run import run_all_starts
from ilk.assorted.embedding import EmbeddedRows, Partition
from ilk.assorted.family import Assorted
from ilk.assorted.racing import raced, run_plainly
from ilk.assorted.screening import screened
from ilk.assorted.state import from_labels as given_labels
from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.families.base import Family, GrowingFamily
from ilk.families.gaussian import Gaussian
from ilk.fitting.deadline import Deadline
from ilk.fitting.loop import OK, Run, Stop
from ilk.fitting.mixture import best_run, distinct
from ilk.fitting.partitions import Partitioner
from ilk.fitting.recall import recall
from ilk.fitting.restarts import Recipe, fit_recipe, from_labels
from ilk.fitting.small_tables import run_quick
from ilk.fitting.table_moments import table_moments
from ilk.model.grouped import Grouped
from ilk.model.registry import fitted_as
from ilk.random import stream
from ilk.selection.merging import MergePath, numbered
from ilk.selection.samples import Samples
from ilk.table.block import Array, Block

N_RESAMPLES = 10
LEAST_RESAMPLES = (
    4  # after which no more are drawn where they would hardly change the verdict; fewer tell nothing
)
# Mean Jaccard of a stable group, and of groups that are stable on the whole; wide tables are held against the first.
STABLE_MIN, STABLE_MEAN = 0.75, 0.65
DISSOLVED = 0.50  # a group below is another one in every resample (Hennig 2007)
SURE, LEAST_ERROR = 2.5, 0.02  # standard errors from there; a few resamples that agree may do so by chance
MOST_ROWS = 1500
COLD_STARTS = ("k-means", "tree")
COLD_PARTITIONS: tuple[Partition, ...] = (
    EmbeddedRows.by_k_means,
    EmbeddedRows.by_dependence,
    EmbeddedRows.by_k_log_k,
)
COLD_STOP = Stop(tolerance=1e-5, max_passes=200)

Refit = Callable[[MemoryRows, Block, int, int], tuple[Family[Any], Any] | None]
"""Of the rows of a resample, the same as starts count them, a number of pieces and a seed."""


@dataclass(frozen=True, kw_only=True)
class ResamplingPlan:
    """The rule that is repeated: `refit` gives `n_pieces`, which are merged below `threshold` down to `least`."""

    refit: Refit
    n_pieces: int
    threshold: float | None
    least: int
    soft: bool
    deadline: Deadline = field(default_factory=Deadline.none)


@dataclass
class _Again:
    """The fit of a resample, and its pieces on their way to groups."""

    family: Family[Any]
    params: Any
    samples: Samples
    soft: bool

    @cached_property
    def path(self) -> MergePath:
        """On all rows: those of a resample are tied, and ties look like modes."""
        return MergePath(self.samples.ground(self.family, self.params), len(self.family.centres(self.params)))

    def by_rule(self, plan: ResamplingPlan) -> Grouped:
        """Groups by the rule of the answer."""
        group_of = np.arange(len(self.family.centres(self.params)))
        if plan.threshold is not None and len(group_of) > 1:
            group_of = numbered(self.path.merged(plan.threshold, plan.least))
        return Grouped(self.family, self.params, group_of, self.soft)

    def down_to(self, n_groups: int) -> Grouped:
        """Merged to so many groups at most."""
        return Grouped(self.family, self.params, self.path.at(n_groups), self.soft)


@dataclass(frozen=True)
class Resampled:
    """The rule repeated on resamples: the labels of the answer's sample, the fits, and each group's stability."""

    sample: Block
    fits: tuple[_Again | None, ...]
    stable: tuple[float, ...]
    errors: tuple[float, ...]  # standard errors of these

    @property
    def at_least(self) -> tuple[float, ...]:
        """Stability of each group less its standard error: what is below a threshold may as well be there."""
        return tuple(mean - error for mean, error in zip(self.stable, self.errors, strict=True))

    def merged_to(self, merged: Grouped) -> tuple[float, ...]:
        """Stability of coarser groups: the pieces of each resample are merged to as many."""
        n_groups, label = merged.n_groups, merged.label(self.sample)
        found = []
        for again in self.fits:
            found.append(
                _recovered(label, n_groups, None if again is None else again.down_to(n_groups), self.sample)
            )
        return _means(found)


def resampled(
    samples: Samples, grouped: Grouped, plan: ResamplingPlan, seed: int, threads: int | None = None
) -> Resampled | None:
    """Per group the Jaccard index of its nearest group in a resample, averaged over the resamples: as many as the
    verdict needs, ten at most; None where there was no time for the least number of them.

    Of `samples` in their canonical order: a part of them then is the same for weights and repeated rows.
    """
    sample = samples.drawn(MOST_ROWS, grouped)
    samples = replace(samples, plain=sample) if samples.wide is None else samples
    label, inner = grouped.label(sample), MemoryRows.of_block(sample, threads)

    def one(number: int) -> tuple[_Again | None, Array]:
        by = number, seed, plan.n_pieces, grouped.family, grouped.params
        fit = (
            None
            if plan.deadline.over
            else recall("resample", inner, by, lambda: _refitted(sample, samples, plan, seed, number))
        )
        again = None if fit is None else _Again(*fit, samples, plan.soft)
        made = None if again is None else again.by_rule(plan)
        return again, _recovered(label, grouped.n_groups, made, sample)

    made: list[tuple[_Again | None, Array]] = []
    for batch in _batches(inner.threads):
        so_far = np.array([found for _, found in made])
        if plan.deadline.over or (made and told(so_far)):
            break
        for again in inner.map(one, batch):
            if plan.deadline.over:  # perhaps it was cut short, and then measures nothing
                break
            made.append(again)
            if len(made) >= LEAST_RESAMPLES and told(np.array([found for _, found in made])):
                break
    if len(made) < LEAST_RESAMPLES:
        return None
    fits, found = zip(*made, strict=True)
    errors = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    return Resampled(sample, fits, _means(found), tuple(float(error) for error in errors))


def _means(found: Sequence[Array]) -> tuple[float, ...]:
    return tuple(float(value) for value in np.mean(found, axis=0))


def _batches(threads: int) -> list[range]:
    """The numbers of the resamples that are drawn at a time: no more at once than are needed, or than threads."""
    starts = [0, LEAST_RESAMPLES, *range(LEAST_RESAMPLES + 1, N_RESAMPLES, threads), N_RESAMPLES]
    return [range(first, end) for first, end in pairwise(starts)]


def told(returned: Array) -> bool:
    """Whether further resamples would hardly change the verdict, given the Jaccard indices so far (resamples, groups):
    every group returns, or some group surely does not and nothing else is near a threshold.

    >>> told(np.full((4, 2), 0.9)), told(np.array([[0.9, 0.7], [0.8, 0.8], [0.9, 0.8], [0.9, 0.6]]))
    (True, False)
    """
    mean, error = _mean_and_error(returned)
    if (mean - SURE * error > STABLE_MIN).all():
        return True
    total, total_error = _mean_and_error(returned.mean(axis=1))
    lost = (mean + SURE * error < STABLE_MIN).any() and not (np.abs(mean - DISSOLVED) < SURE * error).any()
    near = min(abs(total - STABLE_MEAN), abs(total - STABLE_MIN)) <= SURE * total_error
    return bool(lost and not near)


def _mean_and_error(values: Array) -> tuple[Array, Array]:
    """Mean over the resamples, and its standard error."""
    return values.mean(axis=0), np.sqrt(values.var(axis=0, ddof=1) / len(values) + LEAST_ERROR**2)


def _refitted(
    sample: Block, samples: Samples, plan: ResamplingPlan, seed: int, number: int
) -> tuple[Family[Any], Any] | None:
    """The fit of one bootstrap, drawn by weight, or evenly from rows drawn by group; None where the model has no
    valid one there."""
    draws, ones = stream(seed, "resample", number), np.ones(sample.n_rows)
    chance, worth = (sample.weights, ones) if samples.wide is None else (ones, sample.weights)
    reached = np.cumsum(chance)
    at = np.searchsorted(reached, draws.random(sample.n_rows) * reached[-1], "right")
    times = np.bincount(np.minimum(at, sample.n_rows - 1), minlength=sample.n_rows)
    drawn = np.flatnonzero(times)
    block = Block(
        sample.raw[drawn],
        sample.encoding,
        weight=times[drawn] * worth[drawn],
        codes=None if sample.codes is None else sample.codes[drawn],
        complete=sample.complete,
    )
    # Starts see rare groups as often as they were drawn.
    counted = replace(block, weight=times[drawn].astype(np.float64))
    return _largest(MemoryRows.of_block(block, 1), counted, plan, seed + number)


def _largest(
    rows: MemoryRows, counted: Block, plan: ResamplingPlan, seed: int
) -> tuple[Family[Any], Any] | None:
    """The fit with all pieces, or with as many as a resample allows: it has fewer distinct rows than the table."""
    for n_pieces in range(plan.n_pieces, 0, -1):
        found = plan.refit(rows, counted, n_pieces, seed)
        if found is not None or plan.deadline.over:
            return found
    return None


def _recovered(label: Array, n: int, again: Grouped | None, sample: Block) -> Array:
    """How well each group is found again; not at all where a resample has no fit."""
    return np.zeros(n) if again is None else _jaccard(label, n, again.label(sample), sample)


def _jaccard(label: Array, n: int, other: Array, sample: Block) -> Array:
    """Per group of `label` (0 .. n-1) the best Jaccard index with a group of `other`, by weight."""
    weight, m = sample.weights, int(other.max()) + 1
    shared = np.bincount(label * m + other, weights=weight, minlength=n * m).reshape(n, m)
    either = shared.sum(axis=1)[:, None] + shared.sum(axis=0) - shared
    return np.asarray((shared / np.maximum(either, 1e-300)).max(axis=1))


def refit_of(recipe: Recipe, deadline: Deadline) -> Refit:
    """How the chosen model is fitted anew."""
    anew: dict[str, Callable[[Any, Stop], Refit]] = {"mixture": refit_mixture, "growth": refit_assorted}
    way = anew.get(fitted_as(recipe.family.name))
    if way is None:
        return refit_recipe(replace(recipe, stop=replace(recipe.stop, deadline=deadline)))
    return way(recipe.family, replace(COLD_STOP, deadline=deadline))


def refit_assorted(family: Assorted | Blended, stop: Stop) -> Refit:
    """Clusters of the same columns from cold starts: one pass with every cell chosen, then in groups; of a wide table
    from its screened columns."""

    deadline = stop.deadline

    def in_time(rows: Rows, family: GrowingFamily[Any], starts: Sequence[Any], stop: Stop) -> list[Run]:
        return run_plainly(rows, family, starts, replace(stop, deadline=deadline))

    def refit_wide(rows: MemoryRows, counted: Block, k: int, seed: int) -> tuple[Family[Any], Any] | None:
        # Each row once: one that was drawn four times is alike in all columns, and would make a cluster of its own.
        points = EmbeddedRows.of_block(replace(counted, weight=None), family.columns)
        once = MemoryRows.of_block(
            replace(counted, weight=rows.take(np.arange(rows.n_rows)).weights / counted.weights), 1
        )
        parts = screened(points, k, stream(seed, "screened", k), n_neighbours=1)
        runs = raced(once, family, parts, k, in_time)
        return (family, runs[0].measured) if runs else None

    def refit(rows: MemoryRows, counted: Block, k: int, seed: int) -> tuple[Family[Any], Any] | None:
        if family.wide and k > 1:
            return refit_wide(rows, counted, k, seed)
        points = EmbeddedRows.of_block(counted, family.columns)
        parts = distinct([kind(points, k, seed, number) for number, kind in enumerate(COLD_PARTITIONS)])
        starts = [given_labels(rows, family, part, int(part.max()) + 1) for part in parts]
        runs = run_all_starts(rows, [family] * len(starts), starts, stop=stop)
        return family, best_run(runs).params

    return refit


def refit_mixture(family: Gaussian, stop: Stop) -> Refit:
    """Gaussians of the same structure from cold starts."""

    def refit(rows: MemoryRows, counted: Block, k: int, seed: int) -> tuple[Family[Any], Any] | None:
        variance = table_moments(rows).variance
        if not (variance > 0).all():
            return None
        own = replace(family, column_variances=variance)
        partitioner = Partitioner(counted, seed)
        parts = distinct([partitioner.labels(name, k, 0) for name in COLD_STARTS])
        starts = [from_labels(rows, own, part, int(part.max()) + 1) for part in parts]
        starts = [start for start in starts if start.status == OK]
        runs = run_quick(rows, [own] * len(starts), starts, stop)
        if not runs or best_run(runs).status != OK:
            return None
        return own, best_run(runs).params

    return refit


def refit_recipe(recipe: Recipe) -> Refit:
    """A method of centres from as many starts."""

    def refit(rows: MemoryRows, counted: Block, k: int, seed: int) -> tuple[Family[Any], Any] | None:
        few = replace(recipe, n_starts=len(COLD_STARTS))
        return recipe.family, fit_recipe(rows, few, k, seed).params

    return refit
