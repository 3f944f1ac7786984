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
        "Gower's dissimilarity: numbers by their range, categories equal or not, ordinals by rank, "
        "missing values left out"
    )


_LASTING = "the number that persists over the widest range of heights of the tree"
_HEIGHTS = "share of the heights of the tree at which there are so many groups"
_INDEPENDENT = "numbers not rescaled, categories as they are"
_LEVELS = (
    "values as counts: of the category, of the nearest of five quantiles for a number, none where missing"
)
_LOWEST = "the number with the lowest BIC of multinomials over the categories"
PARADIGMS = {
    paradigm.name: paradigm
    for paradigm in (
        Paradigm(
            "dirichlet-process", "most", "anything", "the components that keep rows", mixed=_INDEPENDENT
        ),
        Paradigm("information-bottleneck", "fixed", "anything", _LOWEST, mixed=_LEVELS),
        Paradigm("deterministic-bottleneck", "fixed", "anything", _LOWEST, mixed=_LEVELS),
        Paradigm("mean-shift", "found", "numbers", "the modes of the density"),
        Paradigm("blurring-mean-shift", "found", "numbers", "the points to which rows converge"),
        Paradigm(
            "spectral",
            "fixed",
            "anything",
            "the number before the largest drop of the eigenvalues (eigengap)",
            any_shape=True,
            sign="ratio of successive eigenvalues (eigengap)",
        ),
        Paradigm(
            "typical-cuts",
            "fixed",
            "anything",
            "the number that persists over the widest range of temperatures",
            any_shape=True,
            sign="successive temperatures at which the typical cuts leave so many groups",
        ),
        Paradigm("affinity-propagation", "found", "anything", "the exemplars that rows agree on"),
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
