"""
Where K-means begins
====================

Seven groups of unequal size and 100 rows spread over everything. The chance that K random rows hit each of K equal
groups is K!/K^K, 0.6 % for seven; K-means then repairs some of the rest, not all. K-log-K draws more rows than it
needs, drops those that end up with few rows (outliers, and second centres of one group), and keeps K that lie far
apart.
"""

# %%
# The table: 1,000 rows of seven Normals, 100 rows that belong to none.
import matplotlib.pyplot as plt
import numpy as np

import ilk

draws = np.random.default_rng(3)
centres = np.array([[0, 0], [12, 3], [25, 0], [5, 15], [20, 14], [2, 28], [22, 28]])
sizes = [250, 200, 150, 120, 110, 90, 80]
groups = [draws.normal(centre, 1.3, (size, 2)) for centre, size in zip(centres, sizes, strict=True)]
X = np.vstack([*groups, draws.uniform(-8, 36, (100, 2))])

# %%
# One run from each of 100 seeds, three ways to begin. ``n_init=1``: no second chance.
cost = {
    start: np.array(
        [ilk.KMeans(7, init=start, n_init=1, random_state=seed).fit(X).inertia_ for seed in range(100)]
    )
    for start in ("random", "k-means++", "k-log-k")
}
best = min(values.min() for values in cost.values())
reached = {start: int((values < 1.01 * best).sum()) for start, values in cost.items()}
for start, values in cost.items():
    print(f"{start:10} within 1 % of the best in {reached[start]:3} of 100 runs, "
          f"median cost {np.median(values) / best:.3f} of the best")  # fmt: skip

# %%
# Left: the costs of the runs, sorted. Right: one run from random rows, with a group cut in two and two held together.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for start, values in cost.items():
    left.plot(np.sort(values) / best, label=start)
left.set(xlabel="run, from the cheapest to the dearest", ylabel="cost / best cost")
left.legend()
bad = ilk.KMeans(7, init="random", n_init=1, random_state=int(np.argmax(cost["random"]))).fit(X)
right.scatter(*X.T, c=bad.labels_, s=6, cmap="tab10")
right.plot(*bad.cluster_centers_.T, "k+", ms=14)
right.set(title="the dearest run from random rows", xticks=[], yticks=[])
plt.show()

# %%
# K' = ceil(K log2 K) draws hit all of seven equal groups with chance 0.70: high, not certain. ``ilk.KMeans`` runs ten
# starts of k-means++ by default (greedy: the best of a few draws), side by side in the same passes.
