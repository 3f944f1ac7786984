"""What has been promised, as data beside each benchmark, and whether a run kept it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.contest import Score, Setting

MEGABYTE = 1e6
ROUNDING = 1e-9  # two sums of the same numbers in another order are no better or worse than each other


@dataclass(frozen=True)
class Requirement:
    """One promise: `figure` of `contender` in `case` is at least, or at most, a bound."""

    text: str
    case: str
    contender: str
    figure: str  # a key of FIGURES
    least: float | None = None
    most: float | None = None

    def kept(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    @property
    def bound(self) -> str:
        return f">= {self.least:g}" if self.least is not None else f"<= {self.most:g}"


@dataclass(frozen=True)
class Verdict:
    requirement: Requirement
    value: float | None
    beside: str = ""  # the same figure seen another way
    full_size: bool = True  # bounds are meant for full tables

    @property
    def word(self) -> str:
        if self.value is None:
            return "not measured"
        if not self.full_size:
            return "small table"
        return "PASS" if self.requirement.kept(self.value) else "short"


def _ratio(theirs: Score, ours: Score, setting: Setting) -> tuple[float, str]:
    ratios = theirs.ratios(ours)
    beside = f"lowest {min(ratios):.2f}, of best times {theirs.best_ratio(ours):.2f}, "
    beside += f"of processor times {theirs.processor_ratio(ours):.2f}, rounds {len(ratios)}"
    if theirs.ceilings:
        beside += f"; plain hashing gained {statistics.median(theirs.ceilings):.2f}"
    return statistics.median(ratios), beside


def _ratio_per_pass(theirs: Score, ours: Score, setting: Setting) -> tuple[float, str]:
    """Processor time of one pass over that of ours."""
    assert setting.passes is not None
    assert setting.fewer_passes is not None
    milliseconds = 1e3 * ours.passes_seconds() / (setting.passes - setting.fewer_passes)
    beside = (
        f"from fits of {setting.fewer_passes} and {setting.passes} passes, rounds {len(theirs.seconds)}; "
    )
    beside += f"ours {milliseconds:.3g} ms; of whole fits {theirs.processor_ratio(ours):.2f}"
    return theirs.passes_ratio(ours), beside


def _share_of_data(theirs: Score, ours: Score, setting: Setting) -> tuple[float, str]:
    """Peak memory beyond the data and the labels returned, as a percentage of the data."""
    assert theirs.extra_bytes is not None
    assert theirs.answer is not None
    beyond = theirs.extra_bytes - theirs.answer.result_bytes
    with_labels = 100 * theirs.extra_bytes / setting.data_bytes
    return 100 * beyond / setting.data_bytes, f"{with_labels:.1f} with the labels"


def _megabytes(theirs: Score, ours: Score, setting: Setting) -> tuple[float, str]:
    assert theirs.extra_bytes is not None
    return theirs.extra_bytes / MEGABYTE, ""


def _excess(theirs: Score, ours: Score, setting: Setting) -> tuple[float, str]:
    """By how much our objective is worse than theirs, relative; below 0 where ours is better."""
    assert theirs.answer is not None
    assert ours.answer is not None
    mine, other = ours.answer.objective, theirs.answer.objective
    excess = (mine - other) / abs(other)
    return (0.0 if abs(excess) < ROUNDING else excess), f"{mine:.10g} against {other:.10g}"


FIGURES: dict[str, Callable[[Score, Score, Setting], tuple[float, str]]] = {
    "times": _ratio,
    "times per pass": _ratio_per_pass,
    "% of data": _share_of_data,
    "MB": _megabytes,
    "objective excess": _excess,
}


def judge(
    requirements: Sequence[Requirement],
    played: Mapping[str, tuple[Setting, Sequence[Score]]],
    full_size: bool,
) -> list[Verdict]:
    """The verdict on each requirement whose case was played."""
    verdicts = []
    for requirement in requirements:
        if requirement.case not in played:
            continue
        setting, scores = played[requirement.case]
        theirs = next((score for score in scores if score.name == requirement.contender), None)
        try:
            assert theirs is not None
            figure = FIGURES[requirement.figure](theirs, scores[0], setting)
            verdicts.append(Verdict(requirement, *figure, full_size))
        except (AssertionError, ValueError):  # absent, failed or not measured in this run
            verdicts.append(Verdict(requirement, None))
    return verdicts
