"""A short rule for a group: at most three conditions, joined by "and", that pick its rows.

The rule is one path of a small decision tree, grown towards a single group: every condition is the cut of a
column that raises F most, the harmonic mean of coverage (rows of the group that are picked) and purity (rows
picked that are of the group). The best few partial rules are kept at each step, since the best first cut need
not begin the best rule. Cuts are looked for in the sample; coverage and purity are counted on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.report.bins import each_column
from ilk.report.evidence import Evidence
from ilk.report.facts import Array, Described
from ilk.report.groups import Group
from ilk.report.terms import Op, Rule, Term

MOST_TERMS = 3
COLUMNS_TRIED = 12  # of a group, the most telling
PARTIAL_RULES = 4
WORTH = 0.015  # F that one more condition has to add
LEAST_F = 0.7  # below, no short rule tells the group apart
MOST_LEVELS = 3  # named in one condition


def picks(term: Term, column: Described, place: Any = slice(None)) -> Array:
    """Which rows meet the condition."""
    values = column.values[place]
    if column.is_number:
        missing = np.isnan(values)
        with np.errstate(invalid="ignore"):
            met = values <= term.value if term.op == "at most" else values > term.value
    else:
        assert column.levels is not None
        missing = values < 0
        met = np.isin(values, [column.levels.index(level) for level in term.categories])
    return np.asarray(np.where(missing, term.missing, met))


@dataclass(frozen=True, eq=False)
class _PartialRule:
    """A rule on its way: its conditions, the rows of the sample they pick, and F."""

    terms: tuple[Term, ...]
    picked: Array
    f: float


def rules(evidence: Evidence, groups: Sequence[Group]) -> list[Rule | None]:
    """The rule of each group with its coverage, purity and F; None for a single group or an empty one."""
    if evidence.k < 2:
        return [None] * evidence.k
    columns = {column.name: column for column in evidence.columns}
    place = evidence.sample.place

    def told(number: int) -> Rule | None:
        group = groups[number]
        tried = [fact for fact in group.facts if fact.distinctive][:COLUMNS_TRIED]
        views = [_RuleColumn(columns[f.column], columns[f.column].values[place], f.decimals) for f in tried]
        terms = _grown(views, number, evidence) if group.rows else ()
        return _counted(terms, columns, group.letter, number, evidence) if terms else None

    return each_column(told, range(len(groups)), evidence.n_rows, evidence.threads)


def _grown(views: Sequence[_RuleColumn], number: int, evidence: Evidence) -> tuple[Term, ...]:
    sample = evidence.sample
    wanted, heft = sample.label == number, sample.heft
    total = float(heft[wanted].sum())
    kept = [_PartialRule((), np.ones(len(heft), dtype=bool), 0.0)]
    best = kept[0]
    for _ in range(MOST_TERMS):
        made = [
            p for partial in kept for view in views for p in _extended(partial, view, wanted, heft, total)
        ]
        made.sort(key=lambda partial: -partial.f)
        if not made or made[0].f < best.f + WORTH:
            break
        kept, best = made[:PARTIAL_RULES], made[0]
    return best.terms


@dataclass(frozen=True, eq=False)
class _RuleColumn:
    """A column as the sample holds it, and the decimals it is told with."""

    column: Described
    values: Array
    decimals: int


def _extended(
    partial: _PartialRule, view: _RuleColumn, wanted: Array, heft: Array, total: float
) -> list[_PartialRule]:
    """The partial rule with the best condition on this column, with blanks passing or not."""
    find = _best_cut if view.column.is_number else _best_levels
    missing = np.isnan(view.values) if view.column.is_number else view.values < 0
    made = []
    for blank in (False, True) if (missing & partial.picked).any() else (False,):
        passing = float(heft[missing & partial.picked].sum()) if blank else 0.0
        right = float(heft[missing & partial.picked & wanted].sum()) if blank else 0.0
        inside = partial.picked & ~missing
        term = find(view, inside, wanted, heft, (right, passing, total), blank)
        if term is None or any(term.column == old.column and term.op == old.op for old in partial.terms):
            continue
        picked = partial.picked & picks(term, Described(term.column, view.values, view.column.levels))
        hit = float(heft[picked & wanted].sum())
        f = 2 * hit / max(float(heft[picked].sum()) + total, 1e-300)
        made.append(_PartialRule((*partial.terms, term), picked, f))
    return made


def _best_cut(
    view: _RuleColumn,
    inside: Array,
    wanted: Array,
    heft: Array,
    start: tuple[float, float, float],
    blank: bool,
) -> Term | None:
    right, passing, total = start
    values = view.values[inside]
    order = np.argsort(values, kind="stable")
    values = values[order]
    weight, mine = heft[inside][order], (heft * wanted)[inside][order]
    ends = np.flatnonzero(values[1:] > values[:-1])  # the last row before each cut; differences may overflow
    if not len(ends):
        return None
    picked, hit = np.cumsum(weight), np.cumsum(mine)
    low = 2 * (hit[ends] + right) / (picked[ends] + passing + total)
    high = 2 * (hit[-1] - hit[ends] + right) / (picked[-1] - picked[ends] + passing + total)
    side: Op = "at most" if low.max() >= high.max() else "above"
    end = ends[int((low if side == "at most" else high).argmax())]
    value, decimals = between(float(values[end]), float(values[end + 1]), view.decimals)
    return Term(
        column=view.column.name,
        op=side,
        value=value,
        categories=(),
        missing=blank,
        decimals=decimals,
        clock=view.column.clock,
    )


def between(low: float, high: float, decimals: int) -> tuple[float, int]:
    """A round number that parts two values, and its decimals: low <= number < high.

    >>> between(39.6, 40.9, 1), between(3.0, 4.0, 0)
    ((40.2, 1), (3.0, 0))
    """
    middle = low + (high - low) / 2
    for digits in range(decimals, decimals + 8):
        value = float(np.floor(middle * 10.0**digits) / 10.0**digits)
        if low <= value < high:
            return value, digits
    return low, decimals


def _best_levels(
    view: _RuleColumn,
    inside: Array,
    wanted: Array,
    heft: Array,
    start: tuple[float, float, float],
    blank: bool,
) -> Term | None:
    assert view.column.levels is not None
    right, passing, total = start
    n_levels = len(view.column.levels)
    codes = view.values[inside].astype(np.int64)
    weight = np.bincount(codes, weights=heft[inside], minlength=n_levels)
    mine = np.bincount(codes, weights=(heft * wanted)[inside], minlength=n_levels)
    there = np.flatnonzero(weight > 0)
    if len(there) < 2:
        return None
    order = there[np.argsort(-mine[there] / weight[there], kind="stable")][:MOST_LEVELS]
    f = 2 * (np.cumsum(mine[order]) + right) / (np.cumsum(weight[order]) + passing + total)
    levels = tuple(view.column.levels[j] for j in np.sort(order[: int(f.argmax()) + 1]))
    return Term(column=view.column.name, op="is", value=None, categories=levels, missing=blank, decimals=0)


def _counted(
    terms: tuple[Term, ...], columns: dict[str, Described], letter: str, number: int, evidence: Evidence
) -> Rule:
    picked = evidence.labels >= 0
    everyone = float(evidence.heft[picked].sum())
    for term in terms:
        picked = picked & picks(term, columns[term.column])
    wanted = evidence.labels == number
    hit = float(evidence.heft[picked & wanted].sum())
    taken, total = float(evidence.heft[picked].sum()), float(evidence.heft[wanted].sum())
    f = 2 * hit / max(taken + total, 1e-300)
    return Rule(
        group=letter,
        terms=terms,
        coverage=hit / total if total else None,
        purity=hit / taken if taken else None,
        base_rate=total / everyone if everyone else None,
        rows=int(picked.sum()),
        f=f,
        distinctive=bool(f >= LEAST_F),
    )
