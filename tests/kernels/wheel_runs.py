"""What an installed wheel must do anywhere: `python wheel_runs.py [--compiled]`, without pytest or the source.

Prints the kernels it runs on, where they lie, and the groups of the bundled table.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import ilk
from ilk import kernels


def main() -> None:
    if "--compiled" in sys.argv and not kernels.COMPILED:
        sys.exit("the kernels of this wheel are not compiled")
    table = Path(ilk.__file__).parent / "data" / "penguins.csv"
    result = ilk.cluster(str(table), method="k-means", k=3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ilk"
        result.save(path)
        placed = ilk.load(path).assign(str(table))
        result.report(Path(folder) / "report.html")
    assert len(placed["group"]) == 344
    print(kernels.INSTRUCTIONS, Path(kernels.__file__).parent, len(result.groups))


if __name__ == "__main__":
    main()
