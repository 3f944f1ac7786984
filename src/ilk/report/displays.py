"""Charts for those who draw with matplotlib, in the manner of scikit-learn's displays (extra: `plot`).

Each display is made by `from_result(result, ax=None)`, draws on the axes it is given or on its own, and keeps
`ax_` and `figure_`. What is drawn comes from the summary; matplotlib is imported only when a chart is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ilk.errors import UsageError
from ilk.report.blocks.choice import lines_of

COLOURS = ("#164a9a", "#b93a06", "#0d8360", "#c06aa4", "#d08a00", "#2b9fe6")
N_COLOURS = 10  # of lines that matplotlib tells apart


def _axes(ax: Any) -> tuple[Any, Any]:
    if ax is not None:
        return ax, ax.figure
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise UsageError(
            "no-matplotlib", "charts need matplotlib", do="Install it: pip install 'ilk[plot]'"
        ) from None
    figure, ax = plt.subplots()
    return ax, figure


@dataclass
class _Display(ABC):
    """What the displays share: the summary they draw from, and where they drew."""

    summary: Mapping[str, Any]
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> Self:
        """Draw a result of `cluster`.

        Parameters
        ----------
        result : Result
            What to draw.
        ax : None or Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        Self
            The display, with `ax_` and `figure_`.
        """
        return cls(result.summary()).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the summary.

        Parameters
        ----------
        ax : None or Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        Self
            The display, with `ax_` and `figure_`.
        """
        self.ax_, self.figure_ = _axes(ax)
        self._draw(self.ax_)
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """The picture itself."""


@dataclass
class SelectionDisplay(_Display):
    """BIC by number of components, one line for each structure; the chosen one is ringed. Lower is better.

    Parameters
    ----------
    summary : mapping
        What `Result.summary` returns.

    Attributes
    ----------
    ax_ : Axes
        The axes that were drawn on.
    figure_ : Figure
        Their figure.

    See Also
    --------
    select : The same as a table.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> ilk.SelectionDisplay.from_result(result).ax_.get_ylabel()
    'BIC (lower is better)'
    """

    def _draw(self, ax: Any) -> None:
        chosen = self.summary["chosen"]
        own = chosen.get("structure") or chosen["method"]
        for number, (key, points) in enumerate(lines_of(self.summary["candidates"])):
            dash = "-" if number < N_COLOURS else "--"
            style: dict[str, Any] = (
                {"color": "black", "linewidth": 2.2, "zorder": 3}
                if key == own
                else {"linewidth": 0.9, "linestyle": dash}
            )
            ax.plot(*zip(*points, strict=True), marker=".", label=key, **style)
        if chosen.get("bic") is not None:
            ax.plot(
                chosen.get("components") or chosen["k"], chosen["bic"], "o", mfc="none", mec="black", ms=13
            )
        counted = "groups" if (chosen.get("components") or chosen["k"]) == chosen["k"] else "components"
        ax.set(xlabel=f"number of {counted}", ylabel="BIC (lower is better)")
        ax.legend(fontsize="small", ncols=2)


@dataclass
class SilhouetteDisplay(_Display):
    """A bar for each row looked at, by group, from long to short.

    Parameters
    ----------
    summary : mapping
        What `Result.summary` returns.

    Attributes
    ----------
    ax_ : Axes
        The axes that were drawn on.
    figure_ : Figure
        Their figure.

    See Also
    --------
    measures.silhouette : The values.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> ilk.SilhouetteDisplay.from_result(result).ax_.get_xlabel()
    'silhouette'
    """

    def _draw(self, ax: Any) -> None:
        found = self.summary["silhouettes"]
        if not found:
            raise UsageError(
                "one-group", "a single group has no silhouette", do="Draw a result of two or more groups"
            )
        start, middles = 0, []
        for number, entry in enumerate(found):
            at = np.arange(start, start + len(entry["values"]))
            ax.barh(at, entry["values"], height=1.0, color=COLOURS[number % len(COLOURS)])
            middles.append(start + len(at) / 2)
            start += len(at) + 5
        ax.set_yticks(middles, [entry["group"] for entry in found])
        ax.invert_yaxis()
        ax.axvline(0.0, color="grey", linewidth=0.8)
        ax.set(xlabel="silhouette", ylabel="group")


@dataclass
class ProfileDisplay(_Display):
    """How far each group lies from the whole table in the most relevant columns, in nats per row.

    Parameters
    ----------
    summary : mapping
        What `Result.summary` returns.
    columns : int, default=12
        Largest number of columns that are drawn.

    Attributes
    ----------
    ax_ : Axes
        The axes that were drawn on.
    figure_ : Figure
        Their figure.

    See Also
    --------
    Group : Holds the same as facts.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> [tick.get_text() for tick in ilk.ProfileDisplay.from_result(result).ax_.get_yticklabels()]
    ['size']
    """

    columns: int = 12

    def _draw(self, ax: Any) -> None:
        names = [entry["column"] for entry in self.summary["profile"][: self.columns]]
        nats = [
            [
                next(f["nats"] for f in group["facts"] if f["column"] == name)
                for group in self.summary["groups"]
            ]
            for name in names
        ]
        image = ax.imshow(nats, aspect="auto", cmap="Greys", vmin=0.0)
        ax.set_xticks(
            range(len(self.summary["groups"])), [group["letter"] for group in self.summary["groups"]]
        )
        ax.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names])
        ax.set(xlabel="group")
        ax.figure.colorbar(image, ax=ax, label="nats per row")


@dataclass
class UncertaintyDisplay(_Display):
    """The rows on the map; the lower the probability of its group, the larger its dot.

    Parameters
    ----------
    summary : mapping
        What `Result.summary` returns.

    Attributes
    ----------
    ax_ : Axes
        The axes that were drawn on.
    figure_ : Figure
        Their figure.

    See Also
    --------
    Model.assign : Gives the probability of each row.

    Examples
    --------
    >>> import ilk
    >>> sizes = [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]
    >>> result = ilk.cluster({"size": sizes, "depth": sizes[::-1]}, k=2, method="k-means")
    >>> ilk.UncertaintyDisplay.from_result(result).ax_.get_legend().get_title().get_text()
    'group'
    """

    def _draw(self, ax: Any) -> None:
        drawn = self.summary["map"]
        if not drawn or not drawn["points"]:
            raise UsageError(
                "no-map", "this result has no map", do="A map needs two columns, and rows that are shown"
            )
        x, y, group, size = (np.array(drawn["points"][key]) for key in ("x", "y", "group", "size"))
        for number, entry in enumerate(self.summary["groups"]):
            mine = group == number
            ax.scatter(x[mine], y[mine], s=np.array([9, 30, 80])[size[mine]], alpha=0.7, label=entry["letter"],
                       color=COLOURS[number % len(COLOURS)])  # fmt: skip
        first, second = (
            f"axis {i}: {100 * share:.0f} % of the variation" for i, share in enumerate(drawn["share"], 1)
        )
        ax.set(xlabel=first, ylabel=second, xticks=[], yticks=[])
        ax.legend(title="group")
