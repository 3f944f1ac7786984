"""One cell of a search over covariance structures and K."""

from __future__ import annotations

from dataclasses import dataclass

from ilk.families.covariance import Structure
from ilk.families.gaussian import Gaussian
from ilk.fitting.loop import FEWER_DISTINCT_ROWS, INTERRUPTED, OK, PASS_LIMIT, TIME_LIMIT, Run
from ilk.fitting.mixture import best_run


@dataclass
class GridCell:
    """One structure at one K: its runs, best first once they have ended."""

    structure: Structure
    k: int
    family: Gaussian
    runs: list[Run]
    seconds: float = 0.0

    @property
    def best(self) -> Run:
        return best_run(self.runs)

    @property
    def fits(self) -> bool:
        """Whether a run ended in an answer; a table with fewer distinct rows than K may have no start."""
        return bool(self.runs) and self.best.status == OK

    @property
    def status(self) -> str:
        """Of the best run that is an answer, else the commonest failure."""
        if not self.runs:
            return FEWER_DISTINCT_ROWS
        best = self.best
        if best.status == OK:
            limits = {
                PASS_LIMIT: "ok_iteration_limit",
                TIME_LIMIT: "ok_time_limit",
                INTERRUPTED: "ok_interrupted",
            }
            return limits.get(best.reason, OK)
        failures = [run.status for run in self.runs]
        return max(set(failures), key=failures.count)
