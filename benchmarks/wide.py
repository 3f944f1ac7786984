"""Wide tables: groups in few of many columns found, beside programs that are told K; and no groups in clouds.

    python -m benchmarks.wide                                 both, seeds 100 to 104
    python -m benchmarks.wide recovery --seeds 100..119       hours; asked: ARI >= 0.9 and not weak in 18 of 20
    python -m benchmarks.wide nulls --seeds 100..139 --columns 50 300

ilk finds K; K-means, PCA + K-means, a diagonal Gaussian mixture (scikit-learn) and sparse K-means (Witten and
Tibshirani 2010, written for this comparison) are told it. Seconds are those of one processor.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

import ilk
from benchmarks.contest import Array
from benchmarks.made_wide import CLOUDS, Made, amid_factors, binary, cloud, mixed, numeric
from benchmarks.peers import one_thread
from ilk.measures import ari

RECOVERY: dict[str, Callable[[int], Made]] = {
    "150 x 300, 5 tell": numeric,
    "200 x 2000, 10 tell": partial(numeric, n=200, d=2000, q=10),
    "100 x 1000, 20 tell, 6 sd": partial(numeric, n=100, d=1000, q=20, apart=6.0),
    "binary 300 x 200, K 2": binary,
    "binary 300 x 200, K 3": partial(binary, k=3),
    "mixed 300 x 200, K 3": mixed,
}
FURTHER: dict[str, Callable[[int], Made]] = {
    "300 x 300, 10 tell, K 5": partial(numeric, n=300, q=10, k=5),
    "amid factors 150 x 300": amid_factors,
    "amid factors 300 x 300": partial(amid_factors, n=300),
}
RIGHT = 0.9  # ARI
SPARSE_SIZES = (1.5, 3.0, 6.0, 10.0)  # bounds on the weights of sparse K-means
SPARSE_CELLS = 250_000  # of a larger table sparse K-means takes too long
N_PERMUTED = 2


@dataclass(frozen=True)
class Seen:
    """What ilk said of one table."""

    k: int
    word: str
    ari: float
    seconds: float
    separation: float | None
    stability: float | None

    @classmethod
    def of(cls, made: Made, seed: int) -> Seen:
        began = time.process_time()
        result = ilk.cluster(made.table, threads=1, seed=seed)
        seconds = time.process_time() - began
        score = ari(made.group, result.labels) if result.k > 1 else 0.0
        verdict = result.verdict
        return cls(result.k, verdict.word, score, seconds, verdict.separation, verdict.stability_mean)

    @property
    def claims(self) -> bool:
        """Whether groups are claimed."""
        return self.k > 1 and self.word != "weak"

    def told(self) -> str:
        figures = [("separation", self.separation), ("stability", self.stability)]
        more = "".join(f", {name} {value:.2f}" for name, value in figures if value is not None)
        return f"K {self.k} {self.word}, ARI {self.ari:.3f}{more}, {self.seconds:.1f} s"


def peers(made: Made, seed: int) -> dict[str, float]:
    """ARI of programs that are told K."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    points, k = made.standardised, int(made.group.max()) + 1
    leading = PCA(min(10, k + 2), random_state=seed).fit_transform(points)
    diagonal = GaussianMixture(k, covariance_type="diag", n_init=2, reg_covar=1e-3, random_state=seed)
    labels = {
        "K-means": KMeans(k, n_init=10, random_state=seed).fit_predict(points),
        "PCA + K-means": KMeans(k, n_init=10, random_state=seed).fit_predict(leading),
        "diagonal GMM": diagonal.fit_predict(points),
    }
    if points.size <= SPARSE_CELLS:
        labels["sparse K-means"] = sparse_k_means(points, k, seed)
    return {name: ari(made.group, label) for name, label in labels.items()}


def sparse_k_means(points: Array, k: int, seed: int) -> Array:
    """K-means with column weights of norm 1 and bounded sum, the bound by the gap to permuted columns."""
    draws = np.random.default_rng(seed)
    permuted = [np.column_stack([draws.permutation(c) for c in points.T]) for _ in range(N_PERMUTED)]
    best, label = -np.inf, np.zeros(len(points), dtype=int)
    for size in SPARSE_SIZES:
        found, between = _sparse_run(points, k, size, seed)
        beside = np.mean([np.log(_sparse_run(other, k, size, seed)[1]) for other in permuted])
        if np.log(between) - beside > best:
            best, label = float(np.log(between) - beside), found
    return label


