"""Charts of rows: the map, the uncertain rows on it, and pairs of columns that show groups together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.errors import UsageError
from ilk.report.displays.base import GREY, Display, colour, group_legend, marker, named, plain
from ilk.report.figures import plural
from ilk.report.pairs import STEPS

AREAS = (18, 44, 95)  # of marks: certain, less so, least


class _OnMap(Display):
    """What is drawn on the map."""

    def _lacking(self) -> UsageError | None:
        drawn = self.summary["map"]
        if not drawn or not drawn["points"]:
            return UsageError(
                "no-map", "this result has no map", do="A map needs two columns, and rows that are shown"
            )
        return None

    def _size(self) -> tuple[float, float]:
        return (9.6 if len(self.groups) > 1 else 6.4), max(4.8, 0.9 + 0.19 * len(self.groups))

    def _points(self) -> tuple[Any, ...]:
        return tuple(np.array(self.summary["map"]["points"][key]) for key in ("x", "y", "group", "size"))

    def _name_axes(self, ax: Any) -> None:
        shares = self.summary["map"]["share"]
        first, second = (f"axis {i}: {100 * s:.0f} % of the variation" for i, s in enumerate(shares, 1))
        ax.set(xlabel=first, ylabel=second, xticks=[], yticks=[])
        ax.set_aspect("equal", adjustable="datalim")


@dataclass(repr=False)
class MapDisplay(_OnMap):
    """The rows on two axes, in colour and mark of their group, with an ellipse and the letter of each group.

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
    UncertaintyDisplay : The rows that could belong elsewhere.

    Examples
    --------
    >>> import ilk
    >>> sizes = [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]
    >>> result = ilk.cluster({"size": sizes, "depth": sizes[::-1]}, k=2, method="k-means")
    >>> [text.get_text()[0] for text in ilk.MapDisplay.from_result(result).ax_.get_legend().get_texts()]
    ['A', 'B']
    """

    def _draw(self, ax: Any, own: bool) -> None:
        x, y, group, _ = self._points()
        if len(self.groups) < 2:
            ax.scatter(x, y, s=AREAS[0], color=GREY)
            self._name_axes(ax)
            return
        for number, entry in enumerate(self.groups):
            mine = group == number
            ax.scatter(x[mine], y[mine], s=AREAS[0], alpha=0.75, linewidths=0, label=named(entry),
                       color=colour(number), marker=marker(number))  # fmt: skip
        for number, ellipse in enumerate(self.summary["map"]["ellipses"]):
            if ellipse is not None:
                self._mark(ax, number, ellipse)
        self._name_axes(ax)
        group_legend(ax, self.groups, own)

    def _mark(self, ax: Any, number: int, ellipse: Any) -> None:
        from matplotlib.patches import Ellipse

        centre, hue = (ellipse["x"], ellipse["y"]), colour(number)
        if ellipse["long"] > 0:
            shape = Ellipse(centre, 2 * ellipse["long"], 2 * ellipse["short"], angle=ellipse["angle"], facecolor="none",
                            edgecolor=hue, linewidth=1.0)  # fmt: skip
            ax.add_patch(shape)
        ax.annotate(self.groups[number]["letter"], centre, ha="center", va="center", fontsize="small", color="white",
                    fontweight="bold", clip_on=True,
                    bbox={"boxstyle": "circle,pad=0.25", "facecolor": hue, "edgecolor": "none"})  # fmt: skip


@dataclass(repr=False)
class UncertaintyDisplay(_OnMap):
    """The rows on the map; the lower the probability of its group, the larger its mark. Certain rows are pale.

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

    def _draw(self, ax: Any, own: bool) -> None:
        x, y, group, size = self._points()
        many = len(self.groups) > 1
        for number, entry in enumerate(self.groups):
            mine = group == number
            certain = size[mine] == 0
            look = {"color": colour(number) if many else GREY, "marker": marker(number), "linewidths": 0}
            ax.scatter(x[mine][certain], y[mine][certain], s=AREAS[0], alpha=0.3, label=named(entry), **look)
            ax.scatter(x[mine][~certain], y[mine][~certain], s=np.array(AREAS)[size[mine][~certain]], alpha=0.9,
                       **look)  # fmt: skip
        self._name_axes(ax)
        unsure = self.summary["row_counts"]
        if unsure.get("uncertain") is not None and many:
            below = f"{unsure['uncertain_below']:.2f}"
            ax.set_title(
                f"{plural(unsure['uncertain'], 'row')} with a probability below {below}", fontsize="medium"
            )
        if many:
            group_legend(ax, self.groups, own)


@dataclass(repr=False)
class PairDisplay(Display):
    """Two columns that show groups together where no single column does.

    Parameters
    ----------
    summary : mapping
        What `Result.summary` returns.
    number : int, default=0
        Which of the pairs, counted from 0.

    Attributes
    ----------
    ax_ : Axes
        The axes that were drawn on.
    figure_ : Figure
        Their figure.

    See Also
    --------
    Group : Says as `pair` what a group is like there.

    Examples
    --------
    >>> import ilk, numpy as np
    >>> draws, stripe = np.random.default_rng(0), np.repeat([-1.5, 0.0, 1.5], 200)
    >>> width = draws.normal(0, 2, 600)
    >>> table = {"width": width, "height": width + stripe + draws.normal(0, 0.2, 600)}
    >>> display = ilk.PairDisplay.from_result(ilk.cluster(table, k=3, method="gaussian"))
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('width', 'height')
    """

    number: int = 0

    def _lacking(self) -> UsageError | None:
        found = self.summary.get("pairs") or ()
        if self.number >= len(found) or not found[self.number]["points"]:
            return UsageError(
                "no-pair",
                "no group of this result needs a pair of columns to be shown",
                do='Single columns show them: kind="groups"',
            )
        return None

    def _size(self) -> tuple[float, float]:
        return 8.6, max(4.8, 0.9 + 0.19 * len(self.groups))

    def _draw(self, ax: Any, own: bool) -> None:
        pair = self.summary["pairs"][self.number]
        x, y, group = (np.array(pair["points"][key], dtype=np.float64) for key in ("x", "y", "group"))
        across, up = (_in_units(at, axis) for at, axis in zip((x, y), pair["axes"], strict=True))
        for number, entry in enumerate(self.groups):
            mine = group == number
            ax.scatter(across[mine], up[mine], s=AREAS[0], alpha=0.75, linewidths=0, label=named(entry),
                       color=colour(number), marker=marker(number))  # fmt: skip
        for axis, put in zip(pair["axes"], (ax.set_xticks, ax.set_yticks), strict=True):
            if axis["categories"] is not None:
                put(
                    np.arange(len(axis["categories"])) + 0.5,
                    [plain(level, 20) for level in axis["categories"]],
                )
        ax.set(xlabel=plain(pair["columns"][0]), ylabel=plain(pair["columns"][1]))
        group_legend(ax, self.groups, own)


def _in_units(at: Any, axis: Any) -> Any:
    """Positions in the units of a number; levels are one apart."""
    if axis["categories"] is not None:
        return at / STEPS * len(axis["categories"])
    return axis["from"] + at / STEPS * (axis["to"] - axis["from"])
