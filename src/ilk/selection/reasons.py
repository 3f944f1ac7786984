"""Why the word of a verdict is not better, in words: the reasons that merges and memberships give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ilk.selection.doubts import Doubts
from ilk.selection.valley import Thresholds


@dataclass(frozen=True)
class Reason:
    """Why the word is not better: a stable code and the finding with its figures."""

    code: str
    text: str


def beside(value: float, *thresholds: float) -> str:
    """Two decimals, three where a threshold would hide in the rounding.

    >>> beside(0.42, 0.5), beside(0.248, 0.25)
    ('0.42', '0.248')
    """
    hidden = any(round(value, 2) == threshold != value for threshold in thresholds)
    return f"{value:.3f}" if hidden else f"{value:.2f}"


def separation_figures(separation: float, threshold: float) -> str:
    return f"(separation {beside(separation, threshold)}, threshold {threshold:.2f})"


def finer_groups(doubts: Doubts, letters: Sequence[str], thresholds: Thresholds) -> list[Reason]:
    """A larger number of groups that is as stable."""
    if (finer := doubts.finer) is None:
        return []
    figures = separation_figures(finer.separation, thresholds.merge)
    text = (
        f"{letters[finer.group]} may be several groups: no density dip separates its components {figures}, "
        f"but as {finer.n_groups} groups in all they are recovered with mean Jaccard {finer.stability:.2f} or more"
    )
    return [Reason("finer-groups", text)]


def overlap(doubts: Doubts, threshold: float) -> list[Reason]:
    """Labels that by the memberships of the model itself agree less than this with the groups that they stand for."""
    if doubts.agreement is None or doubts.agreement >= threshold:
        return []
    figures = f"expected adjusted Rand index {beside(doubts.agreement, threshold)}, threshold {threshold:.2f}"
    return [Reason("overlap", f"the groups overlap: some rows could be of either ({figures})")]


def torn_between(doubts: Doubts, letters: Sequence[str]) -> list[Reason]:
    """Rows of a group that dissolved and might as well have been merged with another one."""
    if (found := doubts.torn) is None:
        return []
    one, other = letters[found.group], letters[found.other]
    figures = f"separation {found.own:.2f} from the rest of {one}, {found.away:.2f} from {other}"
    return [Reason("between-groups", f"{found.n_rows:.0f} rows of {one} may be of {other} ({figures})")]


def merged_otherwise(doubts: Doubts, letters: Sequence[str], thresholds: Thresholds) -> list[Reason]:
    """Components that could as well be of another group."""
    if (found := doubts.between) is None:
        return []
    one, other = letters[found.group], letters[found.other]
    figures = separation_figures(found.separation, thresholds.merge)
    return [
        Reason(
            "between-groups",
            f"a component of {one} is not separated from {other} either {figures}: its rows may be of both",
        )
    ]
