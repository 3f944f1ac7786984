"""One more view of a wide table: without the factors that run through most of its columns.

Where the table itself shows no groups, they are sought in what its dense factors leave. That view is the answer where
its groups are not weak and the model with factors and groups is the shorter description of the table: J of the rest,
and the nats of the factors, below J of the table. A table that shows groups is never looked at again, since groups that
differ in most columns make a dense axis, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ilk.analysis.prepare import Input, Seen
from ilk.assorted.dense_factors import DenseFactors, find_factors
from ilk.assorted.fit import SEARCH_ROWS
from ilk.assorted.problem import CELLS
from ilk.engines.derived import derive
from ilk.engines.memory import MemoryRows
from ilk.errors import Caution, NoModelError
from ilk.fitting.weights import row_weights
from ilk.report.figures import letter, plural
from ilk.selection.candidates import Search
from ilk.selection.grouping import Grouping
from ilk.selection.verdict import judge
from ilk.table.block import Block

CLAIMS, CLAIMS_NOTHING = ("solid", "fair"), ("weak", "no clear groups")


@dataclass(frozen=True, eq=False)
class SeenTable:
    """A table as a model sees it, what was found there, and the groups."""

    given: Input
    seen: Seen
    search: Search
    grouping: Grouping
    notes: tuple[Caution, ...] = ()

    @property
    def word(self) -> str:
        """The verdict."""
        letters = [letter(number) for number in range(len(self.grouping.size))]
        return judge(self.search, self.grouping, letters, ()).word

    @property
    def bic(self) -> float:
        """Twice J of the model chosen."""
        assert self.search.chosen.bic is not None
        return self.search.chosen.bic


def clearer(view: SeenTable, look: Callable[[Input], SeenTable]) -> SeenTable:
    """The view of a table, or the one without its dense factors where only that shows groups; `look` gives the view of
    other rows in the same columns."""
    try:
        factors = _worth_a_look(view)
        if factors is None:
            return view
        other = look(replace(view.given, rows=derive(view.given.rows, factors)))
    except NoModelError:  # of the rest; the table has one
        return view
    except KeyboardInterrupt:
        return replace(view, grouping=replace(view.grouping, interrupted=True))
    treat = other.seen.treat
    assert treat is not None
    assert view.seen.treat is not None
    other = replace(other, search=_with_factors(other.search, factors, view.given))
    same_columns = treat.plan.names == view.seen.treat.plan.names  # else a density would meet a probability
    if other.word not in CLAIMS or not same_columns or other.bic >= view.bic:
        return replace(view, grouping=replace(view.grouping, interrupted=other.grouping.interrupted))
    seen = replace(other.seen, treat=replace(treat, factors=factors))
    return replace(other, given=view.given, seen=seen, notes=(_told(factors),))


def _worth_a_look(view: SeenTable) -> DenseFactors | None:
    """The dense factors of a table in which the cells of the assorted model have shown no groups."""
    rows, treat = view.given.rows, view.seen.treat
    if (
        treat is None
        or treat.numbers != CELLS
        or view.grouping.interrupted
        or view.word not in CLAIMS_NOTHING
    ):
        return None
    if not isinstance(rows, MemoryRows) or rows.n_rows > SEARCH_ROWS:
        return None
    return find_factors(_whole(view.given), treat.plan)


def _whole(given: Input) -> Block:
    return given.rows.take(np.arange(given.rows.n_rows))


def _with_factors(search: Search, factors: DenseFactors, given: Input) -> Search:
    """The candidates as models of the table: with what the factors cost and their free loadings."""
    nats, free = factors.cost(_whole(given)), factors.free_parameters
    cost = nats + free * math.log(max(row_weights(given.rows).total, 1.0)) / 2

    def more(value: float | None, times: float) -> float | None:
        return None if value is None else value + times

    candidates = tuple(
        replace(
            one,
            bic=more(one.bic, 2 * cost),
            icl=more(one.icl, 2 * cost),
            cost=more(one.cost, cost),
            loglik=more(one.loglik, -nats),
            parameters=None if one.parameters is None else one.parameters + free,
        )
        for one in search.candidates
    )
    return replace(search, candidates=candidates)


def _told(factors: DenseFactors) -> Caution:
    number = plural(factors.n_factors, "factor")
    runs, were = ("runs", "was") if factors.n_factors == 1 else ("run", "were")
    return Caution(
        "factors-set-aside",
        f"{number} that {runs} through {len(factors.source)} columns {were} taken out of them first: "
        "the groups are those of what is left, and new rows are placed in the same way",
    )
