"""How far the groups can be trusted, in one word with its reasons.

Three measurements decide. `separation`: few rows lie between any two groups. `stability`: mean Jaccard index of each
group with its match when the whole rule is repeated on bootstrap resamples. `icl_k`: the integrated completed
likelihood, too, prefers more than one group (mixtures only).

    no clear groups   one group explains the table, or no density dip separates its components
    weak              separation < 0.40, or icl_k = 1, or a group dissolves (stability < 0.50, or within its
                      standard error of that), or not (separation >= 0.55 or (n >= 300 and mean stability >= 0.65)),
                      or mean stability < 0.75 where columns are more than a fifth of the rows,
                      or more groups than these are stable too, or a group that dissolved lies as near to another
                      group as to that which it was merged with, or the groups overlap: the expected adjusted Rand
                      index of the labels is below 0.8, or below 0.9 where anything keeps them from "solid"
    not tested        not weak as far as known, and stability was not measured, or only one group was tried
    solid             separation >= 0.55, least stability >= 0.75 beyond its standard error, no finer groups that
                      dissolved, no component that may be of two groups, expected adjusted Rand index >= 0.95
    fair              otherwise

Confidence, silhouette and BIC margin take no part: half of all single groups that BIC splits pass by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from ilk.methods import GIVEN
from ilk.selection.candidates import EXACT, OK, Search
from ilk.selection.doubts import RIGHT, RIGHT_FOR_SURE, RIGHT_IN_DOUBT
from ilk.selection.grouping import UNSETTLED_GAIN, Grouping
from ilk.selection.merging import FEW_ROWS as FEW_IN_GROUP
from ilk.selection.merging import lowest
from ilk.selection.reasons import (
    Reason,
    beside,
    finer_groups,
    merged_otherwise,
    overlap,
    separation_figures,
    torn_between,
)
from ilk.selection.resampling import DISSOLVED, STABLE_MEAN, STABLE_MIN

Word = Literal["solid", "fair", "weak", "no clear groups", "not tested"]

STABLE_CROWDED = (
    0.75  # of all groups: the most bimodal of hundreds of columns shows a valley, but does not return
)
STABLE_ROWS = 300  # below, stability alone is not enough: half a uniform square is a very stable group
FEW_ROWS = 30
SAME_GROUPS = 0.95  # adjusted Rand index from which a component more leaves the groups as they are
SOLID_STARTS = 0.20  # share of the starts of a method of centres that must reach the best optimum
CLEAR_GAP = (
    1.0  # between groups of any shape, in distances of fifth neighbours; halves of one cloud stay below
)
SKEWED = 1.0  # skewness of a column that is told to explain why one cloud was split
MOST_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How far to trust the groups.

    Attributes
    ----------
    word : "solid", "fair", "weak", "no clear groups" or "not tested"
        The verdict; "not tested" where the stability of the groups was not measured.
    sentence : str
        The verdict in words.
    reasons : tuple of Reason
        Why it is not better: a stable code and a sentence each.
    separation : None or float
        Separation of the two groups that are least separated.
    icl_k : None or int
        Number of groups that ICL prefers.
    stability_min : None or float
        Stability (mean Jaccard) of the least stable group.
    stability_mean : None or float
        Mean stability of the groups.
    components : int
        Number of mixture components that make the groups.
    merged : None or dict
        Where a group is not stable: the finest merge of the groups that is stable and separated, with its
        number of `groups`, their letters (`members`), `separation` and `stability`.
    thresholds : dict
        What each figure is compared with.

    See Also
    --------
    Result : Holds the verdict.

    Examples
    --------
    >>> import ilk
    >>> ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2).verdict.word
    'fair'
    """

    word: Word
    sentence: str
    reasons: tuple[Reason, ...]
    separation: float | None
    icl_k: int | None
    stability_min: float | None
    stability_mean: float | None
    components: int
    merged: dict[str, Any] | None
    thresholds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a plain dictionary.

        Returns
        -------
        dict
            Names and values.
        """
        return asdict(self)


@dataclass(frozen=True)
class _Case:
    """All that the verdict looks at."""

    found: Search
    grouping: Grouping
    letters: Sequence[str]
    columns: Sequence[str]
    icl_k: int | None

    @property
    def valley(self) -> float | None:
        pair = lowest(self.grouping.valleys)
        return None if pair is None or self.grouping.segmented else self.grouping.valleys[pair[0]][pair[1]]

    @property
    def stable(self) -> tuple[float, ...]:
        return self.grouping.stable or ()

    @property
    def compared(self) -> bool:
        """Whether more than one group was tried: few rows, a short time or `k=1` may have kept it from that."""
        return {c.k for c in self.found.candidates if c.bic is not None} != {1}


def judge(found: Search, grouping: Grouping, letters: Sequence[str], columns: Sequence[str]) -> Verdict:
    """The verdict on groups marked by `letters`, found in numeric `columns`."""
    case = _Case(found, grouping, letters, columns, icl_k(found))
    if grouping.n_groups == 1:
        word: Word = "no clear groups" if case.compared else "not tested"
        reasons, sentence = [_one_cloud(case)], _no_groups(case)
    else:
        fair = _fair_reasons(case)
        weak = _weak_reasons(case) + overlap(grouping.doubts, RIGHT_IN_DOUBT if fair else RIGHT)
        if not weak:
            fair += overlap(grouping.doubts, RIGHT_FOR_SURE)
        word = "weak" if weak else "not tested" if not case.stable else "fair" if fair else "solid"
        reasons = weak + fair
        sentence = "; ".join(reason.text for reason in reasons) or _praise(case)
        if word != "solid":
            sentence += _coarser(case)
    stable = case.stable
    return Verdict(
        word=word,
        sentence=sentence,
        reasons=tuple(reasons),
        separation=case.valley,
        icl_k=case.icl_k,
        stability_min=min(stable) if stable else None,
        stability_mean=float(np.mean(stable)) if stable else None,
        components=grouping.pieces,
        merged=None if grouping.merged is None else grouping.merged.to_dict(letters),
        thresholds={
            "merge": grouping.thresholds.merge,
            "separation": grouping.thresholds.clear,
            "stability_min": STABLE_MIN,
            "stability_mean": STABLE_MEAN,
            "stability_low": DISSOLVED,
            "stability_rows": STABLE_ROWS,
        },
    )


def icl_k(found: Search) -> int | None:
    """K of the lowest ICL; None for methods without one."""
    known = [(c.icl, c.k) for c in found.candidates if c.icl is not None]
    return min(known)[1] if known else None


def _at_least(stability: float) -> str:
    """The least of several figures that are 1 at most.

    >>> _at_least(0.9), _at_least(0.999)
    ('0.90 or more', '1.00')
    """
    return "1.00" if stability >= 0.995 else f"{stability:.2f} or more"


def _one_cloud(case: _Case) -> Reason:
    """Why there is one group: BIC itself prefers one, or no density dip separates its components."""
    if case.grouping.segmented:
        figures = separation_figures(case.grouping.merge.path[-1].valley, case.grouping.thresholds.merge)
        return Reason("not-separated", f"no density dip between the components {figures}")
    if not case.compared:
        return Reason("one-group", "no other number of groups was tried")
    chosen = case.found.chosen.bic
    more = [c.bic for c in case.found.candidates if c.k > 1 and c.bic is not None]
    rise = 0.0 if chosen is None or not more else min(more) - chosen
    text = f": two or more groups raise the BIC by {rise:.0f}" if rise >= 0.5 else ""
    return Reason("one-group", "a single group explains the table best" + text)


def _no_groups(case: _Case) -> str:
    if not case.grouping.segmented:
        return _one_cloud(case).text
    known = zip(case.columns, case.grouping.skewness, strict=False)
    skewed = [name for name, value in known if abs(value) > SKEWED]
    why = f" (skewed: {', '.join(skewed[:MOST_NAMED])})" if skewed else ""
    return (
        f"the table looks like a single group{why}. {case.grouping.pieces} segments are given "
        "for convenience: arbitrary segments, not distinct groups"
    )


def _weak_reasons(case: _Case) -> list[Reason]:
    reasons = []
    if not _separated(case):
        reasons += _few_in_group(case) or [_unparted(case)]
    reasons += _unstable(case, 0.0, DISSOLVED) + _perhaps_dissolved(case)
    if _unsteady(case):
        text = f"mean Jaccard {beside(float(np.mean(case.stable)), STABLE_CROWDED)} in bootstrap resamples"
        few = f"(threshold {STABLE_CROWDED:.2f} for a table with few rows for its columns)"
        reasons.append(Reason("unstable-group", f"the groups are recovered with {text} {few}"))
    if case.icl_k == 1:
        reasons.append(Reason("icl-one", "ICL (integrated completed likelihood) prefers one group"))
    reasons += torn_between(case.grouping.doubts, case.letters)
    return reasons + finer_groups(case.grouping.doubts, case.letters, case.grouping.thresholds)


def _separated(case: _Case) -> bool:
    """Whether the groups are parted, clearly or less clearly but with groups that are stable on the whole."""
    valley, grouping = case.valley or 0.0, case.grouping
    if valley >= grouping.thresholds.clear:
        return True
    parted = valley >= grouping.thresholds.merge and grouping.n_rows >= STABLE_ROWS
    stable_enough = not case.stable or float(np.mean(case.stable)) >= STABLE_MEAN
    return stable_enough and (parted or (grouping.gap or 0.0) > CLEAR_GAP)


def _unsteady(case: _Case) -> bool:
    """Whether the groups of a table with few rows for its columns do not return."""
    return case.grouping.crowded and bool(case.stable) and float(np.mean(case.stable)) < STABLE_CROWDED


def _few_in_group(case: _Case) -> list[Reason]:
    pair = lowest(case.grouping.valleys)
    assert pair is not None
    sizes = case.grouping.size
    small = min(pair, key=lambda group: sizes[group])
    if sizes[small] >= FEW_IN_GROUP:
        return []
    text = f"too few rows to separate {case.letters[pair[0]]} from {case.letters[pair[1]]}"
    return [Reason("few-rows", f"{text}: {case.letters[small]} has {sizes[small]:.0f}")]


def _unparted(case: _Case) -> Reason:
    """The pair with the lowest separation, in words."""
    pair, clear = lowest(case.grouping.valleys), case.grouping.thresholds.clear
    assert pair is not None
    one, other = (case.letters[group] for group in pair)
    figures = separation_figures(case.valley or 0.0, clear)
    gap = case.grouping.gap or 0.0
    if gap > CLEAR_GAP:
        apart = f"the gap between them is {gap:.1f} times the distance of neighbouring rows"
        return Reason("not-separated", f"no straight line separates {one} and {other} {figures}, but {apart}")
    return Reason("not-separated", f"{one} and {other} are not clearly separated {figures}")


def _unstable(case: _Case, least: float, below: float) -> list[Reason]:
    """The groups whose stability is in a range, least first."""
    found = sorted((value, case.letters[g]) for g, value in enumerate(case.stable) if least <= value < below)
    if not found:
        return []
    dissolved = below == DISSOLVED
    low, high = (beside(found[i][0], below) for i in (0, -1))
    names = _listed([name for _, name in found])
    one = len(found) == 1
    what = ("dissolves" if one else "dissolve") if dissolved else ("is" if one else "are") + " not stable"
    figures = f"mean Jaccard {low}" + ("" if one else f" to {high}")
    text = f"{names} {what} in bootstrap resamples ({figures}, threshold {below:.2f})"
    return [Reason("dissolved-group" if dissolved else "unstable-group", text)]


def _barely_stable(case: _Case) -> list[Reason]:
    """Stability that may as well lie below the threshold, by its standard error over the resamples."""
    if not case.stable or min(case.stable) < STABLE_MIN:
        return []
    return _within_error(case, STABLE_MIN, "unstable-group", "the groups differ between bootstrap resamples")


def _perhaps_dissolved(case: _Case) -> list[Reason]:
    """A group that may as well be one of those that dissolve."""
    if not case.stable or min(case.stable) < DISSOLVED:
        return []
    return _within_error(case, DISSOLVED, "dissolved-group", "a group may dissolve in bootstrap resamples")


def _within_error(case: _Case, threshold: float, code: str, what: str) -> list[Reason]:
    """Said where the stability of a group lies within its standard error of a threshold."""
    pairs = zip(case.stable, case.grouping.errors or (0.0,) * len(case.stable), strict=True)
    low, mean, error = min((mean - error, mean, error) for mean, error in pairs)
    if low >= threshold:
        return []
    figures = f"mean Jaccard {beside(mean, threshold)} ± {error:.2f}, threshold {threshold:.2f}"
    return [Reason(code, f"{what} ({figures})")]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _finer(dissolved: tuple[int, int]) -> str:
    """The groups that the dips alone leave, where some of them dissolve, or may, and were merged."""
    n_groups, lost = dissolved
    some = "one is" if lost == 1 else f"{lost} are"
    return f"of {n_groups} groups that dips separate {some} not stable in bootstrap resamples, and merged"


def _coarser(case: _Case) -> str:
    """What a merge of the groups would mend: the finest one that is stable and separated, or else separated."""
    merged, clear, n_groups = case.grouping.merged, case.grouping.thresholds.clear, case.grouping.n_groups
    if merged is not None:
        joined = _listed(
            ["+".join(case.letters[g] for g in group) for group in merged.members if len(group) > 1]
        )
        figures = (
            f"mean Jaccard {_at_least(min(merged.stable))}, separation {beside(merged.separation, clear)}"
        )
        return f"; merged to {merged.n_groups} groups ({joined} as one) all are stable ({figures})"
    if (case.valley or 0.0) >= clear:
        return ""
    for level in case.grouping.merge.path:
        if 1 < level.groups < n_groups and level.valley >= clear:
            return f"; merged to {level.groups} groups they are clearly separated ({beside(level.valley, clear)})"
    return ""


def _fair_reasons(case: _Case) -> list[Reason]:
    found, grouping, reasons = case.found, case.grouping, []
    if (case.valley or 0.0) < grouping.thresholds.clear and _separated(case):
        reasons.append(_unparted(case))
    if not case.stable:
        reasons.append(Reason("not-tested", _untested(case)))
    reasons += _unstable(case, DISSOLVED, STABLE_MIN) + _barely_stable(case)
    reasons += merged_otherwise(grouping.doubts, case.letters, grouping.thresholds)
    if grouping.dissolved is not None:
        reasons.append(Reason("finer-dissolved", _finer(grouping.dissolved)))
    if grouping.n_rows < FEW_ROWS:
        reasons.append(Reason("few-rows", f"only {grouping.n_rows:.0f} rows"))
    chosen = found.chosen
    if chosen.status not in (OK, EXACT):
        how = chosen.status.removeprefix("ok_").replace("_", " ")
        reasons.append(Reason("search-unsettled", f"the fit did not finish ({how})"))
    elif found.ended_by == "weak merge":
        text = "more components have a lower BIC, but do not merge into groups that hold"
        reasons.append(Reason("fewer-components", text))
    elif grouping.split_gain > UNSETTLED_GAIN and (grouping.regrouped or 0.0) < SAME_GROUPS:
        text = f"one more component lowers the BIC by {grouping.split_gain:.1f} and changes the groups"
        reasons.append(Reason("search-unsettled", f"the search has not converged: {text}"))
    elif not grouping.grouped.soft and chosen.n_starts_at_best < SOLID_STARTS * chosen.n_starts:
        text = f"only {chosen.n_starts_at_best} of {chosen.n_starts} starts reached the best solution"
        reasons.append(Reason("search-unsettled", text))
    return reasons


def _untested(case: _Case) -> str:
    """Why there is no stability; what is known of groups that were given is said with it."""
    if case.found.chosen.method != GIVEN:
        return "stability in bootstrap resamples was not measured"
    clear = (case.valley or 0.0) >= case.grouping.thresholds.clear
    known = f"{_parted_well(case)}; " if clear else ""
    return f"{known}the labels were given and cannot be fitted again, so their stability is not known"


def _praise(case: _Case) -> str:
    return (
        f"{_parted_well(case)}; each is recovered with mean Jaccard "
        f"{_at_least(min(case.stable))} in bootstrap resamples"
    )


def _parted_well(case: _Case) -> str:
    pair, clear = lowest(case.grouping.valleys), case.grouping.thresholds.clear
    assert pair is not None
    one, other = (case.letters[group] for group in pair)
    lowest_one = f"lowest separation {one}-{other} {beside(case.valley or 0.0, clear)}, threshold {clear:.2f}"
    return f"{case.grouping.n_groups} groups, clearly separated ({lowest_one})"
