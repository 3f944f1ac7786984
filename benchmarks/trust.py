"""How the rule for K and the verdict do on tables with known answers; counts are printed, cell by cell.

    python -m benchmarks.trust nulls --seeds 100 --rows 100 1000 --columns 2 5 20
    python -m benchmarks.trust groups --seeds 100 --delta 4 6
    python -m benchmarks.trust outliers --seeds 40 --delta 4 6
    python -m benchmarks.trust mixed --seeds 40

Nulls are single clouds: right is one group, or a weak verdict. Groups have their nearest two centres `delta`
standard deviations apart (Mahalanobis, mean of the two covariances).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

import ilk
from benchmarks.made import CLAIMS, CLOUDS, MIXED_CLOUDS, mixed_cloud, mixed_parted, parted, strewn
from ilk.measures import ari


def run_nulls(seeds: range, rows: list[int], columns: list[int], clouds: list[str]) -> Iterator[str]:
    for name in clouds:
        for n in rows:
            for d in columns:
                began, one, weak, split, solid = time.process_time(), 0, 0, 0, 0
                for seed in seeds:
                    result = ilk.cluster(CLOUDS[name](np.random.default_rng([seed, n, d]), n, d), threads=1)
                    one += result.k == 1
                    split += result.components > 1
                    weak += result.verdict.word not in CLAIMS
                    solid += result.verdict.word == "solid"
                yield (
                    f"null {name:<21} n {n:>5} d {d:>2}: weak {weak:>3} of {len(seeds)}, K = 1 {one:>3}, BIC "
                    f"K > 1 {split:>3}, solid {solid}  {(time.process_time() - began) / len(seeds):.2f} s each"
                )


def run_groups(seeds: range, deltas: list[float]) -> Iterator[str]:
    for delta in deltas:
        began, right, near, held, solid = time.process_time(), 0, 0, 0, 0
        bic_right, agreement, solid_agreement = 0, [], []
        for seed in seeds:
            X, truth = parted(seed, delta)
            result = ilk.cluster(X, threads=1)
            k = int(truth.max()) + 1
            right += result.k == k
            near += abs(result.k - k) <= 1
            bic_right += result.components == k
            held += result.verdict.word in CLAIMS
            agreement.append(ari(result.labels, truth) if result.k > 1 else 0.0)
            if result.verdict.word == "solid":
                solid += 1
                solid_agreement.append(agreement[-1])
        yield (
            f"groups delta {delta:g}: not weak {held} of {len(seeds)}, solid {solid}, K right {right}, within 1 "
            f"{near}, BIC {bic_right}, mean ARI {np.mean(agreement):.3f}, of solid "
            f"{np.mean(solid_agreement) if solid_agreement else np.nan:.3f}  "
            f"{(time.process_time() - began) / len(seeds):.2f} s each"
        )


def run_outliers(seeds: range, deltas: list[float]) -> Iterator[str]:
    for delta in deltas:
        for share in (0.0, 0.02, 0.05):
            right = held = strays = 0
            agreement = []
            for seed in seeds:
                X, truth = strewn(seed, delta, share)
                result, own = ilk.cluster(X, threads=1), truth >= 0
                right += result.k == truth.max() + 1
                held += result.verdict.word in CLAIMS
                strays += result.k > 1 and any(
                    (~own[result.labels == g]).mean() > 0.5 for g in range(result.k)
                )
                agreement.append(ari(result.labels[own], truth[own]) if result.k > 1 else 0.0)
            yield (
                f"groups delta {delta:g}, {share:.0%} stray points: K right {right} of {len(seeds)}, not weak {held}, "
                f"a group of stray points {strays}, mean ARI of the others {np.mean(agreement):.3f}"
            )


def run_mixed(seeds: range, rows: list[int]) -> Iterator[str]:
    for kind in MIXED_CLOUDS:
        for n in rows:
            results = [ilk.cluster(mixed_cloud(kind, seed, n), threads=1) for seed in seeds]
            weak, one = (
                sum(test(r) for r in results)
                for test in (lambda r: r.verdict.word not in CLAIMS, lambda r: r.k == 1)
            )
            yield f"mixed null {kind:<23} n {n:>5}: weak {weak} of {len(seeds)}, K = 1 {one}"
    for overlap in ((0.0, 0.005), (0.005, 0.05)):
        pairs = [(ilk.cluster(X, threads=1), y) for X, y in (mixed_parted(seed, overlap) for seed in seeds)]
        held = sum(r.verdict.word in CLAIMS for r, _ in pairs)
        right = sum(r.k == y.max() + 1 for r, y in pairs)
        agreement = np.mean([ari(r.labels, y) if r.k > 1 else 0.0 for r, y in pairs])
        yield (
            f"mixed groups, overlap {overlap[0]:g} to {overlap[1]:g}: not weak {held} of {len(seeds)}, "
            f"K right {right}, mean ARI {agreement:.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["nulls", "groups", "outliers", "mixed"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 5, 20])
    parser.add_argument("--clouds", nargs="+", default=list(CLOUDS), choices=list(CLOUDS))
    parser.add_argument("--delta", type=float, nargs="+", default=[4.0, 6.0])
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    lines = {
        "nulls": lambda: run_nulls(seeds, given.rows, given.columns, given.clouds),
        "groups": lambda: run_groups(seeds, given.delta),
        "outliers": lambda: run_outliers(seeds, given.delta),
        "mixed": lambda: run_mixed(seeds, given.rows),
    }[given.what]()
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
