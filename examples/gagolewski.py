"""Twenty-four sets of the benchmark suite of Gagolewski with known answers: what ilk reaches beside published figures.

K given: mean ARI of ilk's K-means and Gaussian mixtures beside the published columns of scikit-learn and mclust, and
of the other paradigms. K found: `ilk.cluster(method="auto")`. By the protocol of the suite, rows of label 0 (noise) are
left out of the score, and where a set has several reference labels of one K the best counts.
The sets are for research and not part of this project: without ../shared/data beside the checkout nothing is run.
Run it with `python examples/gagolewski.py`, or with names of sets.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import ilk
from ilk.measures import ari

SUITE = Path(__file__).parents[2] / "shared" / "data" / "gagolewski"
PUBLISHED = {"K-means": "sklearn_kmeans", "Gaussian mixtures": "sklearn_gm"}
FEW_ROWS = 3_100  # beyond, methods that compare all pairs of rows are left out of a quick run
Labels = np.ndarray


def k_means(X: np.ndarray, k: int) -> Labels:
    return ilk.KMeans(k, n_init=30, random_state=0).fit(X).labels_


def mixture(X: np.ndarray, k: int) -> Labels:
    """The structure of the lowest BIC with K components, as mclust does it."""
    found = ilk.select(X, k=k, seed=0, thorough=False)
    return found.fit.labels


def full_mixture(X: np.ndarray, k: int) -> Labels:
    return ilk.GaussianMixture(k, random_state=0).fit(X).labels_


def spectral(X: np.ndarray, k: int) -> Labels:
    return ilk.SpectralClustering(k, random_state=0).fit(X).labels_


def typical(X: np.ndarray, k: int) -> Labels:
    return ilk.TypicalCuts(k, random_state=0).fit(X).labels_


def linked(linkage: str) -> Callable[[np.ndarray, int], Labels]:
    return lambda X, k: ilk.HierarchicalClustering(k, linkage=linkage).fit(X).labels_


METHODS: dict[str, Callable[[np.ndarray, int], Labels]] = {
    "K-means": k_means,
    "Gaussian mixtures": mixture,
    "full covariances": full_mixture,
    "spectral": spectral,
    "typical cuts": typical,
    "average linkage": linked("average"),
    "Ward linkage": linked("ward"),
    "single linkage": linked("single"),
}


def read_set(name: str) -> tuple[np.ndarray, dict[str, Labels]]:
    """The columns, and every reference label."""
    with (SUITE / "data" / f"{name}.csv").open(newline="") as file:
        header, *lines = list(csv.reader(file))
    cells = np.array(lines, dtype=np.float64)
    named = [j for j, column in enumerate(header) if column.startswith("label")]
    return np.delete(cells, named, axis=1), {header[j]: cells[:, j].astype(int) for j in named}


def score(labels: Labels, references: Iterable[Labels]) -> float:
    """The best ARI over the references, noise left out."""
    return max(float(ari(truth[truth > 0], labels[truth > 0])) for truth in references)


def by_k(references: dict[str, Labels]) -> dict[int, list[Labels]]:
    made: dict[int, list[Labels]] = {}
    for truth in references.values():
        made.setdefault(int(truth.max()), []).append(truth)
    return made


def published(file: str, column: str, value: str) -> dict[tuple[str, int], float]:
    """The best published ARI of each set and K."""
    found: dict[tuple[str, int], float] = {}
    with (SUITE / file).open(newline="") as lines:
        for line in csv.DictReader(lines):
            if line[column] == value and line["ari"] not in ("", "NA"):
                key = (line["dataset"], int(line["k"]))
                found[key] = max(found.get(key, -1.0), float(line["ari"]))
    return found


def main(names: list[str]) -> None:
    if not SUITE.exists():
        print("the sets of the suite are absent (../shared/data/gagolewski), so there is nothing to run")
        return
    warnings.simplefilter("ignore")
    names = names or sorted(path.stem for path in (SUITE / "data").glob("*.csv"))
    theirs = {
        "scikit-learn K-means": published("published_scores.csv", "method", PUBLISHED["K-means"]),
        "scikit-learn mixtures": published("published_scores.csv", "method", PUBLISHED["Gaussian mixtures"]),
        "mclust, G given": published("mclust_scores.csv", "how", "G given"),
    }
    ours: dict[str, dict[tuple[str, int], float]] = {method: {} for method in METHODS}
    found: dict[tuple[str, int], float] = {}
    print(
        f"{'set':<24}{'K':>3}  {'found':>5}  " + "  ".join(f"{name[:14]:>14}" for name in ("auto", *METHODS))
    )
    for name in names:
        X, references = read_set(name)
        auto = ilk.cluster(X, scale=None, seed=0, truth=None)
        for k, truths in by_k(references).items():
            key = (name, k)
            found[key] = score(auto.labels, references.values())
            cells = [f"{found[key]:14.3f}"]
            for method, cluster in METHODS.items():
                if len(X) <= FEW_ROWS or method in ("K-means", "Gaussian mixtures", "full covariances"):
                    ours[method][key] = score(cluster(X, k), truths)
                cells.append(f"{ours[method][key]:14.3f}" if key in ours[method] else f"{'-':>14}")
            print(f"{name:<24}{k:>3}  {auto.k:>5}  " + "  ".join(cells), flush=True)
    keys = sorted(found)
    print(f"\nmean ARI over {len(keys)} pairs of set and K")
    for title, values in {**theirs, **{f"ilk {name}": value for name, value in ours.items()}}.items():
        known = [values[key] for key in keys if key in values]
        told = "" if len(known) == len(keys) else f" ({len(known)} pairs)"
        print(f"  {title:<28}{np.mean(known):8.4f}{told}")
    print(f"  {'ilk auto, K found':<28}{np.mean([found[key] for key in keys]):8.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
