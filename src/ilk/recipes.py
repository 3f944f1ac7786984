"""The catalogue: every method as family + rule + start, and the paradigms beside the loop with what they ask of K."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ilk.families.centroid import Means, Medians
from ilk.fitting.restarts import Recipe

K_MEANS = Recipe("k-means", Means())
K_MEDIANS = Recipe("k-medians", Medians())
TRIMMED_K_MEANS = Recipe("trimmed-k-means", Means(), trim=0.05)

CATALOGUE = {recipe.name: recipe for recipe in (K_MEANS, K_MEDIANS, TRIMMED_K_MEANS)}


@dataclass(frozen=True)
class Paradigm:
    """A method that is not the loop; `selection/paradigms.py` has how it parts rows.

    `k` is "fixed" where K is asked for, or chosen by a sign of the method's own; "found" where it comes out and cannot
    be asked for; "most" where it comes out, up to the largest asked for. `sign` is what is measured of every K where
    the largest figure chooses. `any_shape` says that groups may wind around each other, so that no straight cut need
    part them. `mixed` says what is made of tables with categories or blanks.
    """

    name: str
    k: Literal["fixed", "found", "most"]
    takes: Literal["numbers", "anything"]
    how_k: str
    any_shape: bool = False
    sign: str | None = None
    mixed: str = (
        "Gower's dissimilarity: numbers by their range, levels equal or not, grades by rank, blanks left out"
    )


_LASTING = "the number that lasts over the widest range of heights"
_HEIGHTS = "share of the heights of the tree at which the rows are in so many groups"
_INDEPENDENT = "numbers as they are, categories by their levels"
_LEVELS = (
    "cells as counts: a category of its level, a number of the nearest of five quantiles, blanks of none"
)
_LOWEST = "the number of the lowest BIC, of multinomials over the levels"
PARADIGMS = {
    paradigm.name: paradigm
    for paradigm in (
        Paradigm(
            "dirichlet-process", "most", "anything", "the components that keep rows", mixed=_INDEPENDENT
        ),
        Paradigm("information-bottleneck", "fixed", "anything", _LOWEST, mixed=_LEVELS),
        Paradigm("deterministic-bottleneck", "fixed", "anything", _LOWEST, mixed=_LEVELS),
        Paradigm("mean-shift", "found", "numbers", "the modes of the density"),
        Paradigm("blurring-mean-shift", "found", "numbers", "the points in which rows meet"),
        Paradigm(
            "spectral",
            "fixed",
            "anything",
            "the number before the leap of the eigenvalues",
            any_shape=True,
            sign="how many times the next eigenvalue is as large",
        ),
        Paradigm(
            "typical-cuts",
            "fixed",
            "anything",
            "the number that lasts longest as it grows hotter",
            any_shape=True,
            sign="temperatures in a row at which the typical cuts leave so many groups",
        ),
        Paradigm("affinity-propagation", "found", "anything", "the rows that come to stand for others"),
        Paradigm("single-linkage", "fixed", "anything", _LASTING, any_shape=True, sign=_HEIGHTS),
        *(
            Paradigm(f"{linkage}-linkage", "fixed", "anything", _LASTING, sign=_HEIGHTS)
            for linkage in ("complete", "average", "weighted")
        ),
        *(
            Paradigm(f"{linkage}-linkage", "fixed", "numbers", _LASTING, sign=_HEIGHTS)
            for linkage in ("ward", "centroid", "median")
        ),
    )
}
