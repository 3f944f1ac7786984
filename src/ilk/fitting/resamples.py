"""A model fitted again to bootstrap resamples of its rows, from its own parameters: components keep their numbers.

nonparametric         a row counts as often as it is drawn, n draws with replacement (Efron 1979)
weighted-likelihood   a row counts n times its share of a flat Dirichlet draw (Newton and Raftery 1994)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from ilk.engines.memory import MemoryRows
from ilk.families.base import Family
from ilk.fitting.loop import OK, Stop, run_starts
from ilk.random import stream
from ilk.table.block import Array
from ilk.table.content import content_keys

Kind = Literal["nonparametric", "weighted-likelihood"]
KINDS: tuple[Kind, ...] = ("nonparametric", "weighted-likelihood")
RESAMPLE_STOP = Stop(tolerance=1e-8, max_passes=500)


def resample_weights(weight: Array, kind: str, draws: np.random.Generator) -> Array:
    """How much each row counts in a resample, of rows that weigh `weight` and stand for that many each."""
    share, total = weight / weight.sum(), float(weight.sum())
    if kind == "nonparametric":
        counted = max(round(total), 1)
        return draws.multinomial(counted, share).astype(np.float64) * (total / counted)
    drawn = draws.gamma(np.where(weight > 0, weight, 1.0)) * (weight > 0)
    return np.asarray(drawn * (total / drawn.sum()))


def refitted(
    rows: MemoryRows,
    family: Family[Any],
    params: Any,
    kind: str,
    n_resamples: int,
    seed: int,
    trim: float = 0.0,
) -> Iterator[tuple[Any, Array] | None]:
    """Parameters and row weights of each resample, components in the order of `params`; None where one was lost."""
    block, k = rows.take(np.arange(rows.n_rows)), len(family.centres(params))
    weight, order = block.weights, np.argsort(content_keys(block, 0), kind="stable")
    for number in range(n_resamples):
        drawn = np.empty(rows.n_rows)  # in the order of what rows say, so that no other matters
        drawn[order] = resample_weights(weight[order], kind, stream(seed, "standard errors", number))
        again = MemoryRows(
            rows.raw,
            rows.encoding,
            weight=drawn,
            codes=rows.codes,
            complete=rows.complete,
            threads=rows.threads,
        )
        run = run_starts(again, [family], [params], trim=trim, stop=RESAMPLE_STOP)[0]
        kept = run.usable and run.status == OK and len(family.centres(run.params)) == k
        yield (run.params, drawn) if kept else None
