"""
Before and after z-normalisation
================================

K-means adds squared distances over the columns, so the column with the largest numbers decides. Dividing every column
by its standard deviation takes the unit away. The table: 178 wines of three growers, 13 measurements.
"""

# %%
# Proline is counted in hundreds, most columns in units: as it is, the table is one column and twelve shadows.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import ilk

wine = load_wine()
X, grower = wine.data, wine.target
share = X.var(axis=0) / X.var(axis=0).sum()
print(f"{wine.feature_names[-1]} has {share[-1]:.1%} of the variance")

# %%
# The same call with ``scale="standard"``. Growers are used for the score alone.
raw = ilk.KMeans(3, n_init=30, random_state=0).fit(X)
standard = ilk.KMeans(3, n_init=30, scale="standard", random_state=0)
scaled = standard.fit(X).labels_
agreement = {
    "as it is": ilk.measures.ari(grower, raw.labels_),
    "scaled": ilk.measures.ari(grower, scaled),
}
for name, value in agreement.items():
    print(f"{name:8} ARI {value:.3f} with the growers")

# %%
# After scaling, units do not matter: labels stay the same when a column is given in other units.
other_units = X * np.logspace(-3, 3, X.shape[1])
unmoved = bool((standard.fit(other_units).labels_ == scaled).all())
print("labels in other units are the same:", unmoved)

# %%
# Flavanoids against proline: unscaled groups are ranges of proline alone.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharey=True)
for ax, (title, label) in zip(
    axes,
    {"K-means, as it is": raw.labels_, "K-means, scaled": scaled, "growers": grower}.items(),
    strict=True,
):
    ax.scatter(X[:, 6], X[:, 12], c=label, s=14, cmap="tab10", vmax=9)
    ax.set(title=title, xlabel="flavanoids")
axes[0].set_ylabel("proline")
plt.show()

# %%
# ``ilk.cluster`` and ``ilk fit`` standardise by themselves and say so; estimators do not.
# The structures EEI VEI EVI VVI EEE VEE EVV VVV of a Gaussian mixture need no scaling at all.
