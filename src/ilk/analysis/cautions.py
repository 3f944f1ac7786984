"""What a user should know of how a run went, each with a stable code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ilk import kernels
from ilk.analysis.findings import Findings
from ilk.analysis.shown import Shown
from ilk.errors import Caution, Option
from ilk.errors import shown as shown_text
from ilk.fitting.fit import label_counts
from ilk.fitting.loop import FEWER_DISTINCT_ROWS, INTERRUPTED, PASS_LIMIT, TIME_LIMIT
from ilk.selection.candidates import Search

SHARP = 0.50  # silhouette; Kaufman and Rousseeuw 1990: from 0.51 a reasonable structure
STOPPED = Caution("interrupted", "the run was interrupted; this is the best found so far")
LONGER = 4  # times the budget, where it was too short
DOMINANT = 0.9  # share of the variance from which one unscaled column decides alone


def cautions(findings: Findings, shown: Shown) -> list[Caution]:
    """What a user should know of how it went."""
    return [
        *_end_of_run(findings),
        *_fewer_groups(findings),
        *_choice_of_k(findings.search),
        *_samples(findings, shown),
        *([Caution("numpy-kernels", kernels.LACKING)] if kernels.LACKING else []),
        *_dominated(findings, shown),
    ]


def _end_of_run(findings: Findings) -> list[Caution]:
    """That it ended before its time."""
    fit = findings.search.fit
    if findings.grouping.interrupted or fit.reason == INTERRUPTED:
        return [STOPPED]
    cut = _cut_by_time(findings)
    if cut:
        return [cut]
    if fit.reason == PASS_LIMIT:
        return [Caution("not-converged", f"the fit did not converge within {fit.n_passes} passes")]
    return []


def _cut_by_time(findings: Findings) -> Caution | None:
    """What there was no time for, with a longer one."""
    search, grouping, budget = findings.search, findings.grouping, findings.job.budget
    untried = sorted({c.k for c in search.candidates if c.status == "did_not_start"} - {search.chosen.k})
    cut = []
    if search.ended_by == "time" or search.fit.reason == TIME_LIMIT or untried:
        before = f" before K={_spanned(untried)}" if untried else ""
        cut.append(f"the search was stopped at K={search.chosen.k}{before}")
    if grouping.stable is None and grouping.n_groups > 1:
        cut.append("stability was not tested")
    if not cut or budget is None:
        return None
    longer = float(f"{LONGER * budget:.2g}")
    more = Option("budget", int(longer) if longer.is_integer() else longer)
    text = f"the time limit was reached: {' and '.join(cut)}; for more time: {more}"
    return Caution("time-limit", text, [more])


def _spanned(ks: Sequence[int]) -> str:
    """A few numbers, or the first and the last.

    >>> _spanned([3, 4]), _spanned([3, 4, 5, 6])
    ('3, 4', '3 to 6')
    """
    return ", ".join(map(str, ks)) if len(ks) < 4 else f"{ks[0]} to {ks[-1]}"


def _fewer_groups(findings: Findings) -> list[Caution]:
    """That groups are missing, or hold no more than a value."""
    fit, chosen, asked = findings.search.fit, findings.search.chosen, findings.job.asked
    made: list[Caution] = []
    if fit.status == FEWER_DISTINCT_ROWS or chosen.status == FEWER_DISTINCT_ROWS:
        text = f"{chosen.k} groups were asked for, but the table has only {len(fit.size)} distinct rows"
        made.append(Caution("fewer-distinct-rows", text))
    elif chosen.status in ("ok_exact", "singular"):
        text = "every row equals the centre of its group: there are as many groups as distinct rows"
        made.append(Caution("exact-fit", text))
    elif asked is not None and len(fit.size) < asked:
        text = f"{asked} groups were asked for and {len(fit.size)} found; the others were empty"
        made.append(Caution("fewer-groups", text))
    lone = [g for g, n in enumerate(label_counts(fit.labels, len(fit.size))) if n == 1]
    if lone and len(fit.size) > 1:
        text = "a group holds" if len(lone) == 1 else f"{len(lone)} groups hold"
        told = f"{text} only one row, which is also its centre in the model"
        made.append(Caution("single-row-group", told))
    return made


def _choice_of_k(search: Search) -> list[Caution]:
    """That another K may be better."""
    made: list[Caution] = []
    if search.ended_by == "limit":
        limit = search.chosen.k
        more = Option("k", range(1, 2 * limit + 1))
        text = f"the search stopped at K={limit}, the largest K that was allowed; more groups may fit better: {more}"
        made.append(Caution("k-at-limit", text, [more]))
    if search.ended_by == "no dips":
        limit = search.chosen.k
        more = Option("k", range(1, 2 * limit + 1))
        text = (
            f"the search stopped at K={limit}, which have no density dips between them; to cut finer: {more}"
        )
        made.append(Caution("k-stopped", text, [more]))
    sharpest = max(search.candidates, key=lambda c: c.silhouette or 0.0)
    if len(search.fit.size) == 1 and (sharpest.silhouette or 0.0) >= SHARP:
        text = (
            f"BIC prefers one group, but {sharpest.k} groups have a silhouette of {sharpest.silhouette:.2f}"
        )
        instead = Option("k", sharpest.k)
        made.append(Caution("silhouette-disagrees", f"{text}; try {instead}", [instead]))
    return made


def _samples(findings: Findings, shown: Shown) -> list[Caution]:
    """That not all rows had a say."""
    made: list[Caution] = []
    n_rows, n_searched, n_shown = (
        findings.seen.rows.n_rows,
        findings.search.n_rows_searched,
        len(shown.numbers),
    )
    if n_searched < n_rows:
        text = f"K was chosen on a sample of {n_searched} rows; the fit is on all rows"
        made.append(Caution("sampled-search", text))
    if shown.sample and n_shown < n_rows:
        text = f"groups are described on a sample of {n_shown} rows; labels and sizes are of all rows"
        made.append(Caution("described-on-sample", text))
    return made


def _dominated(findings: Findings, shown: Shown) -> list[Caution]:
    """That one column decides alone."""
    rows = findings.seen.rows
    if findings.job.scale is not None or rows.n_columns < 2:
        return []
    numbers = rows.take(np.arange(min(rows.n_rows, 10_000))).numbers
    variance = np.where(np.isnan(numbers), 0.0, numbers).var(axis=0)  # 0 is about the middle of a column
    names = [c.name for c in shown.columns if c.used]
    if variance.max() <= DOMINANT * variance.sum():
        return []
    name = shown_text(names[int(variance.argmax())])
    instead = Option("scale", "standard")
    text = (
        f"{name} has {100 * variance.max() / variance.sum():.0f} % of the variance "
        f"and decides alone; {instead} gives all columns the same weight"
    )
    return [Caution("one-column-decides", text, [instead])]
