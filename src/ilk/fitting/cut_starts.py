"""Starts of a mixture by climbing: the fit with one component less, each component in turn cut in two."""

from __future__ import annotations

import numpy as np

from ilk.engines.memory import MemoryRows
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.loop import OK, Run, Stop
from ilk.fitting.mixture import best_run
from ilk.fitting.partitions import Partitioner
from ilk.fitting.restarts import from_labels
from ilk.fitting.small_tables import run_quick
from ilk.fitting.split_merge import split_labels

STEPS = 3  # components fewer than asked for, from which the climb sets out
TRIAL = Stop(tolerance=1e-5, max_passes=5)  # of every cut; the best goes on
GOING_ON = Stop(tolerance=1e-5, max_passes=30)


def cut_starts(sample: MemoryRows, family: Gaussian, k: int, partitioner: Partitioner) -> list[Mixture]:
    """Parameters of K components, from a few less by cuts that raised the likelihood most; none where it breaks off.

    Where groups are stretched or nested, partitions of the rows alone miss what a cut finds.
    """
    if k == 1 or family.noise is not None:
        return []
    first = max(1, k - STEPS)
    label = partitioner.labels("tree" if sample.n_columns > 1 else "quantile", first, 0)
    run = _best(sample, family, [from_labels(sample, family, label, int(label.max()) + 1)], GOING_ON)
    block = sample.take(np.arange(sample.n_rows))
    for more in range(first + 1, k + 1):
        if run is None:
            return []
        cuts = [from_labels(sample, family, cut, more) for cut in split_labels(block, family, run.params)]
        run = _best(sample, family, cuts, TRIAL)
        if run is not None and more < k:
            run = _best(sample, family, [run.params], GOING_ON)
    return [] if run is None else [run.params]


def _best(sample: MemoryRows, family: Gaussian, starts: list[Mixture], stop: Stop) -> Run | None:
    """The best run from these starts; None where there is none."""
    good = [start for start in starts if start.status == OK]
    runs = [run for run in run_quick(sample, [family] * len(good), good, stop) if run.status == OK]
    return best_run(runs) if runs else None
