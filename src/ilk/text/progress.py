"""Lines that are rewritten while a run goes on."""

from __future__ import annotations

from ilk.report.figures import seconds_text, value_text


def stage_line(stage: str, seconds: float) -> str:
    """One line while a stage of a run has nothing to report but the time."""
    return f"{stage}  {seconds_text(seconds)}"


def passes_line(done: int, what: str, best_bic: float | None, seconds: float) -> str:
    """One line that is rewritten while a search runs whose end is not known."""
    best = "" if best_bic is None else f"  best BIC {value_text(best_bic)}"
    return f"fitting  {what}  {done} passes{best}  {seconds_text(seconds)}"


def progress_line(done: int, total: int, what: str, best_bic: float | None, left: float | None) -> str:
    """One line that is rewritten while a fit runs."""
    full = 12 * done // max(1, total)
    best = "" if best_bic is None else f"  best BIC {value_text(best_bic)}"
    ahead = "" if left is None else f"  {seconds_text(left)} left"
    return f"fitting  {what}  {'█' * full}{'░' * (12 - full)} {done}/{total}{best}{ahead}"
