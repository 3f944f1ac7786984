"""The folder of a run, read back: its model, its summary, its assignments, each a plain file."""

from __future__ import annotations

import os
import stat
from typing import Any

from ilk.errors import ModelFileError, UsageError, shown
from ilk.model.file import read_model
from ilk.model.model import Model
from ilk.report.reading import read_summary

MODEL, SUMMARY, REPORT, FITS = "model.ilk", "summary.json", "report.html", "fits.ilk"
ASSIGNMENTS = ("assignments.csv", "assignments.parquet")


def find_model(run: str) -> Model:
    """The model of a run: a folder, or the model file itself."""
    inside = os.path.isdir(run)
    path = os.path.join(run, MODEL) if inside else run
    if not os.path.lexists(path) and os.access(os.path.dirname(path) or ".", os.X_OK):
        raise UsageError(
            "no-run",
            f"there is no run or model file {shown(run, 120)}",
            do="Give a folder that ilk fit wrote, or a model file",
        )
    return read_model(path, follow=not inside)


def find_assignments(run: str) -> str:
    """The assignments file of a run folder: a plain file, since ilk writes no other."""
    for name in ASSIGNMENTS:
        path = os.path.join(run, name)
        if os.path.lexists(path):
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise no_assignments(path, "the assignments of the run are not a plain file")
            return path
    raise UsageError("no-run", f"{shown(run, 120)} has no assignments", do="Fit without --no-rows first")


def no_assignments(path: str, what: str) -> ModelFileError:
    return ModelFileError("not-assignments", what, where=shown(path, 200), do="Fit the table again")


def find_summary(run: str) -> dict[str, Any]:
    """The summary of a run folder."""
    inside = os.path.isdir(run)
    path = os.path.join(run, SUMMARY) if inside else run
    return read_summary(path, follow=not inside)
