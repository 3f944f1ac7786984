"""Hard components with too few rows: the update of the others, and the spread a starved one waits with.

Under hard memberships a component may be left with fewer rows than its spread needs. It is left out of the update and
takes the mean spread of the others, within the structure, until the loop reopens it at the dearest rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ilk.families.covariance import Covariance, CovarianceUpdate, Structure
from ilk.table.block import Array

Update = Callable[[Structure, Array, Array, Covariance | None, Array], CovarianceUpdate]


def update_lasting(
    update: Update,
    structure: Structure,
    count: Array,
    scatter: Array,
    previous: Covariance | None,
    column_variances: Array,
) -> CovarianceUpdate:
    """`update` without the components it finds too poor, whose numbers come back with status "ok".

    Where nothing can last, what `update` said of all of them.
    """
    found = update(structure, count, scatter, previous, column_variances)
    everyone, lasting = found, np.arange(len(count))
    while found.status != "ok":
        lasting = np.delete(lasting, found.components)
        if not lasting.size:
            return everyone
        before = None if previous is None else previous.select(lasting)
        found = update(structure, count[lasting], scatter[lasting], before, column_variances)
    starved = np.setdiff1d(np.arange(len(count)), lasting)
    covariance = (
        with_starved(structure, count, found.covariance, lasting) if starved.size else found.covariance
    )
    return CovarianceUpdate(covariance, "ok", starved)


def with_starved(structure: Structure, count: Array, known: Covariance, lasting: Array) -> Covariance:
    """The covariances `known` of the components `lasting` of all K, and for the others the mean of these.

    Variances are averaged along axes of the same rank, and scaled to the common volume where there is one, so that
    all K keep to the structure. Own axes are those of the pooled covariance.
    """
    k, d = len(count), known.log_variance.shape[1]
    weight = count[lasting] if count.ndim == 1 else count[lasting].mean(axis=1)
    weight = weight / weight.sum()
    logs = np.log(weight @ np.exp(known.log_variance))
    if structure.volume == "E":
        logs += known.log_volume[0] - logs.mean()
    log_variance = np.tile(logs, (k, 1))
    log_variance[lasting] = known.log_variance
    axes = known.axes
    if axes is not None and axes.ndim == 3:
        pooled = np.linalg.eigh(np.einsum("k,kij->ij", weight, known.matrices()))[1][:, ::-1]
        axes = np.tile(pooled, (k, 1, 1)).reshape(k, d, d)
        axes[lasting] = known.axes
    return Covariance(log_variance, axes)
