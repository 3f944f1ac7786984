"""What a job gives back: the groups, what they are, how far to trust them, and the model that gives new rows theirs."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ilk.cautions import STOPPED
from ilk.errors import UsageError, shown
from ilk.fitting.model import Model
from ilk.report.explanation import without_rows
from ilk.report.facts import Group
from ilk.selection.search import Candidate
from ilk.selection.verdict import Verdict
from ilk.table.block import Array
from ilk.table.ledger import Caution
from ilk.table.piecewise import PieceTable
from ilk.table.read import Table


@dataclass(frozen=True, eq=False)
class Result:
    """Groups found in a table.

    `labels` holds a group number per row of the table, larger groups first, -1 for a row that has no value in
    the columns used; `groups` tells what each group is; `candidates` is the table of all that was tried
    (`pandas.DataFrame(result.candidates)` shows it); `verdict` says how far to trust it. `probabilities` is
    None for methods that give none, for tables read in pieces, and for large tables whose run was interrupted;
    in these two cases `assign` has them. `pieces` counts the components that make the `k` groups. Where no valley
    parts the pieces there are no clear groups: `k` is 1, and labels, groups and probabilities are those of the
    pieces, slices of one cloud.
    """

    labels: Array
    probabilities: Array | None
    k: int
    components: int
    groups: tuple[Group, ...]
    candidates: tuple[Candidate, ...]
    verdict: Verdict
    warnings: tuple[Caution, ...]
    model: Model
    table: Table | PieceTable = field(repr=False)
    _summary: dict[str, Any] = field(repr=False)

    @property
    def interrupted(self) -> bool:
        return bool(self._summary["interrupted"])

    def stopped(self) -> Result:
        """The same result, said to be that of a run that was interrupted."""
        if self.interrupted:
            return self
        code, text = STOPPED
        told = {"interrupted": True, "warnings": [*self._summary["warnings"], {"code": code, "text": text}]}
        return replace(self, warnings=(*self.warnings, STOPPED), _summary={**self._summary, **told})

    def summary(self) -> dict[str, Any]:
        """Everything as one plain document, the content of `summary.json`."""
        return copy.deepcopy(self._summary)

    def report(self, path: str | os.PathLike[str], *, rows: bool = True, overwrite: bool = True) -> None:
        """Write the report, one HTML file that needs nothing else; `rows=False` leaves single rows out of it."""
        from ilk.report.page import page
        from ilk.store import write_atomically

        summary = self._summary if rows else without_rows(self._summary)
        write_atomically(path, page(summary).encode(), overwrite=overwrite)

    def _repr_html_(self) -> str:
        from ilk.report.page import fragment

        return fragment(self._summary)

    def rename(self, names: Mapping[str, str]) -> Result:
        """The same result with other names for its groups: `result.rename({"A": "large ones"})`."""
        unknown = set(names) - set(self.model.letters)
        if unknown:
            raise UsageError(
                "unknown-group",
                f"there is no group {shown(min(unknown))!r}",
                do=f"The groups are {', '.join(self.model.letters)}",
            )
        groups = tuple(replace(g, name=names.get(g.letter, g.name)) for g in self.groups)
        summary = self.summary()
        for entry in summary["groups"]:
            entry["name"] = names.get(entry["letter"], entry["name"])
        model = replace(self.model, names=tuple(g.name for g in groups))
        return replace(self, groups=groups, model=model, _summary=summary)

    def assign(self, data: Any, *, absent: str = "error") -> Any:
        """Groups of new rows; see `Model.assign`."""
        return self.model.assign(data, absent=absent)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to one file, to be read by `ilk.load`."""
        self.model.save(path, overwrite=overwrite)

    def __repr__(self) -> str:
        from ilk.layout import Surface
        from ilk.terminal import render

        return render(self._summary, Surface(width=100))
