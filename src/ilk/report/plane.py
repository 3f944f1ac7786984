"""The map: the sample on two axes, named by what they are made of, with an ellipse for each group.

Numbers are standardised; a level of a category is its indicator, centred and divided by the square root of its
share (factor analysis of mixed data, Pages 2004; principal components where all columns are numbers, multiple
correspondence analysis where none is). A missing cell lies at the centre.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.report.evidence import Evidence, shared_out
from ilk.report.facts import Array
from ilk.report.figures import level_text

MOST_COLUMNS = 60  # the most relevant of those that tell a group apart
MOST_LEVELS = 12  # of a category, the most frequent
NAMED = 0.5  # correlation from which a column names the end of an axis
MOST_NAMES = 3
MOST_LOADINGS = 12
ELLIPSE = 2.1460  # sqrt of the 90 % point of chi-square with two degrees of freedom
LEAST_ROWS = 5  # for an ellipse
SIZES = (0.95, 0.80)  # sure from here: small, middle; below: large
MOST_POINTS = 1000  # drawn; as many of a million rows as of a thousand
STEPS = 1000  # positions are whole numbers from 0 to this


@dataclass(frozen=True, eq=False)
class Design:
    """The sample as numbers: (rows, variables), centred; `names` are (column, level or None)."""

    values: Array
    names: tuple[tuple[str, str | None], ...]


def design(evidence: Evidence, wanted: Sequence[str]) -> Design:
    """Standardised numbers and scaled indicators of the wanted columns."""
    sample, parts, names = evidence.sample, [], []
    share = sample.heft / sample.heft.sum()
    by_name = {column.name: column for column in evidence.columns}
    for name in wanted:
        column = by_name[name]
        values = column.values[sample.place]
        if column.is_number:
            part = _standardised(values.astype(np.float64), share)
            if part is not None:
                parts.append(part)
                names.append((name, None))
            continue
        levels = column.levels or ()
        count = np.bincount(values[values >= 0], weights=share[values >= 0], minlength=len(levels))
        told = np.argsort(-count, kind="stable")[:MOST_LEVELS]
        for j in np.sort(told[count[told] > 0]):
            if count[j] < count.sum():
                indicator = np.where(values < 0, 0.0, (values == j) - count[j] / count.sum())
                parts.append(indicator / np.sqrt(count[j] / count.sum()))
                names.append((name, levels[j]))
    stacked = np.column_stack(parts) if parts else np.zeros((len(share), 0))
    return Design(stacked, tuple(names))


def _standardised(values: Array, share: Array) -> Array | None:
    present = ~np.isnan(values)
    total = share[present].sum()
    if total <= 0:
        return None
    scale = float(np.abs(values[present]).max()) or 1.0
    values = values / scale  # so that squares neither overflow nor vanish
    mean = float((share[present] * values[present]).sum() / total)
    spread = float(np.sqrt((share[present] * (values[present] - mean) ** 2).sum() / total))
    if not spread > 1e-12 * max(abs(mean), 1e-300):
        return None
    return np.where(present, (values - mean) / spread, 0.0)


def wanted_columns(profile: Sequence[dict[str, Any]]) -> list[str]:
    """Columns that tell a group apart, the most relevant first; every used column where fewer than two do."""
    used = [e for e in profile if e["used"]]
    telling = [e["column"] for e in used if e["distinctive_in"]]
    return (telling if len(telling) > 1 else [e["column"] for e in used])[:MOST_COLUMNS]


def plane(evidence: Evidence, made: Design) -> dict[str, Any] | None:
    """Axes, points and ellipses; None where not even one axis can be drawn."""
    sample, n_variables = evidence.sample, len(made.names)
    if n_variables < 2 or len(sample.place) < 3:
        return None
    share = sample.heft / sample.heft.sum()
    moment = (made.values * share[:, None]).T @ made.values
    value, vector = np.linalg.eigh(moment)  # at most a few hundred variables
    value, vector = np.maximum(value[:-3:-1], 0.0), vector[:, :-3:-1]
    total = float(np.trace(moment))  # above 0: a variable that does not vary is not in the design
    vector = vector * np.where(vector[np.abs(vector).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    position = made.values @ vector
    loadings = _loadings(made, position, share)
    low, high = position.min(axis=0), position.max(axis=0)
    unit = float((high - low).max()) / STEPS  # one scale for both axes
    extent = np.ceil((high - low) / unit)
    numbers_only = all(level is None for _, level in made.names)
    levels_only = all(level is not None for _, level in made.names)
    drawn = drawn_rows(evidence, MOST_POINTS)
    place = np.round((position[drawn] - low) / unit).astype(int)
    return {
        "method": "PCA" if numbers_only else "MCA" if levels_only else "FAMD",
        "share": [float(v / total) for v in value],
        "extent": [int(e) for e in extent],
        "ends": [_ends(loadings, axis) for axis in (0, 1)],
        "loadings": sorted(loadings, key=lambda e: -max(abs(e["x"]), abs(e["y"])))[:MOST_LOADINGS],
        "rows": evidence.n_rows,
        "rows_shown": len(drawn),
        "origin": [float(o) for o in -low / unit],
        "ellipses": [_ellipse(position, low, unit, evidence, g) for g in range(evidence.k)],
        "sizes": list(SIZES),
        "points": {
            "x": place[:, 0].tolist(),
            "y": place[:, 1].tolist(),
            "group": sample.label[drawn].tolist(),
            "size": _sizes(evidence)[drawn].tolist(),
            "row": evidence.row_numbers[sample.place[drawn]].tolist(),
        },
    }


def drawn_rows(evidence: Evidence, most: int) -> Array:
    """The places in the sample of the rows that are drawn: of each group its part, small groups whole."""
    label = evidence.sample.label
    sizes = np.bincount(label, minlength=evidence.k)
    taken = [
        np.flatnonzero(label == g)[np.linspace(0, size - 1, quota).astype(int)]
        for g, (size, quota) in enumerate(zip(sizes, shared_out(sizes, most), strict=True))
    ]
    return np.sort(np.concatenate(taken))


def _loadings(made: Design, position: Array, share: Array) -> list[dict[str, Any]]:
    """Correlation of every variable with both axes."""
    spread = np.sqrt(np.maximum((share[:, None] * made.values**2).sum(axis=0), 1e-300))
    centred = position - (share[:, None] * position).sum(axis=0)
    length = np.sqrt(np.maximum((share[:, None] * centred**2).sum(axis=0), 1e-300))
    both = (made.values * share[:, None]).T @ centred / spread[:, None] / length
    return [
        {"column": column, "category": level, "x": float(x), "y": float(y)}
        for (column, level), (x, y) in zip(made.names, both, strict=True)
    ]


def variable_text(entry: Mapping[str, Any]) -> str:
    """A column, or a level with its column, of the entry of an axis."""
    return (
        str(entry["column"]) if entry["category"] is None else level_text(entry["column"], entry["category"])
    )


def _ends(loadings: Sequence[dict[str, Any]], axis: int) -> dict[str, list[str]]:
    key = "xy"[axis]

    def named(sign: int) -> list[str]:
        strong = sorted((e for e in loadings if sign * e[key] > NAMED), key=lambda e: -sign * e[key])
        return [variable_text(e) for e in strong][:MOST_NAMES]

    return {"low": named(-1), "high": named(1)}


def _sizes(evidence: Evidence) -> Array:
    """0 small and sure, 1 middle, 2 large and unsure."""
    if evidence.sure is None:
        return np.zeros(len(evidence.sample.place), dtype=int)
    sure = evidence.sure[evidence.sample.place]
    return (sure < SIZES[0]).astype(int) + (sure < SIZES[1])


def _ellipse(position: Array, low: Array, unit: float, evidence: Evidence, g: int) -> dict[str, float] | None:
    mine = evidence.sample.label == g
    if not mine.any():
        return None
    heft = evidence.sample.heft[mine] / evidence.sample.heft[mine].sum()
    centre = (heft[:, None] * position[mine]).sum(axis=0)
    away = position[mine] - centre
    value, vector = np.linalg.eigh((away * heft[:, None]).T @ away)
    radius = ELLIPSE * np.sqrt(np.maximum(value[::-1], 0.0)) / unit
    enough = int(mine.sum()) >= LEAST_ROWS and evidence.k > 1
    return {
        "x": float((centre[0] - low[0]) / unit),
        "y": float((centre[1] - low[1]) / unit),
        "long": float(radius[0]) if enough else 0.0,
        "short": float(radius[1]) if enough else 0.0,
        "angle": float(np.degrees(np.arctan2(vector[1, 1], vector[0, 1]))),
    }
