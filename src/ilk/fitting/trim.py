"""Trimming: the cost above which rows are left out, found exactly in a few passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.families.base import Family, Trim
from ilk.table.block import Array, Block
from ilk.table.quantiles import QuantileSearch


@dataclass(frozen=True)
class _TrimState:
    families: Sequence[Family[Any]]
    params: Sequence[Any]
    searches: Sequence[QuantileSearch]


def find_cuts(rows: Rows, families: Sequence[Family[Any]], params: Sequence[Any], keep: float) -> list[Trim]:
    """Per start, the cut that keeps exactly the share `keep` of the weight: the cheapest rows."""
    searches = [QuantileSearch.begin(keep, (1,))] * len(params)
    while not searches[0].done:
        counts = rows.reduce(_visit, _TrimState(families, params, searches))
        searches = [search.narrow(count) for search, count in zip(searches, counts, strict=True)]
    return [Trim(float(search.value[0]), float(search.share_at[0])) for search in searches]


def _visit(state: _TrimState, block: Block) -> Array:
    weight = block.weights
    everyone = np.zeros(block.n_rows, dtype=np.intp)
    counts = []
    for family, params, search in zip(state.families, state.params, state.searches, strict=True):
        counts.append(search.count(family.assign(params, block)[1], everyone, weight))
    return np.stack(counts)
