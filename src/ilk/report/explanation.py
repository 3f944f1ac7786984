"""The explanation of a run as one plain document: what the page shows beyond the facts of the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ilk.report import exemplars, pairs, plane, profile, quality, rule
from ilk.report.evidence import Evidence
from ilk.report.groups import Group
from ilk.report.siblings import contrasts


def told_apart(evidence: Evidence, groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups with what tells each from the one most like it; where no single column shows a group, a pair of
    columns names it."""
    shown = zip(groups, contrasts(evidence, groups), pairs.pairs_of(evidence, groups), strict=True)
    return _named([replace(group, unlike=unlike, pair=pair) for group, unlike, pair in shown])


def _named(groups: Sequence[Group]) -> tuple[Group, ...]:
    """What a pair of columns says names the group; where two are named alike, what it was named before is added."""
    words = [None if group.pair is None else group.pair.words for group in groups]
    return tuple(
        group
        if said is None
        else replace(group, name=said if words.count(said) == 1 else f"{said}, {group.name}")
        for group, said in zip(groups, words, strict=True)
    )


def explanation(evidence: Evidence, groups: Sequence[Group]) -> dict[str, Any]:
    """Parts of the summary: profile, map, pairs, silhouettes, overlap, rows; and `rules`, one for each group."""
    told = profile.profile(evidence, groups)
    made = plane.design(evidence, plane.wanted_columns(told))
    if evidence.silhouette is None:
        evidence = replace(evidence, silhouette=quality.measured(evidence, made))
    columns = [entry["column"] for entry in told if entry["distribution"] is not None]
    return {
        "profile": told,
        "map": plane.plane(evidence, made),
        "pairs": pairs.drawn_pairs(evidence, groups),
        "silhouettes": quality.silhouettes(evidence, groups),
        "overlap": quality.overlap(evidence),
        "row_counts": exemplars.counts(evidence),
        "rows": exemplars.exemplars(evidence, groups, made, columns),
        "rules": rule.rules(evidence, groups),
    }


def without_rows(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary with nothing in it about single rows: no cells, and no points on the map or on pairs."""
    kept = {**summary, "rows": None}
    if kept.get("map"):
        kept["map"] = {**kept["map"], "points": None}
    kept["pairs"] = [{**pair, "points": None} for pair in kept.get("pairs") or ()]
    return kept
