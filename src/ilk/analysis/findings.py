"""What a run has found: the pieces of the answer, as they were when each was made."""

from __future__ import annotations

from dataclasses import dataclass

from ilk.analysis.job import Job
from ilk.analysis.prepare import Input, Seen
from ilk.errors import Caution
from ilk.fitting.deadline import Deadline
from ilk.model.model import Model
from ilk.selection.candidates import Search
from ilk.selection.grouping import Grouping


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """What a run has found, of which the answer is made."""

    job: Job
    given: Input
    seen: Seen
    search: Search
    grouping: Grouping
    notes: tuple[Caution, ...]
    earlier: Model | None  # whose letters and names go to the groups that correspond
    clock: Deadline  # since the run began
    search_seconds: float
