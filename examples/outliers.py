"""
Outliers: seven groups under a hundred stray points
===================================================

1,100 points: seven round groups and a hundred points spread over the whole plane. The best mixture spends a component
on the stray points; it is no group, since no density dip separates it from the others. Three ways to treat them: let
the rule merge them, give them a component of noise, or trim a share of the rows. The table was made for this project.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ilk
from ilk.measures import ari

TABLE = Path(__file__).parents[1] / "tests" / "data" / "seven_normals_outliers.csv"


def main() -> None:
    table = pd.read_csv(TABLE)
    points, truth = table[["x1", "x2"]], table["target"].to_numpy()
    stray = truth == -1
    result = ilk.cluster(points)
    print(result)

    print(f"\n{result.components} components, {result.k} groups: no density dip sets the stray points apart.")
    novelty = result.assign(points)["novelty"].to_numpy()
    order = np.argsort(-novelty)[: stray.sum()]
    print(f"Of the {stray.sum()} most unusual rows, {stray[order].sum()} are stray points.")

    print(
        "\nAgreement with the truth (ARI), on the rows of the groups and on all rows, stray points as a class:"
    )
    noise = ilk.GaussianMixture(result.k, structure="VII", noise=True, random_state=0).fit(points)
    trimmed = ilk.TrimmedKMeans(result.k, trim=float(stray.mean()), random_state=0).fit(points)
    answers = {
        "merged components": result.labels,
        "noise component": noise.labels_,
        "trimmed K-means": np.where(trimmed.outliers_, -1, trimmed.labels_),
    }
    for name, labels in answers.items():
        apart = int((labels == -1).sum())
        own, every = ari(labels[~stray], truth[~stray]), ari(labels, truth)
        print(f"  {name:<18} groups {own:.3f}   all {every:.3f}   rows set apart {apart}")
    print(
        "\nFind the number of groups by the first; set rows apart with the second when they must have no group."
    )

    _, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharex=True, sharey=True)
    for ax, (name, labels) in zip(axes, answers.items(), strict=True):
        apart = labels == -1
        ax.scatter(*points[~apart].T.to_numpy(), c=labels[~apart], s=6, cmap="tab10", vmin=0, vmax=9)
        ax.scatter(*points[apart].T.to_numpy(), c="grey", s=9, marker="x")
        ax.set(title=name, xticks=[], yticks=[])
    plt.show()


if __name__ == "__main__":
    main()
