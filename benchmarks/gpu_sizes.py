"""From which size on a GPU pays: whole fits from host memory there and on the CPU, `python -m benchmarks.gpu_sizes`.

Each fit runs twice on either side and the faster one counts, so that kernels are compiled. What `device="auto"` goes by
(`ilk.engines.devices`) is read from what this prints; powers of two may be given, as in `benchmarks.gpu_sizes 24 26`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import ilk

COLUMNS = 16
STUDENTS_UP_TO = 22  # as a power of two, of cells: the CPU takes seconds there
ONE: dict[str, Any] = {"random_state": 0, "n_init": 1}
MODELS: dict[str, Callable[[str], Any]] = {
    "KMeans(10)": lambda device: ilk.KMeans(10, device=device, **ONE),
    "KMeans(100)": lambda device: ilk.KMeans(100, max_iter=50, device=device, **ONE),
    "VVV(8)": lambda device: ilk.GaussianMixture(8, max_iter=30, device=device, **ONE),
    "VVI(8)": lambda device: ilk.GaussianMixture(8, structure="VVI", max_iter=30, device=device, **ONE),
}
STUDENT: dict[str, Callable[[str], Any]] = {
    "Student(4)": lambda device: ilk.StudentMixture(4, max_iter=10, device=device, **ONE)
}
HOLES: dict[str, Callable[[str], Any]] = {
    "VVI(8) with holes": lambda device: ilk.GaussianMixture(
        8, structure="VVI", max_iter=20, device=device, **ONE
    ),
    "VVV(8) with holes": lambda device: ilk.GaussianMixture(8, max_iter=20, device=device, **ONE),
}


def table(n: int) -> Any:
    """Twenty groups of float32 numbers."""
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(20, COLUMNS)) * 3
    return (centres[draw.integers(0, 20, n)] + draw.normal(size=(n, COLUMNS))).astype(np.float32)


def holed(x: Any, share: float = 0.002) -> Any:
    """A few cells missing: three rows in a hundred are incomplete."""
    x = x.copy()
    x[np.random.default_rng(1).random(x.shape) < share] = np.nan
    return x


def seconds(make: Callable[[str], Any], device: str, data: Any) -> tuple[float, Any]:
    """The faster of two fits."""
    best, model = np.inf, None
    for _ in range(2):
        begun = time.perf_counter()
        model = make(device).fit(data)
        best = min(best, time.perf_counter() - begun)
    return best, model


def compared(what: str, models: dict[str, Callable[[str], Any]], data: Any) -> None:
    """One line: seconds on the card / on the CPU, and the share of labels that agree."""
    told = [what]
    for name, make in models.items():
        (there, one), (here, other) = seconds(make, "cuda", data), seconds(make, "cpu", data)
        alike = float((one.labels_ == other.labels_).mean())
        told.append(f"{name} {there:.2f} / {here:.2f} s, alike {alike:.6f}")
    print("; ".join(told), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for power in [int(each) for each in sys.argv[1:]] or [18, 20, 22, 24, 26, 28]:
        x = table((1 << power) // COLUMNS)
        students = STUDENT if power <= STUDENTS_UP_TO else {}
        compared(f"2^{power} cells", MODELS | students, x)
        if power == STUDENTS_UP_TO:
            compared(f"2^{power} cells", HOLES, holed(x))
