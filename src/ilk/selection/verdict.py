"""How far the groups can be trusted, in one word with its reasons.

What is measured now: the BIC margin against one group, the mean silhouette, and how many starts reached the
best optimum. These say how sharp and how settled the groups are. They do not prove that a table is more than
one cloud: BIC and silhouette both split a single skewed cloud. The valley between groups and the return of
groups in resamples, which do tell, replace this rule when mixtures arrive.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from ilk.selection.search import Search

Word = Literal["solid", "fair", "weak"]

WEAK_MARGIN = 10.0  # BIC over one group: below, the evidence is not strong (Kass and Raftery 1995)
SOLID_SILHOUETTE = 0.50  # Kaufman and Rousseeuw 1990: from 0.51 a reasonable structure,
WEAK_SILHOUETTE = 0.25  # up to 0.25 no substantial one
SOLID_SURE = 0.85  # mean probability of the rows' own groups, for methods that give one
WEAK_SURE = 0.70
SOLID_STARTS = 0.20  # share of the starts that must reach the best optimum for the search to count as settled
FEW_ROWS = 30


@dataclass(frozen=True)
class Reason:
    """Why the word is not better (or why it is good): a stable code and the finding with its figures."""

    code: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """`word` is "solid", "fair" or "weak"; one group is "weak" with the reason `one_group`."""

    word: Word
    reasons: tuple[Reason, ...]
    figures: dict[str, float | None]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(found: Search, sure: float | None = None) -> Verdict:
    """The worst of three measurements; a word is solid only where all three are.

    `sure` is the mean probability of the rows' own groups; where a method gives it, it stands in for the
    silhouette, which knows round groups only.
    """
    chosen = found.chosen
    margin, rival = found.margin(found.single), found.margin(found.runner_up)
    starts = chosen.n_starts_at_best / chosen.n_starts if chosen.n_starts else None
    figures = {
        "bic_margin_to_one_group": margin,
        "bic_margin_to_runner_up": rival,
        "silhouette": chosen.silhouette,
        "sure": sure,
        "share_of_starts_at_best": starts,
    }
    if len(found.fit.size) == 1:
        return Verdict("weak", (_one_group(found),), figures)
    weak, fair = _weak_reasons(found, margin), _fair_reasons(found, starts)
    if sure is None:
        weak, fair = weak + _blunt(chosen.silhouette), _half_sharp(chosen.silhouette) + fair
        good = Reason(
            "sharp",
            f"silhouette {beside(chosen.silhouette or 0, SOLID_SILHOUETTE)} ({SOLID_SILHOUETTE} needed)",
        )
    else:
        weak, fair = weak + _unsure(sure, WEAK_SURE, 0.0), _unsure(sure, SOLID_SURE, WEAK_SURE) + fair
        good = Reason(
            "sure", f"rows belong to their groups with probability {beside(sure, SOLID_SURE)} on average"
        )
    word: Word = "weak" if weak else "fair" if fair else "solid"
    return Verdict(word, tuple(weak + fair) or (good,), figures)


def beside(value: float, *thresholds: float) -> str:
    """Two decimals, three where a threshold would hide in the rounding.

    >>> beside(0.42, 0.5), beside(0.248, 0.25)
    ('0.42', '0.248')
    """
    hidden = any(round(value, 2) == threshold != value for threshold in thresholds)
    return f"{value:.3f}" if hidden else f"{value:.2f}"


def _one_group(found: Search) -> Reason:
    tried = {c.k for c in found.candidates if c.bic is not None}
    if tried == {1}:
        return Reason("one_group", "no other number of groups was tried")
    gain = found.margin(found.runner_up)
    text = "" if gain is None else f": two or more groups raise the BIC by at least {gain:.0f}"
    return Reason("one_group", "one cloud explains the table best" + text)


def _weak_reasons(found: Search, margin: float | None) -> list[Reason]:
    reasons = []
    if margin is not None and margin < WEAK_MARGIN:
        reasons.append(
            Reason(
                "bic_near_one_group",
                f"BIC is only {margin:.1f} better than one group ({WEAK_MARGIN:.0f} needed)",
            )
        )
    return reasons


def _blunt(silhouette: float | None) -> list[Reason]:
    if silhouette is None or silhouette >= WEAK_SILHOUETTE:
        return []
    text = f"the groups run into each other: silhouette {beside(silhouette, WEAK_SILHOUETTE)}"
    return [Reason("not_sharp", f"{text} ({WEAK_SILHOUETTE} needed, {SOLID_SILHOUETTE} for solid)")]


def _half_sharp(silhouette: float | None) -> list[Reason]:
    if silhouette is None:
        return [Reason("not_measured", "the silhouette could not be measured")]
    if not WEAK_SILHOUETTE <= silhouette < SOLID_SILHOUETTE:
        return []
    text = f"borders are not sharp: silhouette {beside(silhouette, SOLID_SILHOUETTE)}"
    return [Reason("half_sharp", f"{text} ({SOLID_SILHOUETTE} for solid)")]


def _unsure(sure: float, needed: float, least: float) -> list[Reason]:
    if not least <= sure < needed:
        return []
    text = f"rows belong to their groups with probability {beside(sure, needed)} on average"
    return [Reason("not_sure", f"{text} ({needed} needed)")]


def _fair_reasons(found: Search, starts: float | None) -> list[Reason]:
    chosen, reasons = found.chosen, []
    if starts is not None and starts < SOLID_STARTS:
        reasons.append(
            Reason(
                "search_unsettled",
                f"best optimum found in {chosen.n_starts_at_best} of {chosen.n_starts} starts",
            )
        )
    if found.fit.n_rows < FEW_ROWS:
        reasons.append(Reason("few_rows", f"{found.fit.n_rows} rows are few"))
    if chosen.status != "ok" and chosen.status != "ok_exact":
        reasons.append(
            Reason(
                "search_unsettled",
                f"the fit did not run to its end ({chosen.status.removeprefix('ok_').replace('_', ' ')})",
            )
        )
    return reasons
