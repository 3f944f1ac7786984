"""The rows of a run on a GPU, where that was asked for or pays."""

from __future__ import annotations

import warnings

from ilk.engines.base import Rows
from ilk.engines.devices import asked_rows, check_device
from ilk.errors import Caution, recorded
from ilk.methods import METHODS
from ilk.selection.assorted import ASSORTED

LEAST_ROWS = 65_536  # fewer are searched whole or as samples, in memory
ON_DEVICE = ("gaussian", "k-means", ASSORTED)


def rows_where_asked(rows: Rows, method: str, device: str) -> tuple[Rows, list[Caution]]:
    """The rows, and why they are not where they were asked to be."""
    check_device(device)
    if METHODS[method].name not in ON_DEVICE:
        text = f"device='cuda' was asked for, and {method} has no kernel for the GPU: the CPU does it."
        return rows, [Caution("no-gpu", text)] if device == "cuda" else []
    with warnings.catch_warnings(record=True) as made:
        warnings.simplefilter("always")
        takes = {"cells": method == ASSORTED, "gaps": METHODS[method].name == "gaussian"}
        placed = asked_rows(rows, device, **takes, least=LEAST_ROWS)
    return placed, recorded(made)
