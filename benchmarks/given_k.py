"""Agreement with the known classes of the shared tables where their number is given, before and after a change.

python -m benchmarks.given_k
python -m benchmarks.given_k --before FOLDER/src     the `src` folder of another checkout, with its compiled kernels
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def serve(source: Path) -> None:
    """The agreement on each table with the ilk of a source folder, as one line."""
    if source != ROOT / "src":  # an editable install of this checkout would come first
        sys.meta_path[:] = [finder for finder in sys.meta_path if "_editable" not in type(finder).__module__]
    import ilk
    from benchmarks.calibration import real, score

    assert Path(ilk.__file__).is_relative_to(source), f"{ilk.__file__} is not that of {source}"
    found = {}
    for _, name, ((path, ignored), truth) in real():
        assert truth is not None
        classes = np.unique(np.atleast_2d(truth)[0])
        labels = ilk.cluster(path, k=int((classes > 0).sum()), ignore=ignored, threads=1).labels
        found[name] = score(labels, truth)
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve)
        return
    sources = [*([chosen.before.resolve()] if chosen.before else []), ROOT / "src"]
    found = []
    for source in sources:
        paths = f"{source}{os.pathsep}{ROOT}"
        environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.given_k", "--serve", str(source)]
        told = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
        found.append(json.loads(told.stdout.splitlines()[-1]))
    for name in found[-1]:
        print(f"{name:28}", "  ->  ".join(f"{each[name]:.3f}" for each in found))
    print(
        f"mean of {len(found[-1])} tables".ljust(28),
        "  ->  ".join(f"{np.mean([*each.values()]):.4f}" for each in found),
    )


if __name__ == "__main__":
    main()
