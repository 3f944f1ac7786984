"""What is imported for an answer: the packages that cost as much time as a fit wait until they are needed.

pandas is not among them: pyarrow itself imports it, where it is installed, to make a column of Python values.
"""

from __future__ import annotations

import subprocess
import sys

FIT = """
import sys
import ilk

ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9], "width": [3, 1, 2, 4, 9, 7, 8, 6.5]}, threads=1)
print(" ".join(sys.modules))
"""
LATE = ("scipy.stats", "scipy.optimize", "scipy.linalg", "scipy.sparse", "sklearn", "polars", "click")


def test_a_fit_of_numbers_imports_no_heavy_package():
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & set(LATE)
