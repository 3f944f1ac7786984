"""The checkpoint of a run: where it is, of which run it is, and when it has done its duty."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

import ilk
from ilk import kernels
from ilk.analysis.prepare import Input
from ilk.errors import Option, UsageError
from ilk.fitting.interrupt import heard
from ilk.fitting.recall import content_of
from ilk.store import journal as journals
from ilk.store.journal import Journal, began_of, keeping
from ilk.store.objects import Unkept, key_of

if TYPE_CHECKING:
    from ilk.analysis.job import Job

FORMAT = 1
SUFFIX = ".checkpoint"
# What a run may be continued with otherwise: the pieces that are kept do not depend on it, or it is part of the table.
FREE = {
    "data",
    "callback",
    "checkpoint",
    "threads",
    "memory",
    "reading",
    "match_to",
    "weight",
    "types",
    "labels",
}


class Checkpoint:
    """Where the finished pieces of a run are kept; with `resume` those of an earlier one are used."""

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = True) -> None:
        self.path, self.resume = os.fspath(path), resume
        self.journal: Journal | None = None

    @classmethod
    def beside(cls, folder: str, *, resume: bool) -> Checkpoint:
        """The checkpoint of a run that is written to a folder."""
        return cls(os.path.normpath(folder) + SUFFIX, resume=resume)

    @property
    def began(self) -> str | None:
        """When the run began whose pieces are there; None where there are none."""
        return began_of(self.path)

    def check(self, budget: Any) -> None:
        """Refuse what cannot be continued: how far a run with a budget comes depends on the clock."""
        if budget is not None and self.resume:
            option = Option("budget", budget)
            raise UsageError(
                "checkpoint-with-budget",
                f"a run with {option} cannot be continued: it ends when its time is over",
                do="Leave out the one or the other",
                options=[option],
            )

    @contextlib.contextmanager
    def during(self, job: Job, given: Input) -> Iterator[None]:
        """Keep the pieces of what is done here; refused where the file is of another run."""
        if job.budget is not None:
            yield
            return
        self.journal = journal = Journal(self.path, lambda: about(job, given), journals.PACE)
        journal.stopped = heard
        if self.resume:
            journal.open()
        try:
            with keeping(journal):
                yield
        finally:
            journal.close()

    def done(self) -> None:
        """The answer is where it belongs."""
        if self.journal is not None:
            self.journal.remove()


def about(job: Job, given: Input) -> dict[str, Any]:
    """What has to be the same in a run that goes on where another ended."""
    options = {f.name: _name(getattr(job, f.name)) for f in fields(job) if f.name not in FREE}
    table = key_of(content_of(given.rows), given.method, [column.name for column in given.used.columns])
    return {
        "format": FORMAT,
        "began": datetime.now().isoformat(" ", "seconds"),
        "version of ilk": ilk.__version__,
        "machine": f"kernels {kernels.NAMED}, NumPy {np.__version__}",
        "options": options,
        "table": table.hex(),
    }


def _name(value: Any) -> str:
    try:
        return key_of(list(value) if isinstance(value, range) else value).hex()
    except Unkept:
        return type(value).__name__
