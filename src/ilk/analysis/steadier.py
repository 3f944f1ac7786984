"""One component for each group, where components that were merged make groups that do not hold.

The lowest BIC may have more components than there are groups. Where those that it leaves after merging are weak, or one
of the components may be of two groups, the best model with as many components as groups is looked at too, and taken
where its word is better and it explains nearly as much (decisions 34 and 36).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ilk.analysis.factor_view import CLAIMS, SeenTable
from ilk.errors import NoModelError
from ilk.selection.candidates import Search
from ilk.selection.kept_fits import best_of_each
from ilk.selection.resampling import STABLE_MIN
from ilk.selection.search import runner_up

MOST_LOST = 0.2  # of what the best model gains on a single component


def steadier(view: SeenTable, look: Callable[[int], SeenTable]) -> SeenTable:
    """The view of a table, or the one that `look` gives of so many components, where its groups hold better."""
    own, weak = view.grouping, view.word == "weak"
    if own.n_groups < 2 or own.pieces == own.n_groups or own.interrupted:
        return view
    if own.doubts.finer is not None:  # more groups may be there: fewer components do not answer that
        return view
    if not weak and (view.word != "fair" or own.doubts.between is None or own.dissolved is not None):
        return view
    try:
        other = look(own.n_groups)
    except NoModelError:
        return view
    except KeyboardInterrupt:
        return replace(view, grouping=replace(own, interrupted=True))
    if (
        other.grouping.n_groups != own.n_groups
        or not _near(other.search, view.search)
        or other.word not in CLAIMS
        or (not weak and min(other.grouping.stable or (0.0,)) < STABLE_MIN)
    ):
        return replace(view, grouping=replace(own, interrupted=other.grouping.interrupted))
    return replace(other, search=_with_both(other.search, view.search), notes=view.notes)


def _near(fewer: Search, best: Search) -> bool:
    """Whether fewer components keep most of what the best model gains on a single one, in BIC."""
    single = [c.bic for c in best.candidates if c.k == 1 and c.bic is not None]
    if not single or fewer.chosen.bic is None or best.chosen.bic is None:
        return False
    return fewer.chosen.bic - best.chosen.bic <= MOST_LOST * (min(single) - best.chosen.bic)


def _with_both(chosen: Search, others: Search) -> Search:
    """The chosen search with the candidates of both."""
    known = {(c.method, c.structure, c.k) for c in chosen.candidates}
    more = tuple(c for c in others.candidates if (c.method, c.structure, c.k) not in known)
    candidates = chosen.candidates + more
    return replace(
        chosen,
        candidates=candidates,
        runner_up=runner_up(candidates, chosen.winner),
        ended_by="weak merge",
        kept=best_of_each((chosen.kept, others.kept)),
    )
