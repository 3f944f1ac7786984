"""What each group of an assorted table is like, in the user's units: one trait per group and column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.assorted.fit import AssortedFit
from ilk.assorted.scales import Number
from ilk.assorted.transform import Category
from ilk.table.block import Array, Encoding

DEVIATIONS = np.array([-1.0, 0.0, 1.0])  # the middle two thirds of a Normal
LEVELS_TOLD = 3


@dataclass(frozen=True, kw_only=True)
class Trait:
    """One column of one cluster of an `AssortedMixture`, compared with the background.

    A number is told by its quantiles at 16, 50 and 84 %, a category by the shares of its levels.

    Attributes
    ----------
    group : int
        Number of the cluster.
    column : str
        Name of the column.
    chosen : bool
        Whether the cluster has its own distribution there.
    relevance : float
        What the column tells of the cluster, in nats per row.
    own : dict
        Distribution of the cluster.
    background : dict
        Distribution of the clusters that did not choose the column.
    text : str
        Both in words.

    See Also
    --------
    AssortedMixture.traits : Makes them.

    Examples
    --------
    >>> import numpy as np, ilk
    >>> X = np.random.default_rng(0).normal(size=(80, 1)) + 9.0 * (np.arange(80) < 40)[:, None]
    >>> [trait.column for trait in ilk.AssortedMixture(2, random_state=0).fit(X).traits()]
    ['x0', 'x0']
    """

    group: int
    column: str
    chosen: bool
    relevance: float
    own: dict[str, float]
    background: dict[str, float]

    @property
    def text(self) -> str:
        """Both distributions in words."""
        return f"{in_words(self.own)} (else {in_words(self.background)})"


def traits(found: AssortedFit, encoding: Encoding) -> list[Trait]:
    """All traits, group by group, the most telling first; `encoding` is that of the table."""
    told = _distributions(found, encoding)
    background = found.scene.cells.background(found.clusters)
    every = []
    for group in range(len(found.params)):
        for d in np.argsort(-found.relevance[group], kind="stable"):
            every.append(
                Trait(
                    group=group,
                    column=found.scene.plan.names[d],
                    chosen=bool(found.chosen[group, d]),
                    relevance=float(found.relevance[group, d]),
                    own=told[group][d],
                    background=told[int(background[d])][d],
                )
            )
    return every


def in_words(distribution: dict[str, float]) -> str:
    """A distribution in a few words: its range, or its commonest levels."""
    if "median" in distribution:
        low, middle, high = (f"{value:.4g}" for value in distribution.values())
        return f"about {middle}, mostly {low} to {high}"
    best = sorted(distribution.items(), key=lambda item: -item[1])[:LEVELS_TOLD]
    return ", ".join(f"{name} {share:.0%}" for name, share in best if share >= 0.005)


def _distributions(found: AssortedFit, encoding: Encoding) -> list[list[dict[str, float]]]:
    plan, params = found.scene.plan, found.clusters
    every = []
    for group in range(len(params)):
        told = []
        for d, number in enumerate(plan.numbers):
            spread = np.sqrt(params.variance[group, d])
            z = params.mean[group, d] + DEVIATIONS * spread
            told.append(_quantiles(number, found.scene.scales[d], z, encoding))
        for c, category in enumerate(plan.categories):
            begin, end = plan.level_start[c : c + 2]
            told.append(_shares(category, np.exp(params.log_level[group, begin:end])))
        every.append(told)
    return every


def _quantiles(number: Number, scale: int, z: Array, encoding: Encoding) -> dict[str, float]:
    one = encoding.columns(np.array([number.source]))
    low, middle, high = one.undo(number.encoded(z, scale)[:, None])[:, 0].tolist()
    return {"low": low, "median": middle, "high": high}


def _shares(category: Category, share: Array) -> dict[str, float]:
    return dict(zip(category.names, share.tolist(), strict=True))
