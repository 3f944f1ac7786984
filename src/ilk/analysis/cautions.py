"""What a user should know of how a run went, each with a stable code."""

from __future__ import annotations

import numpy as np

from ilk import kernels
from ilk.analysis.prepare import Job, Prepared
from ilk.errors import shown
from ilk.fitting.fit import label_counts
from ilk.fitting.loop import FEWER_DISTINCT_ROWS, INTERRUPTED, PASS_LIMIT, TIME_LIMIT
from ilk.selection.candidates import Search
from ilk.table.ledger import Caution

SHARP = 0.50  # silhouette; Kaufman and Rousseeuw 1990: from 0.51 a reasonable structure
STOPPED: Caution = ("interrupted", "the run was interrupted; this is the best found so far")
DOMINANT = 0.9  # share of the variance from which one unscaled column decides alone


def cautions(job: Job, ready: Prepared, found: Search, interrupted: bool) -> list[Caution]:
    """What a user should know of how it went."""
    made: list[Caution] = []
    fit, chosen = found.fit, found.chosen
    if interrupted or fit.reason == INTERRUPTED:
        made.append(STOPPED)
    elif fit.reason == TIME_LIMIT or any(c.status == "did_not_start" for c in found.candidates):
        untried = [str(c.k) for c in found.candidates if c.status == "did_not_start"]
        made.append(
            (
                "time-limit",
                "the time limit was reached" + (f" before K {', '.join(untried)}" if untried else ""),
            )
        )
    elif fit.reason == PASS_LIMIT:
        made.append(("not-converged", f"the fit did not converge within {fit.n_passes} passes"))
    if fit.status == FEWER_DISTINCT_ROWS or chosen.status == FEWER_DISTINCT_ROWS:
        made.append(
            (
                "fewer-distinct-rows",
                f"{chosen.k} groups were asked for, but the table has only {len(fit.size)} distinct rows",
            )
        )
    elif chosen.status in ("ok_exact", "singular"):
        made.append(
            (
                "exact-fit",
                "every row equals the centre of its group: there are as many groups as distinct rows",
            )
        )
    elif job.asked is not None and len(fit.size) < job.asked:
        text = f"{job.asked} groups were asked for and {len(fit.size)} found; the others were empty"
        made.append(("fewer-groups", text))
    lone = [g for g, n in enumerate(label_counts(fit.labels, len(fit.size))) if n == 1]
    if lone and len(fit.size) > 1:
        text = "a group holds" if len(lone) == 1 else f"{len(lone)} groups hold"
        made.append(("single-row-group", f"{text} only one row, which is also its centre in the model"))
    limit = max((c.k for c in found.candidates if c.status != "reference"), default=1)
    if chosen.k == limit > 2 and found.runner_up is not None:
        made.append(
            (
                "k-at-limit",
                f"K={limit} is the largest K that was tried; to try more: k=range(1, {2 * limit + 1})",
            )
        )
    sharpest = max(found.candidates, key=lambda c: c.silhouette or 0.0)
    if len(fit.size) == 1 and (sharpest.silhouette or 0.0) >= SHARP:
        text = (
            f"BIC prefers one group, but {sharpest.k} groups have a silhouette of {sharpest.silhouette:.2f}"
        )
        made.append(("silhouette-disagrees", f"{text}; try k={sharpest.k}"))
    if found.n_rows_searched < ready.rows.n_rows:
        made.append(
            (
                "sampled-search",
                f"K was chosen on a sample of {found.n_rows_searched} rows; the fit is on all rows",
            )
        )
    if ready.looked is not None and len(ready.looked.places) < ready.rows.n_rows:
        text = f"groups are described on a sample of {len(ready.looked.places)} rows; labels and sizes are of all rows"
        made.append(("described-on-sample", text))
    if kernels.LACKING:
        made.append(("numpy-kernels", kernels.LACKING))
    return made + dominated(job, ready)


def dominated(job: Job, ready: Prepared) -> list[Caution]:
    if job.scale is not None or ready.rows.n_columns < 2:
        return []
    numbers = ready.rows.take(np.arange(min(ready.rows.n_rows, 10_000))).numbers
    variance = np.where(np.isnan(numbers), 0.0, numbers).var(axis=0)  # 0 is about the middle of a column
    names = [c.name for c in ready.described if c.used]
    if variance.max() <= DOMINANT * variance.sum():
        return []
    name = shown(names[int(variance.argmax())])
    return [
        (
            "one-column-decides",
            f"{name} has {100 * variance.max() / variance.sum():.0f} % of the variance "
            'and decides alone; scale="standard" gives all columns the same weight',
        )
    ]
