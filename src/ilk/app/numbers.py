"""Other numbers of groups: which can be shown, and the process that makes the rest.

A first look at a kept fit takes a moment and is kept in `glance/`; the answer with its resamples follows in `k/`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ilk.analysis.other_k import kept_ks
from ilk.app.history import has_glance, has_k, k_folder, k_of, ks_of, version_folder
from ilk.app.place import Place
from ilk.app.tasks import Tasks
from ilk.errors import UsageError

PATIENCE = 300.0  # seconds that somebody waits for the whole of an answer that is shown at a glance
PAUSE = 0.05


@dataclass(frozen=True)
class Numbers:
    """The answers of runs at other K."""

    place: Place
    tasks: Tasks

    def listed(self, name: str, run: Path, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The numbers of groups that can be shown: which are there, and what BIC each had."""
        own = int(summary["chosen"]["k"])
        best: dict[int, float] = {}
        for c in summary["candidates"]:
            if c["bic"] is not None:
                best[c["k"]] = min(best.get(c["k"], c["bic"]), c["bic"])
        unmade = {k: why for task in self.tasks.all() if task.run == name for k, why in task.unmade.items()}
        return [
            {
                "k": k,
                "version": "" if k == own else f"k/{k}",
                "ready": k == own or self._ready(run, k),
                "tested": k == own or has_k(run, k),
                "bic": best.get(k),
                "why_not": unmade.get(k),
            }
            for k in ks_of(summary)
        ]

    def prepare(
        self, name: str, run: Path, summary: Mapping[str, Any], table: str | None, version: str
    ) -> None:
        """Have the fits that a run keeps looked at, and the version that is shown tested, unless that was done."""
        own, kept = int(summary["chosen"]["k"]), kept_ks(run)
        shown = k_of(version)
        first = shown if shown in kept and not has_k(run, shown) else None
        unseen = [k for k in kept if k != own and k in ks_of(summary) and not self._ready(run, k)]
        if table is None or self.tasks.works(name):
            if first is not None:
                self.tasks.want(name, first)
        elif unseen or first is not None:
            self._look_at_fits(name, run, table, first)

    @staticmethod
    def _ready(run: Path, k: int) -> bool:
        return has_k(run, k) or has_glance(run, k)

    def make(self, name: str, run: Path, k: int, table: str | None, options: Mapping[str, Any]) -> None:
        """Have an answer made: by the process that has the table, else by another."""
        if self.tasks.want(name, k) or any(
            task.about.get("k") == k and task.run == name and not task.over for task in self.tasks.all()
        ):
            return
        if table is None:
            raise UsageError("no-table", "the table of this run is not here", do="Put it into the folder")
        if k in kept_ks(run):
            self._look_at_fits(name, run, table, k)
            return
        path, to = str(self.place.table(table)), str(k_folder(run, k))
        asked = {**options, "k": k, "match_to": str(run)}
        order = {"do": "fit", "table": path, "folder": to, "options": asked, "alone": True}
        self.tasks.start(order, name, {"what": "k", "k": k}, lambda _: None)

    def _look_at_fits(self, name: str, run: Path, table: str, first: int | None) -> None:
        order = {"do": "others", "folder": str(run), "table": str(self.place.table(table)), "first": first}
        self.tasks.start(order, name, {"what": "others"}, lambda _: None)

    def whole(self, name: str, run: Path, version: str) -> Path:
        """The folder of a version; one that is there at a glance is waited for."""
        k, end = k_of(version), time.monotonic() + PATIENCE
        while k is not None and not has_k(run, k) and self.tasks.works(name) and time.monotonic() < end:
            time.sleep(PAUSE)
        return version_folder(run, version)
