"""All benchmarks by name, in the order in which they run."""

from __future__ import annotations

from benchmarks.contest import Benchmark
from benchmarks.kmeans import KMEANS
from benchmarks.mixed import MIXED
from benchmarks.mixture import MIXTURE
from benchmarks.seeding import SEEDING
from benchmarks.selection import SELECTION
from benchmarks.silhouette import SILHOUETTE
from benchmarks.sparse import SPARSE

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark
    for benchmark in (KMEANS, SPARSE, SEEDING, SILHOUETTE, MIXTURE, SELECTION, MIXED)
}
