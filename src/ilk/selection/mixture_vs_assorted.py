"""Mixtures against the assorted model on a table of numbers: the lower BIC wins.

Both likelihoods are densities in the user's units, so that BIC compares; that of the assorted model is twice J without
its priors, which pays for switches and scales too. It stays out where it made categories of numbers: a probability is
no density.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ilk.assorted.fit import glimpse
from ilk.assorted.transform import TransformPlan
from ilk.engines.base import Rows
from ilk.fitting.deadline import Deadline
from ilk.fitting.interrupt import exposed
from ilk.fitting.loop import COMPONENT_VANISHED
from ilk.selection.assorted import ASSORTED, AssortedSearch, search_assorted
from ilk.selection.candidates import Candidate, Search
from ilk.selection.kept_fits import best_of_each
from ilk.selection.progress import Progress
from ilk.selection.search import runner_up
from ilk.selection.search_rows import SEARCH_ROWS
from ilk.table.schema import Schema

OTHER_SCALE, FAR_OFF, CANCELLED = "not_comparable", "unpromising", "cancelled"
NEAR = 0.1  # of what the best mixture gains on one cluster: how near a first look must come for a search


def mostly_repeated(plan: TransformPlan, rows: Rows) -> bool:
    """Whether most columns repeat a value, such as the 0 of amounts that are seldom there. A normal has no density for
    it: mixtures are singular or split the table into ever narrower components, and their BIC is no match for a
    probability. The assorted model takes such values as categories."""
    return 2 * sum(bool(category.of) for category in plan.categories) > rows.n_columns


def search_rival(
    found: Search,
    rows: Rows,
    schema: Schema,
    ks: Sequence[int],
    seed: int,
    *,
    plan: TransformPlan,
    most: int | None = None,
    deadline: Deadline | None = None,
    callback: Callable[[Progress], None] | None = None,
) -> AssortedSearch | str:
    """The assorted model on the table of a search of mixtures, or a word on why it takes no part."""
    deadline = deadline or Deadline.none()
    if found.interrupted or deadline.over:
        return CANCELLED if found.interrupted else "did_not_start"
    try:
        with exposed():
            if plan.categories or plan.set_aside:
                return OTHER_SCALE
            if not _promises(found, rows, plan):
                return FAR_OFF
            grown = search_assorted(
                rows,
                schema,
                ks,
                seed,
                plan=plan,
                search_rows=SEARCH_ROWS,
                criterion="plain",
                most=most,
                deadline=deadline,
                callback=callback,
            )
    except KeyboardInterrupt:  # the mixtures are there
        return CANCELLED
    return COMPONENT_VANISHED if len(grown.search.fit.size) < min(ks) else grown


def better(found: Search, rival: AssortedSearch | str) -> tuple[Search, AssortedSearch | None]:
    """The search with both in its table, and the assorted model if it won."""
    if isinstance(rival, str):
        return _without(found, rival), None
    both = contest(found, rival.search)
    return both, rival if both.fit is rival.search.fit else None


def _promises(found: Search, rows: Rows, plan: TransformPlan) -> bool:
    """Whether the assorted model comes near the best mixture from that one's partition, or with a single cluster."""
    assert found.few is not None
    few = found.few.reencoded(rows.encoding)
    block = found.few.take(np.arange(found.few.n_rows))
    label = found.recipe.family.assign(found.fit.params, block)[0]
    share = float(block.weights.sum()) / plan.total_weight
    single, near = (2 * cost for cost in glimpse(few, plan.weighing(share), label, len(found.fit.size)))
    best = found.chosen.bic or 0.0
    return min(single, near - NEAR * max(single - best, 0.0)) < best


def _without(found: Search, status: str) -> Search:
    """The search alone, with a word on why the assorted model took no part."""
    alone = Candidate(ASSORTED, None, found.chosen.k, status)
    interrupted = found.interrupted or status == CANCELLED
    return replace(found, candidates=(*found.candidates, alone), interrupted=interrupted)


def contest(one: Search, other: Search) -> Search:
    """The search whose chosen model has the lower BIC (the first among equals), with the candidates of both."""
    bics = [(search.chosen.bic_all_rows, search.chosen.bic or 0.0) for search in (one, other)]
    on_all = all(value is not None for value, _ in bics)
    first = one.chosen.last_bic <= other.chosen.last_bic if on_all else bics[0][1] <= bics[1][1]
    won, shift = (one, 0) if first else (other, len(one.candidates))
    candidates, winner = one.candidates + other.candidates, won.winner + shift
    return replace(
        won,
        candidates=candidates,
        winner=winner,
        runner_up=runner_up(candidates, winner),
        interrupted=one.interrupted or other.interrupted,
        kept=best_of_each((one.kept, other.kept)),
    )
