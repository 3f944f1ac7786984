"""Where the tables and the figures of other programs are; tests are skipped where they are not."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parents[3] / "shared" / "data"


def golden(name: str) -> dict:
    path = DATA / "golden" / f"{name}.json"
    if not path.exists():
        pytest.skip("the reference figures are not part of this repository")
    return json.loads(path.read_text())


@cache
def table(name: str) -> tuple[np.ndarray, list[str] | None]:
    """Numeric columns and the class column, if there is one."""
    path = DATA / "tables" / f"{name}.csv"
    if not path.exists():
        pytest.skip("the reference tables are under other licences (GPL) and not part of this repository")
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file))
    has_target = header[-1] == "target"
    truth = [row[-1] for row in rows] if has_target else None
    return np.array([[float(c) for c in (row[:-1] if has_target else row)] for row in rows]), truth
