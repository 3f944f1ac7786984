"""How sharp the borders are, for drawing: silhouettes by group, and how much groups overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ilk.measures.silhouettes import silhouette
from ilk.report.bins import each_column
from ilk.report.evidence import Evidence
from ilk.report.facts import Array
from ilk.report.groups import Group
from ilk.report.plane import Design

MOST_BARS = 400  # silhouettes drawn in all; more are told by as many quantiles
LEAST_BARS = 4  # of a group
SILHOUETTE_ROWS = 2_000  # measured where the fit has none


def measured(evidence: Evidence, made: Design) -> tuple[Array, Array] | None:
    """Silhouettes of a part of the sample by plain distance in the standardised columns; None for one group."""
    sample = evidence.sample
    step = max(1, -(-len(sample.place) // SILHOUETTE_ROWS))
    label = sample.label[::step]
    if len(np.unique(label)) < 2 or not made.values.shape[1]:
        return None
    value = silhouette(np.ascontiguousarray(made.values[::step]), label, weight=sample.heft[::step])
    return sample.place[::step], value


def silhouettes(evidence: Evidence, groups: Sequence[Group]) -> list[dict[str, Any]] | None:
    """Per group the silhouettes from high to low, thinned to quantiles, and how many are below zero."""
    if evidence.silhouette is None:
        return None
    looked, value = evidence.silhouette
    label, total = evidence.labels[looked], max(1, len(looked))
    made = []
    for g, group in enumerate(groups):
        mine = np.sort(value[label == g])[::-1]
        bars = min(len(mine), max(LEAST_BARS, round(MOST_BARS * len(mine) / total)))
        at = np.round((np.arange(bars) + 0.5) * len(mine) / max(bars, 1) - 0.5).astype(int)
        made.append(
            {
                "group": group.letter,
                "mean": float(mine.mean()) if group.silhouette is None and len(mine) else group.silhouette,
                "rows": len(mine),
                "negative": int((mine < 0).sum()),
                "values": [round(float(v), 4) for v in mine[at]],
            }
        )
    return made


def overlap(evidence: Evidence) -> list[list[float]] | None:
    """Mean probability of each group (column) over the rows given to a group (line)."""
    shares = evidence.probabilities
    if shares is None or evidence.k < 2:
        return None

    def line(g: int) -> list[float]:
        mine = evidence.labels == g
        heft = evidence.heft[mine]
        mean = heft @ shares[mine] / heft.sum() if heft.sum() > 0 else np.full(evidence.k, np.nan)
        return [float(v) for v in mean]

    return each_column(line, range(evidence.k), evidence.n_rows, evidence.threads)
