"""Charts for those who draw with matplotlib, in the manner of scikit-learn's displays (extra: `plot`).

Each display is made by `from_result(result, ax=None)`, draws on the axes it is given or on its own, and keeps
`ax_` and `figure_`. What is drawn comes from the summary; matplotlib is imported only when a chart is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ilk.report.displays.base import COLOURS, MARKERS, Display
from ilk.report.displays.columns import GroupsDisplay, ImportanceDisplay, ProfileDisplay
from ilk.report.displays.quality import (
    SelectionDisplay,
    SeparationDisplay,
    SilhouetteDisplay,
    StabilityDisplay,
)
from ilk.report.displays.rows import MapDisplay, PairDisplay, UncertaintyDisplay

__all__ = [
    "BLOCKS",
    "COLOURS",
    "KINDS",
    "MARKERS",
    "Display",
    "GroupsDisplay",
    "ImportanceDisplay",
    "MapDisplay",
    "PairDisplay",
    "ProfileDisplay",
    "SelectionDisplay",
    "SeparationDisplay",
    "SilhouetteDisplay",
    "StabilityDisplay",
    "UncertaintyDisplay",
    "first_kind",
]

KINDS: dict[str, type[Display]] = {
    "map": MapDisplay,
    "groups": GroupsDisplay,
    "importance": ImportanceDisplay,
    "profile": ProfileDisplay,
    "pair": PairDisplay,
    "selection": SelectionDisplay,
    "silhouettes": SilhouetteDisplay,
    "separation": SeparationDisplay,
    "stability": StabilityDisplay,
    "uncertainty": UncertaintyDisplay,
}
# The blocks of the report that go by another name there.
BLOCKS = {"answer": "importance", "why": "selection", "quality": "silhouettes", "rows": "uncertainty"}


def first_kind(summary: Mapping[str, Any]) -> str:
    """The chart to look at first: the map; what the groups are where there is none; how K was chosen for one group."""
    if (summary.get("map") or {}).get("points"):
        return "map"
    return "groups" if len(summary["groups"]) > 1 else "selection"
