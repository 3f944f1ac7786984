"""What the displays share: axes, colours and marks of groups, names as matplotlib takes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ilk.errors import UsageError
from ilk.report.figures import plural

COLOURS = ("#164a9a", "#b93a06", "#0d8360", "#c06aa4", "#d08a00", "#2b9fe6")
MARKERS = ("o", "^", "P", "X", "s", "D", "v")  # another one each time the colours begin anew
NAME_CHARACTERS = 34
GREY = "#8b95a0"
LEGEND_AREA = 28  # of marks, in square points


def colour(number: int) -> str:
    """The colour of a group.

    >>> colour(0) == colour(6), colour(0) == colour(1)
    (True, False)
    """
    return COLOURS[number % len(COLOURS)]


def marker(number: int) -> str:
    """The mark of a group: with the colour, no other of 42 groups has it.

    >>> marker(0), marker(5), marker(6), marker(24)
    ('o', 'o', '^', 's')
    """
    return MARKERS[number // len(COLOURS) % len(MARKERS)]


def plain(text: object, most: int = NAME_CHARACTERS) -> str:
    """A name of the user's as matplotlib takes it: no mathematics, one line, cut.

    >>> plain("cost in $ and $")
    'cost in \\\\$ and \\\\$'
    """
    one = " ".join(str(text).split())
    short = one if len(one) <= most else one[: most - 1] + "…"
    return short.replace("$", r"\$")


def named(group: Mapping[str, Any], most: int = NAME_CHARACTERS) -> str:
    """Letter and name of a group."""
    return f"{group['letter']}  {plain(group['name'], most)}"


@dataclass(repr=False)
class Display(ABC):
    """A chart of a summary: it draws on the axes it is given, or on a figure of its own in which nothing is cut."""

    summary: Mapping[str, Any]
    ax_: Any = field(default=None, init=False)
    figure_: Any = field(default=None, init=False)

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
        refusal = self._lacking()
        if refusal is not None:
            raise refusal
        self.ax_, self.figure_ = self._axes(ax)
        self._draw(self.ax_, ax is None)
        return self

    def __repr__(self) -> str:
        groups, rows = self.summary["groups"], self.summary["table"]["rows"]
        drawn = "" if self.ax_ is None else ", drawn"
        return f"{type(self).__name__}({plural(len(groups), 'group')}, {plural(rows, 'row')}{drawn})"

    def _axes(self, ax: Any) -> tuple[Any, Any]:
        if ax is not None:
            return ax, ax.figure
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise UsageError(
                "no-matplotlib", "charts need matplotlib", do="Install it: pip install 'ilk[plot]'"
            ) from None
        figure, ax = plt.subplots(figsize=self._size(), layout="constrained")
        return ax, figure

    def _size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 6.4, 4.8

    def _lacking(self) -> UsageError | None:
        """The refusal of a summary that has nothing to draw."""
        return None

    @abstractmethod
    def _draw(self, ax: Any, own: bool) -> None:
        """The picture; `own` where the figure is made for it alone, so that there is room beside the axes."""

    @property
    def groups(self) -> Sequence[Mapping[str, Any]]:
        """Groups of the summary, or segments where there are no clear groups."""
        found: Sequence[Mapping[str, Any]] = self.summary["groups"]
        return found


def group_legend(ax: Any, groups: Sequence[Mapping[str, Any]], own: bool) -> None:
    """Letters and names beside the axes of a figure of its own; on axes of others letters within."""
    handles, names = ax.get_legend_handles_labels()
    many = len(groups)
    where: dict[str, Any] = {"ncols": 1 + (many - 1) // 8}
    if own:
        where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0, "frameon": False}
        where |= {"ncols": 1 + (many - 1) // 40, "alignment": "left"}
    else:
        names = [group["letter"] for group in groups]
    legend = ax.legend(handles, names, title="group", fontsize="small", **where)
    for handle in legend.legend_handles:
        handle.set(sizes=[LEGEND_AREA], alpha=1.0)