def _sparse_run(points: Array, k: int, size: float, seed: int, rounds: int = 10) -> tuple[Array, float]:
    from sklearn.cluster import KMeans

    weight = np.full(points.shape[1], points.shape[1] ** -0.5)
    label, between = np.zeros(len(points), dtype=int), np.zeros(points.shape[1])
    for number in range(rounds):
        kept = weight > 0
        scaled = points[:, kept] * np.sqrt(weight[kept])
        centres = np.array([scaled[label == g].mean(axis=0) for g in range(k)]) if number else "k-means++"
        moved = KMeans(k, init=centres, n_init=1 if number else 3, random_state=seed).fit_predict(scaled)
        if len(np.unique(moved)) < k or (number and (moved == label).all()):
            break
        label = moved
        means = [points[label == g].mean(axis=0) for g in range(k)]
        between = sum((label == g).sum() * mean**2 for g, mean in enumerate(means))
        weight = _bounded(between, size)
    return label, max(float(weight @ between), 1e-9)


def _bounded(between: Array, size: float) -> Array:
    """Weights of norm 1 whose sum is at most `size`, by a soft threshold found by halving."""
    low, high = 0.0, float(between.max())
    for _ in range(40):
        middle = (low + high) / 2
        left = np.maximum(between - middle, 0)
        low, high = (middle, high) if left.sum() > size * np.linalg.norm(left) > 0 else (low, middle)
    left = np.maximum(between - low, 0)
    return np.asarray(left / max(float(np.linalg.norm(left)), 1e-12))


def recovery(seeds: Sequence[int], kinds: dict[str, Callable[[int], Made]], beside: bool) -> None:
    for name, make in kinds.items():
        seen, others = [], []
        for seed in seeds:
            made = make(seed)
            seen.append(Seen.of(made, seed))
            others.append(peers(made, seed) if beside else {})
            print(f"{name}, seed {seed}: {seen[-1].told()}", flush=True)
        n, k = len(seen), int(make(seeds[0]).group.max()) + 1
        found, kept = sum(one.ari >= RIGHT for one in seen), sum(one.claims for one in seen)
        mean = f"ARI {np.mean([one.ari for one in seen]):.3f}, >= {RIGHT} in {found} of {n}"
        cpu = f"{np.mean([one.seconds for one in seen]):.1f} s"
        print(f"# {name}: ilk {mean}, K right {sum(one.k == k for one in seen)}, not weak {kept}, {cpu}")
        for peer in others[0]:
            scores = [other[peer] for other in others]
            print(f"#   {peer} {np.mean(scores):.3f}, >= {RIGHT} in {sum(s >= RIGHT for s in scores)} of {n}")


def nulls(seeds: Sequence[int], columns: Sequence[int], kinds: Sequence[str]) -> None:
    for d in columns:
        for kind in kinds:
            seen = [Seen.of(cloud(kind, seed, d=d), seed) for seed in seeds]
            for seed, one in zip(seeds, seen, strict=True):
                if one.k > 1:
                    print(f"{kind} {d}, seed {seed}: {one.told()}")
            right, words = sum(not one.claims for one in seen), Counter(one.word for one in seen if one.k > 1)
            ones, cpu = sum(one.k == 1 for one in seen), np.mean([one.seconds for one in seen])
            told = f"{right} of {len(seen)} K = 1 or weak ({ones} K = 1), solid {words['solid']}"
            print(f"# {kind} 150 x {d}: {told}, {cpu:.1f} s", flush=True)


def _range(text: str) -> range:
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("recovery", "further", "nulls"))
    parser.add_argument("--seeds", type=_range, default=range(100, 105), help="first..last")
    parser.add_argument("--columns", type=int, nargs="+", default=[50, 300], help="of the clouds")
    parser.add_argument("--kinds", nargs="+", help="only kinds whose name begins so")
    parser.add_argument("--alone", action="store_true", help="without the other programs")
    chosen = parser.parse_args(arguments)
    begins = tuple(chosen.kinds or ("",))
    with one_thread():
        if chosen.what != "nulls":
            made = FURTHER if chosen.what == "further" else RECOVERY
            kinds = {name: make for name, make in made.items() if name.startswith(begins)}
            recovery(chosen.seeds, kinds, not chosen.alone)
        if chosen.what in (None, "nulls"):
            nulls(chosen.seeds, chosen.columns, [kind for kind in CLOUDS if kind.startswith(begins)])


if __name__ == "__main__":
    main()
