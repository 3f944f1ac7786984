"""Everything once, on a small table that nobody sees: so nobody waits for imports and what is made at first use."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

ROWS = 60
HEADER = "size,share,kind,day"


def rehearse(do: Callable[[Path, Path], None]) -> None:
    """Call `do` with a small table of all kinds of cells and a folder to write to; what comes of it is forgotten."""
    try:
        with tempfile.TemporaryDirectory(prefix="ilk-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder, "table.csv")
            path.write_text("\n".join([HEADER, *map(_line, range(ROWS)), ""]))
            do(path, Path(folder, "table.ilk"))
    except Exception:  # a real table says what is wrong
        return


def rehearse_fit() -> None:
    """What a fit imports and makes."""
    from ilk.analysis.job import Job
    from ilk.analysis.run import run
    from ilk.analysis.run_folder import write_all

    def fit(table: Path, folder: Path) -> None:
        write_all(run(Job(str(table))), os.fspath(folder))

    rehearse(fit)


def rehearse_look() -> None:
    """What the first look at a table imports."""
    from ilk.app.columns import look

    def seen(table: Path, folder: Path) -> None:
        del folder
        look(table, {})

    rehearse(seen)


def _line(i: int) -> str:
    side = i % 2
    return f"{9 * side + i % 7 / 10:.1f},{(i * 37) % 100}%,{'abc'[i % 3 if side else 0]},2024-0{1 + i % 9}-1{i % 8}"
