"""What a user knows of rows and pairs of rows, as the estimators take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.engines.memory import MemoryRows
from ilk.errors import ResourceError, UsageError
from ilk.fitting.constraints import Constraints, constraints_of
from ilk.measures.labels import codes_of
from ilk.table.block import Array

NAMES = "known, must_link and cannot_link"


@dataclass(frozen=True, eq=False)
class Facts:
    """Labels of some rows, and pairs of rows that are together or apart."""

    known: Any
    must_link: Any
    cannot_link: Any

    @property
    def nothing(self) -> bool:
        return all(given is None for given in (self.known, self.must_link, self.cannot_link))

    def need(self, estimator: Any, **usual: Any) -> None:
        """A refusal of options that have no meaning under constraints."""
        if not isinstance(estimator.init, str):
            raise UsageError(
                "not-with-constraints",
                f"init is no name of a start, and {NAMES} have starts of their own",
                do="Leave init out, or name a start",
            )
        for name, value in usual.items():
            given = getattr(estimator, name)
            if given != value:
                raise UsageError(
                    "not-with-constraints",
                    f"{name}={given!r} cannot be kept together with {NAMES}",
                    do=f"Use {name}={value!r}",
                )

    def of(self, rows: Rows, k: int) -> tuple[MemoryRows, Constraints]:
        """The rows in memory and what is known of them, checked."""
        if not isinstance(rows, MemoryRows):
            raise ResourceError(
                "not-in-memory",
                f"{NAMES} need all rows in memory, and the table is larger or elsewhere",
                do="Give a sample of the rows",
            )
        return rows, constraints_of(rows.n_rows, k, self.must_link, self.cannot_link, self.known)

    def of_groups(self, labels: Array, n_groups: int) -> tuple[Any, ...]:
        """The label that was known of rows of each group."""
        if self.known is None:
            return (None,) * n_groups
        codes, levels = codes_of(self.known, "known")
        made: list[Any] = [None] * n_groups
        for row in np.flatnonzero(codes >= 0):
            level = levels[codes[row]]
            if not (isinstance(level, (int, float)) and level == -1):
                made[labels[row]] = level
        return tuple(made)
