"""Charts of columns: what sets groups apart, which columns do it most, every column in every group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ilk.errors import UsageError
from ilk.report.displays.base import GREY, Display, colour, named, plain
from ilk.report.figures import differs, level_text, share_text, value_text

FACTS, FACTS_OF_MANY, MANY = 3, 2, 12


@dataclass(repr=False)
class GroupsDisplay(Display):
    """What sets each group apart: bars to the right where it is above the whole table, to the left where below.

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
    Group : Holds the same as facts.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> ilk.GroupsDisplay.from_result(result)
    GroupsDisplay(2 groups, 8 rows, drawn)
    """

    def _lacking(self) -> UsageError | None:
        if len(self.groups) < 2:
            return UsageError(
                "one-group",
                "a single group is like the whole table",
                do="Draw a result of two or more groups",
            )
        return None

    def _facts(self) -> list[tuple[int, Mapping[str, Any]]]:
        most = FACTS if len(self.groups) <= MANY else FACTS_OF_MANY
        return [
            (g, fact)
            for g, group in enumerate(self.groups)
            for fact in [f for f in group["facts"] if differs(f)][:most]
        ]

    def _size(self) -> tuple[float, float]:
        return 8.0, max(2.4, 0.6 + 0.24 * len(self._facts()) + 0.34 * len(self.groups))

    def _draw(self, ax: Any, own: bool) -> None:
        facts, place, ticks = self._facts(), 0.0, []
        longest = max((fact["nats"] for _, fact in facts), default=1.0) or 1.0
        for g, group in enumerate(self.groups):
            ax.text(0.0, place, named(group, 60), transform=ax.get_yaxis_transform(), ha="left", va="center",
                    fontsize="small", fontweight="bold", color=colour(g))  # fmt: skip
            place += 1
            mine = [fact for owner, fact in facts if owner == g]
            for fact in mine:
                _bar(ax, place, fact, g)
                ticks.append((place, _what(fact)))
                place += 1
            if not mine:
                words = (group.get("pair") or {}).get("words") or "no clear difference from the whole table"
                ax.text(
                    0.02,
                    place,
                    plain(words, 60),
                    transform=ax.get_yaxis_transform(),
                    va="center",
                    fontsize="small",
                )
                place += 1
        ax.set_yticks([at for at, _ in ticks], [what for _, what in ticks], fontsize="small")
        ax.axvline(0.0, color=GREY, linewidth=0.8)
        ax.set(xlabel="nats per row from the whole table, given in brackets", ylim=(place - 0.4, -0.6))
        ax.set_xlim(-1.45 * longest, 1.45 * longest)
        ax.spines[["top", "right", "left"]].set_visible(False)


def _bar(ax: Any, place: float, fact: Mapping[str, Any], group: int) -> None:
    up = fact["sign"] == "up"
    length = fact["nats"] if up else -fact["nats"]
    ax.barh(place, length, height=0.72, color=colour(group))
    if fact["type"] == "number":
        value, whole = (value_text(fact[key], fact["decimals"]) for key in ("value", "whole"))
    else:
        value, whole = share_text(fact["value"]), share_text(fact["whole"])
    ax.annotate(f"{value} ({whole})", (length, place), (4 if up else -4, 0), textcoords="offset points",
                ha="left" if up else "right", va="center", fontsize="x-small")  # fmt: skip


def _what(fact: Mapping[str, Any]) -> str:
    column = fact["column"]
    return plain(column if fact["type"] == "number" else level_text(column, str(fact["category"])))


@dataclass(repr=False)
class ImportanceDisplay(Display):
    """How much each column distinguishes the groups, in nats per row, the most relevant on top.

    Parameters
    ----------
    summary : mapping
        What `Result.summary` returns.
    columns : int, default=20
        Largest number of columns that are drawn.

    Attributes
    ----------
    ax_ : Axes
        The axes that were drawn on.
    figure_ : Figure
        Their figure.

    See Also
    --------
    Result.importance : The same as a frame.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> ilk.ImportanceDisplay.from_result(result).ax_.get_xlabel()
    'nats per row'
    """

    columns: int = 20

    def _size(self) -> tuple[float, float]:
        return 6.4, max(2.0, 0.9 + 0.26 * len(self.summary["profile"][: self.columns]))

    def _draw(self, ax: Any, own: bool) -> None:
        told = self.summary["profile"][: self.columns]
        ax.barh(range(len(told)), [entry["relevance"] for entry in told], color="#15181c", height=0.6)
        ax.set_yticks(range(len(told)), [plain(entry["column"]) for entry in told])
        ax.invert_yaxis()
        ax.set(xlabel="nats per row", title="Columns that distinguish the groups")
        ax.spines[["top", "right"]].set_visible(False)


@dataclass(repr=False)
class ProfileDisplay(Display):
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

    def _size(self) -> tuple[float, float]:
        rows = len(self.summary["profile"][: self.columns])
        return max(6.4, 3.0 + 0.34 * len(self.groups)), max(2.4, 1.2 + 0.3 * rows)

    def _draw(self, ax: Any, own: bool) -> None:
        names = [entry["column"] for entry in self.summary["profile"][: self.columns]]
        nats = [
            [next(f["nats"] for f in group["facts"] if f["column"] == name) for group in self.groups]
            for name in names
        ]
        image = ax.imshow(nats, aspect="auto", cmap="Greys", vmin=0.0)
        ax.set_xticks(range(len(self.groups)), [group["letter"] for group in self.groups])
        ax.set_yticks(range(len(names)), [plain(name) for name in names])
        ax.set(xlabel="group")
        ax.figure.colorbar(image, ax=ax, label="nats per row")
