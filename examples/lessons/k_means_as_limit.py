"""
K-means is EM with a vanishing variance
=======================================

Take a mixture of round Gaussians with equal shares and one variance s^2, and do not fit s: turn it down. Memberships
become hard, the weighted means become the means of the nearest rows, and EM becomes Lloyd's algorithm.
"""

# %%
# Two groups that overlap, and the memberships of EM at a fixed s.
import matplotlib.pyplot as plt
import numpy as np

import ilk

draws = np.random.default_rng(0)
X = np.vstack([draws.normal([0, 0], 1, (120, 2)), draws.normal([2.5, 1], 1, (80, 2))])
start = np.array([[-1.0, 2.0], [1.0, -2.0]])


def memberships(means, s):
    """Share of each component in each row: proportional to exp(-distance^2 / 2 s^2)."""
    cost = ((X[:, None] - means) ** 2).sum(axis=2) / (2 * s**2)
    share = np.exp(cost.min(axis=1, keepdims=True) - cost)
    return share / share.sum(axis=1, keepdims=True)


def em(s, passes=200):
    """Means after EM from ``start`` with the deviation held at s."""
    means = start
    for _ in range(passes):
        share = memberships(means, s)
        means = share.T @ X / share.sum(axis=0)[:, None]
    return means


# %%
# K-means from the same two centres, and how far EM ends from it.
k_means = ilk.KMeans(2, init=start).fit(X)
deviations = np.array([1.2, 1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1])
apart = []
for s in deviations:
    means = em(s)
    order = np.argmin(((k_means.cluster_centers_[:, None] - means) ** 2).sum(axis=2), axis=1)
    apart.append(float(np.abs(k_means.cluster_centers_ - means[order]).max()))
    print(f"s = {s:.1f}   farthest mean is {apart[-1]:.4f} from that of K-means")
final = memberships(em(deviations[-1]), deviations[-1])

# %%
# Rows coloured by their membership: grey rows belong to both.
figure, axes = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained")
for ax, s in zip(axes, (1.0, 0.4, 0.1), strict=False):
    share = memberships(em(s), s)[:, 0]
    ax.scatter(*X.T, c=share, cmap="coolwarm", s=12, vmin=0, vmax=1)
    ax.plot(*em(s).T, "k+", ms=14)
    ax.set(title=f"s = {s}", xticks=[], yticks=[])
axes[3].plot(deviations, apart, "o-", color="black")
axes[3].set(xlabel="s", ylabel="distance to the means of K-means", xlim=(1.3, 0))
plt.show()

# %%
# In ilk, ``GaussianMixture(k, structure="EII", membership="hard")`` is the same algorithm but for the shares: a larger
# group draws its border a little toward the smaller one.
