"""How each method beside the loop parts the rows of a table: in K groups, or in as many as it finds.

`methods.py` names these functions: of the rows, of K or None, of the most groups where K is None, and of a seed.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from ilk.families.base import Family
from ilk.families.centroid import Means
from ilk.families.covariance import Covariance, Structure
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.dirichlet import fit_process, make_process
from ilk.fitting.loop import Stop
from ilk.measures.criteria import bic
from ilk.model.levels import HARD_LEVELS, SOFT_LEVELS, Levels
from ilk.model.no_prediction_rule import NO_PREDICTION_RULE
from ilk.paradigms.blurring import blur
from ilk.paradigms.bottleneck import Joint, mean_counts, squeeze
from ilk.paradigms.density import hdbscan
from ilk.paradigms.gaussian_process import dirichlet_gaussians
from ilk.paradigms.graph import affinity_propagation, eigengaps, spectral
from ilk.paradigms.linkage import cut_at, cuts, longest_lived, tree_of
from ilk.paradigms.modes import flat_bandwidth, gaussian_bandwidth, mean_shift
from ilk.paradigms.order import by_size
from ilk.paradigms.typical_cuts import chosen, lasting, typical_cuts
from ilk.selection.paradigm_input import Material
from ilk.table.block import Array

SMALL_SHARE = 0.02  # of the rows: fewer are no typical cut, and no cluster of single linkage
LEAST_DENSE = 5  # rows of a group of HDBSCAN in small tables, as scikit-learn has it
N_NEIGHBOURS = 10
DAMPINGS, AP_PASSES = (0.5, 0.8, 0.95), 500  # of affinity propagation: messages that swing are damped more
CONCENTRATION = 1.0
SQUEEZE: dict[str, Any] = {
    "n_starts": 4,
    "tolerance": 1e-6,
    "max_passes": 200,
}  # of a bottleneck, for every K
DP_STOP = Stop(tolerance=1e-8, max_passes=1000)


ByK = tuple[tuple[int, float], ...]


@dataclass(frozen=True, eq=False)
class Parting:
    """Labels of all rows, in canonical order, -1 for rows that belong nowhere; by which rule, if any, new rows are
    placed; the criterion of each K that was tried, where the method has one, or else its sign (`Method.sign`);
    and whether it settled."""

    labels: Array
    _: KW_ONLY
    family: Family[Any] = NO_PREDICTION_RULE
    params: Any = None
    bic_of: ByK = ()
    signs: ByK = ()
    settled: bool = True
    n_passes: int = 0

    @property
    def n_groups(self) -> int:
        return int(self.labels.max()) + 1


def spectral_parts(material: Material, k: int | None, most: int, seed: int) -> Parting:
    matrix = material.distances.matrix
    signs: ByK = ()
    if k is None:
        leaps = eigengaps(matrix, min(most, len(matrix) - 2), N_NEIGHBOURS)
        k, signs = int(leaps.argmax()) + 1, _by_k(leaps)
    return Parting(by_size(spectral(matrix, k, N_NEIGHBOURS, seed))[0], signs=signs)


def typical_parts(material: Material, k: int | None, most: int, seed: int) -> Parting:
    ladder = typical_cuts(material.distances.matrix, N_NEIGHBOURS, least_rows(material.n_rows), seed)
    few = [step for step in ladder if step.n_clusters <= most] or ladder
    signs = tuple((number, float(steps)) for number, steps in lasting(few).items())
    return Parting(by_size(chosen(few, k).labels)[0], signs=() if k else signs)


def linkage_parts(method: str, material: Material, k: int | None, most: int, seed: int) -> Parting:
    least = least_rows(material.n_rows) if method == "single" else 1
    tree = tree_of(material.distances, method)
    if k is not None:
        return Parting(by_size(cut_at(tree, k, least).labels)[0])
    possible = cuts(tree, most, least)
    top = float(tree[:, 2].max()) or 1.0
    signs = tuple((cut.n_clusters, cut.gap / top) for cut in possible)
    return Parting(by_size(longest_lived(possible).labels)[0], signs=signs)


def hdbscan_parts(material: Material, k: int | None, most: int, seed: int) -> Parting:
    least = max(LEAST_DENSE, least_rows(material.n_rows))
    return Parting(by_size(hdbscan(material.distances.matrix, least))[0])


def _by_k(values: Array) -> ByK:
    return tuple((number, float(value)) for number, value in enumerate(values, 1))


def affinity_parts(material: Material, k: int | None, most: int, seed: int) -> Parting:
    for damping in DAMPINGS:
        found = affinity_propagation(material.distances.matrix, seed, damping=damping, max_passes=AP_PASSES)
        if found.converged:
            break
    labels, order = by_size(found.labels)
    if material.mixed:
        return Parting(labels, settled=found.converged, n_passes=found.n_passes)
    family = Means()
    params = family.start(material.points[found.rows[order]])
    return Parting(labels, family=family, params=params, settled=found.converged, n_passes=found.n_passes)


def mean_shift_parts(material: Material, k: int | None, most: int, seed: int) -> Parting:
    points = material.points
    labels, modes = mean_shift(points, flat_bandwidth(points, seed))
    labels, order = by_size(labels)
    return Parting(labels, family=Means(), params=Means().start(modes[order]))


def blurring_parts(material: Material, k: int | None, most: int, seed: int) -> Parting:
    found = blur(material.points, gaussian_bandwidth(material.points, seed))
    return Parting(by_size(found.labels)[0], settled=found.converged, n_passes=found.n_passes)


def dirichlet_parts(material: Material, k: int | None, most: int, seed: int) -> Parting:
    if material.mixed:
        rows = material.rows
        family = make_process(rows, material.level_start, CONCENTRATION)
        fit = fit_process(rows, family, most, seed, DP_STOP)
        kept = family.select(fit.params, np.flatnonzero(fit.size > 0))
        return Parting(fit.labels, family=family, params=kept, settled=fit.converged, n_passes=fit.n_passes)
    found = dirichlet_gaussians(material.points, most, seed)
    labels, order = by_size(found.labels)
    variance, axes = np.linalg.eigh(found.covariance[order])
    share = found.mixing[order] / found.mixing[order].sum()
    params = Mixture(share, found.mean[order], Covariance(np.log(variance), axes))
    gaussian = Gaussian(Structure.parse("VVV"), material.points.var(axis=0))
    return Parting(labels, family=gaussian, params=params, settled=found.converged, n_passes=found.n_passes)


def bottleneck_parts(deterministic: bool, material: Material, k: int | None, most: int, seed: int) -> Parting:
    """Where K is free, that of the lowest BIC: at beta = cells in a row the functional is the log-likelihood of a
    mixture of multinomials, `-rows * (functional + beta H(Y))` (Slonim and Weiss 2002)."""
    counts = material.counts
    joint, beta, n_rows = Joint.of_counts(counts), mean_counts(counts), material.n_rows
    n_columns = material.block.n_columns + len(material.level_start) - 1
    found, scores = [], []
    for number in range(1, min(most, n_rows) + 1) if k is None else [k]:
        run = squeeze(joint, number, beta, seed, deterministic=deterministic, **SQUEEZE)
        groups = len(run.groups.share)
        parameters = groups - 1 + groups * (counts.shape[1] - n_columns)
        loglik = -n_rows * (run.functional + beta * float(entr(joint.level).sum()))
        found.append(run)
        scores.append((number, bic(loglik, parameters, n_rows)))
    best = found[int(np.argmin([value for _, value in scores]))]
    labels, order = by_size(best.groups.memberships(joint.given).argmax(axis=1))
    params = Levels(best.groups.select(order), material.knots, material.level_start)
    family = HARD_LEVELS if deterministic else SOFT_LEVELS
    return Parting(
        labels,
        family=family,
        params=params,
        bic_of=tuple(scores),
        settled=best.converged,
        n_passes=len(best.trace),
    )


def least_rows(n_rows: int) -> int:
    """Rows from which a cluster counts."""
    return max(2, round(SMALL_SHARE * n_rows))
