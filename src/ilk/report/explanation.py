"""The explanation of a run as one plain document: what the page shows beyond the facts of the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ilk.report import exemplars, plane, profile, quality, rule
from ilk.report.evidence import Evidence
from ilk.report.groups import Group


def explanation(evidence: Evidence, groups: Sequence[Group]) -> dict[str, Any]:
    """Parts of the summary: profile, map, silhouettes, overlap, rows; and `rules`, one for each group."""
    told = profile.profile(evidence, groups)
    made = plane.design(evidence, plane.wanted_columns(told))
    if evidence.silhouette is None:
        evidence = replace(evidence, silhouette=quality.measured(evidence, made))
    columns = [entry["column"] for entry in told if entry["distribution"] is not None]
    return {
        "profile": told,
        "map": plane.plane(evidence, made),
        "silhouettes": quality.silhouettes(evidence, groups),
        "overlap": quality.overlap(evidence),
        "row_counts": exemplars.counts(evidence),
        "rows": exemplars.exemplars(evidence, groups, made, columns),
        "rules": rule.rules(evidence, groups),
    }


def without_rows(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary with nothing in it about single rows: no cells, and no points on the map."""
    kept = {**summary, "rows": None}
    if kept.get("map"):
        kept["map"] = {**kept["map"], "points": None}
    return kept
