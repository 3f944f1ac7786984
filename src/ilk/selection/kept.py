"""Which K, where some labels or pairs of rows are known and kept: K-means, or Gaussian mixtures, by BIC."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ilk.engines.memory import MemoryRows
from ilk.errors import UsageError
from ilk.families.covariance import Structure
from ilk.families.gaussian import Gaussian
from ilk.fitting.constrained import fit_components, fit_means
from ilk.fitting.constraints import Constraints, Known
from ilk.fitting.fit import Fit
from ilk.fitting.loop import DEGENERATE
from ilk.fitting.mixture import MixturePlan
from ilk.fitting.restarts import Recipe
from ilk.fitting.table_moments import table_moments
from ilk.measures.criteria import bic, icl
from ilk.methods import GAUSSIAN, K_MEANS
from ilk.selection.candidates import OK, SINGULAR, Candidate, Search
from ilk.selection.search import STATUS_OF_REASON, choose, runner_up, scored

PATIENCE = 2  # K beyond the best so far
METHODS_KEPT = (GAUSSIAN, K_MEANS.name)
STRUCTURES_KEPT = ("EII", "VII", "EEI", "VVI", "EEE", "VVV")  # round, along the columns, of any shape


def search_kept(rows: MemoryRows, method: str, ks: Sequence[int], seed: int, known: Known) -> Search:
    """The best K by BIC among those in which everything that is known can be kept."""
    fits: list[tuple[Candidate, Fit, Recipe]] = []
    refused: UsageError | None = None
    for k in ks:
        if len(ks) > 1 and _rises(fits, k):
            break
        try:
            kept = known.of(rows.n_rows, k)
        except UsageError as error:  # more groups may hold what these cannot
            refused = error
            continue
        fits += _means(rows, k, seed, kept) if method == K_MEANS.name else _mixtures(rows, k, seed, kept)
    if not fits:
        assert refused is not None
        raise refused
    candidates = [candidate for candidate, _, _ in fits]
    winner = choose(candidates)[0]
    _, found, recipe = fits[winner]
    return Search(
        candidates=tuple(candidates),
        winner=winner,
        runner_up=runner_up(candidates, winner),
        fit=found,
        recipe=recipe,
        sharpness=None,
        n_rows_searched=rows.n_rows,
        interrupted=False,
    )


def _rises(fits: Sequence[tuple[Candidate, Fit, Recipe]], k: int) -> bool:
    """Whether the last few K have not lowered the BIC."""
    known = [(candidate.bic, candidate.k) for candidate, _, _ in fits if candidate.bic is not None]
    return bool(known) and k - min(known)[1] > PATIENCE


def _means(rows: MemoryRows, k: int, seed: int, kept: Constraints) -> list[tuple[Candidate, Fit, Recipe]]:
    found = fit_means(rows, K_MEANS, k, seed, kept)
    return [(scored(rows, K_MEANS, k, found, None), found, K_MEANS)]


def _mixtures(rows: MemoryRows, k: int, seed: int, kept: Constraints) -> list[tuple[Candidate, Fit, Recipe]]:
    moments, made = table_moments(rows), []
    names = dict.fromkeys(Structure.parse(name).for_columns(rows.n_columns).name for name in STRUCTURES_KEPT)
    for name in names:
        family = Gaussian(Structure.parse(name).for_columns(rows.n_columns), moments.variance)
        found = fit_components(rows, family, k, seed, MixturePlan(), kept)
        made.append(
            (_scored(family, name, k, found, float(moments.row_weight)), found, Recipe(GAUSSIAN, family))
        )
    return made


def _scored(family: Any, name: str, k: int, found: Fit, n_rows: float) -> Candidate:
    parameters = family.free_parameters(found.params)
    well = found.reason != DEGENERATE and math.isfinite(found.cost)
    return Candidate(
        GAUSSIAN,
        name,
        k,
        STATUS_OF_REASON.get(found.reason, OK) if well else SINGULAR,
        loglik=-found.cost if well else None,
        parameters=parameters,
        bic=bic(-found.cost, parameters, n_rows) if well else None,
        icl=icl(-found.cost, parameters, n_rows, found.log_certainty) if well else None,
        cost=found.cost if well else None,
        n_starts=len(found.starts),
        n_starts_at_best=sum(start.cost <= found.cost + 1e-6 * abs(found.cost) for start in found.starts),
        n_passes=found.n_passes,
    )
