"""The methods: one record each, in which stands all that the rest of the house knows of one.

A method is a recipe of the loop (a family, its starts), one of the two searches of mixtures, or a function beside the
loop that parts the rows. Adding one takes its record here, and the file with its family or function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Literal

from ilk.families.centroid import Means, Medians
from ilk.fitting.restarts import Recipe

AUTO, GAUSSIAN, GIVEN = "auto", "gaussian", "given labels"
K_MEANS = Recipe("k-means", Means())
K_MEDIANS = Recipe("k-medians", Medians())
TRIMMED_K_MEANS = Recipe("trimmed-k-means", Means(), trim=0.05)

_GOWER = (
    "Gower's dissimilarity: numbers by their range, categories equal or not, ordinals by rank, "
    "missing values left out"
)


@dataclass(frozen=True, kw_only=True)
class Method:
    """What a method is, how it is searched, and what is said of it.

    `search` says how: "recipe" runs `recipe` for every K, "mixtures" tries covariance structures, "growth" splits and
    merges the components of the assorted model, "parts" asks the function `parts` ("module:name", imported when it is
    called, after the arguments `given`): of the rows, of K or None, of the most groups where K is None, and of a seed;
    "none" has its groups from elsewhere.

    `takes` is "numbers", "anything" where `mixed` says what is made of categories and blanks, or "types" where every
    column counts as what it is; `binary` says that a method of numbers takes two levels as 0 and 1. `k` is "fixed"
    where K is asked for, or chosen by a sign of the method's own; "found" where it comes out and cannot be asked for;
    "most" where it comes out, up to the largest asked for. `sign` is what is measured of every K where the largest
    figure chooses. `any_shape` says that groups may wind around each other, so that no straight cut need part them.

    `when` is its line in `ilk choose`, where it has one; `paper` what the report says of it for a paper; `tried` what
    the terminal does.
    """

    name: str
    search: Literal["recipe", "mixtures", "growth", "parts", "none"]
    takes: Literal["numbers", "anything", "types"]
    recipe: Recipe | None = None
    parts: str = ""
    given: tuple[Any, ...] = ()
    k: Literal["fixed", "found", "most"] = "fixed"
    soft: bool = False
    of_pairs: bool = False
    any_shape: bool = False
    binary: bool = True
    how_k: str = ""
    sign: str | None = None
    mixed: str = _GOWER
    when: str = ""
    paper: str = ""
    tried: str = ""

    @property
    def data(self) -> Literal["vectors", "similarities"]:
        return "similarities" if self.of_pairs else "vectors"

    @property
    def measures_distances(self) -> bool:
        """Whether rows are compared by distances over the columns, of which each may count more or less."""
        return self.recipe is not None or (self.search == "parts" and self.mixed == _GOWER)

    @property
    def part(self) -> Callable[..., Any]:
        """The function that parts rows."""
        module, _, name = self.parts.partition(":")
        return partial(getattr(import_module(module), name), *self.given)


METHODS: dict[str, Method] = {}


def register(*methods: Method) -> None:
    """Make methods known by their names."""
    for method in methods:
        METHODS[method.name] = method


def names() -> tuple[str, ...]:
    """What `method` may be."""
    return (AUTO, *(name for name, method in METHODS.items() if method.search != "none"))


def by_search(*searches: str) -> dict[str, Method]:
    """The methods that are searched in one of these ways."""
    return {name: method for name, method in METHODS.items() if method.search in searches}


def parted(name: str) -> Method | None:
    """The method of that name if it parts rows beside the loop, or has them parted already, else None."""
    method = METHODS.get(name)
    return method if method is not None and method.search in ("parts", "none") else None


register(
    Method(
        name=GAUSSIAN,
        search="mixtures",
        takes="numbers",
        binary=False,
        soft=True,
        when="elongated groups of numbers, of any size",
        paper="Rows were grouped by a finite mixture of Gaussian components fitted by EM; "
        "covariance structures follow Celeux and Govaert (1995).",
        tried="Gaussian mixtures with {structures}",
    ),
    Method(
        name="assorted",
        search="growth",
        takes="types",
        soft=True,
        when="numbers, categories, missing values; selects columns",
        paper="Rows were grouped by the assorted model: a mixed-type mixture with feature selection per group, in "
        "which a group has a distribution of its own only in the columns that distinguish it.",
        tried="assorted (a mixed-type mixture)",
    ),
    Method(
        name="k-means",
        search="recipe",
        takes="numbers",
        recipe=K_MEANS,
        when="round groups of one size; very many rows",
        paper="Rows were grouped by K-means, the sum of squared distances to the nearest centre.",
    ),
    Method(
        name="k-medians",
        search="recipe",
        takes="numbers",
        recipe=K_MEDIANS,
        when="the same, with outliers in single values",
        paper="Rows were grouped by K-medians, the sum of absolute distances to the nearest centre.",
    ),
    Method(
        name="trimmed-k-means",
        search="recipe",
        takes="numbers",
        recipe=TRIMMED_K_MEANS,
        when="the same, with a share of outlying rows",
        paper="Rows were grouped by trimmed K-means, which leaves the furthest rows out of the centres.",
    ),
    Method(
        name="dirichlet-process",
        search="parts",
        takes="anything",
        parts="ilk.selection.paradigms:dirichlet_parts",
        k="most",
        soft=True,
        how_k="the components that keep rows",
        mixed="numbers not rescaled, categories as they are",
        when="columns of any type",
    ),
)

_LEVELS = (
    "values as counts: of the category, of the nearest of five quantiles for a number, none where missing"
)
register(
    *(
        Method(
            name=f"{kind}-bottleneck",
            search="parts",
            takes="anything",
            parts="ilk.selection.paradigms:bottleneck_parts",
            given=(kind == "deterministic",),
            soft=kind == "information",
            how_k="the number with the lowest BIC of multinomials over the categories",
            mixed=_LEVELS,
            when=when,
        )
        for kind, when in (
            ("information", "counts; rows with similar profiles"),
            ("deterministic", "the same, every row in one group"),
        )
    ),
    Method(
        name="mean-shift",
        search="parts",
        takes="numbers",
        parts="ilk.selection.paradigms:mean_shift_parts",
        k="found",
        how_k="the modes of the density",
        when="modes of the density; few columns",
    ),
    Method(
        name="blurring-mean-shift",
        search="parts",
        takes="numbers",
        parts="ilk.selection.paradigms:blurring_parts",
        k="found",
        how_k="the points to which rows converge",
        when="the same in few passes",
    ),
    Method(
        name="spectral",
        search="parts",
        takes="anything",
        parts="ilk.selection.paradigms:spectral_parts",
        of_pairs=True,
        any_shape=True,
        how_k="the number before the largest drop of the eigenvalues (eigengap)",
        sign="ratio of successive eigenvalues (eigengap)",
        when="groups of any shape, of similar density",
    ),
    Method(
        name="typical-cuts",
        search="parts",
        takes="anything",
        parts="ilk.selection.paradigms:typical_parts",
        of_pairs=True,
        any_shape=True,
        how_k="the number that persists over the widest range of temperatures",
        sign="successive temperatures at which the typical cuts leave so many groups",
        when="groups of any shape, of different density",
    ),
    Method(
        name="hdbscan",
        search="parts",
        takes="anything",
        parts="ilk.selection.paradigms:hdbscan_parts",
        k="found",
        of_pairs=True,
        any_shape=True,
        how_k="the denser parts that last longest as the density rises",
        when="groups of any shape and density; rows between them in none",
        paper="Rows were grouped by HDBSCAN (Campello, Moulavi and Sander 2013); rows in sparse places have no group.",
    ),
    Method(
        name="affinity-propagation",
        search="parts",
        takes="anything",
        parts="ilk.selection.paradigms:affinity_parts",
        k="found",
        of_pairs=True,
        how_k="the exemplars that rows agree on",
        when="a typical row for each of many small groups",
    ),
)

_LINKED = {
    "single": "any shape with clear gaps between; finds outliers",
    "average": "a tree of compact groups; also complete-, ...",
}
register(
    *(
        Method(
            name=f"{linkage}-linkage",
            search="parts",
            takes="numbers" if linkage in ("ward", "centroid", "median") else "anything",
            parts="ilk.selection.paradigms:linkage_parts",
            given=(linkage,),
            of_pairs=True,
            any_shape=linkage == "single",
            how_k="the number that persists over the widest range of heights of the tree",
            sign="share of the heights of the tree at which there are so many groups",
            when=_LINKED.get(linkage, ""),
        )
        for linkage in ("single", "complete", "average", "weighted", "ward", "centroid", "median")
    )
)

register(
    Method(
        name=GIVEN,
        search="none",
        takes="anything",
        how_k="that of the labels",
        paper="The groups were given.",
    )
)
