"""
DP-means: what a group costs
============================

Four groups of 100 rows in two columns. An open cost is a squared distance: a row farther than that from every
centre starts a group. Between the width of a group and the distance of two groups it makes no difference.
Run it with `python examples/dp_means.py`.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import ilk


def four_groups() -> np.ndarray:
    centres = np.array([[0.0, 0], [10, 0], [0, 10], [10, 10]])
    return np.repeat(centres, 100, axis=0) + np.random.default_rng(0).normal(size=(400, 2))


def main() -> None:
    X = four_groups()
    found = []
    print("open cost   groups   sum of squares   cost = sum of squares + open cost x groups")
    for open_cost in (1.0, 4.0, 16.0, 30.0, 50.0, 70.0, 120.0):
        model = ilk.DPMeans(open_cost).fit(X)
        found.append((open_cost, model.n_clusters_))
        print(f"{open_cost:9.1f} {model.n_clusters_:8d} {model.inertia_:16.1f} {model.cost_:12.1f}")
    print("\ntarget   open cost it suggests   groups found")
    for wish in (1, 2, 4, 8):
        model = ilk.DPMeans(target_clusters=wish).fit(X)
        print(f"{wish:6d} {model.open_cost_:23.1f} {model.n_clusters_:14d}")

    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.scatter(*X.T, c=ilk.DPMeans(50.0).fit(X).labels_, s=8, cmap="tab10", vmin=0, vmax=9)
    left.set(title="open cost 50", xticks=[], yticks=[])
    right.loglog(*zip(*found, strict=True), marker="o")
    right.set(xlabel="open cost", ylabel="groups", title="flat where groups are")
    plt.show()


if __name__ == "__main__":
    main()
