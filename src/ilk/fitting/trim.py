"""Trimming: the cost above which rows are left out, found exactly in a few passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.families.base import Cut, Family
from ilk.table.block import Array, Block
from ilk.table.quantiles import Search


@dataclass(frozen=True)
class _State:
    families: Sequence[Family[Any]]
    params: Sequence[Any]
    searches: Sequence[Search]


def find_cuts(rows: Rows, families: Sequence[Family[Any]], params: Sequence[Any], keep: float) -> list[Cut]:
    """Per start, the cut that keeps exactly the share `keep` of the weight: the cheapest rows."""
    searches = [Search.begin(keep, (1,))] * len(params)
    while not searches[0].done:
        counts = rows.reduce(_visit, _State(families, params, searches))
        searches = [search.narrow(count) for search, count in zip(searches, counts, strict=True)]
    return [Cut(float(search.value[0]), float(search.share_at[0])) for search in searches]


def _visit(state: _State, block: Block) -> Array:
    weight = block.weights
    everyone = np.zeros(block.n_rows, dtype=np.intp)
    counts = []
    for family, params, search in zip(state.families, state.params, state.searches, strict=True):
        counts.append(search.count(family.assign(params, block)[1], everyone, weight))
    return np.stack(counts)
