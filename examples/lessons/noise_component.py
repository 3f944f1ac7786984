"""
Outliers, with and without a noise component
============================================

A Gaussian has no room for far rows: a few of them bend a component, or take one for themselves. A noise component,
uniform over the box of the table, takes them up. Two other ways are shown, too: trimming, and heavy tails.
"""

# %%
# Three groups of 150 rows, and 40 rows anywhere.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

import ilk

draws = np.random.default_rng(1)
centres = np.array([[0.0, 0.0], [6.0, 1.0], [2.0, 6.0]])
X = np.vstack([*(draws.normal(centre, 0.7, (150, 2)) for centre in centres), draws.uniform(-15, 20, (40, 2))])
group = np.repeat([0, 1, 2, -1], [150, 150, 150, 40])

# %%
# The same three components, four ways. Labels of -1 are noise; trimming marks ``outliers_``.
models = {
    "Gaussian": ilk.GaussianMixture(3, random_state=0).fit(X),
    "with noise": ilk.GaussianMixture(3, noise=True, random_state=0).fit(X),
    "trimmed 8 %": ilk.GaussianMixture(3, trim=0.08, random_state=0).fit(X),
    "Student": ilk.StudentMixture(3, random_state=0).fit(X),
}
off = {}
for name, model in models.items():
    nearest = np.sqrt(((centres[:, None] - model.means_) ** 2).sum(axis=2)).min(axis=1)
    off[name] = float(nearest.max())
    print(f"{name:12} farthest true centre is {off[name]:5.2f} from a mean")
noise = models["with noise"].labels_ == -1
caught = int((noise & (group == -1)).sum())
print(f"noise component: {noise.sum()} rows, {caught} of the 40 outliers among them")

# %%
# Ellipses hold two standard deviations.
figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained", sharex=True, sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    far = (model.labels_ == -1) | model.outliers_
    ax.scatter(*X[~far].T, c=model.labels_[~far], s=5, cmap="tab10", vmin=0, vmax=9)
    ax.scatter(*X[far].T, c="grey", s=9, marker="x")
    for mean, covariance in zip(model.means_, model.covariances_, strict=True):
        variance, axis = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(axis[1, 1], axis[0, 1]))
        ax.add_patch(Ellipse(mean, *4 * np.sqrt(variance[::-1]), angle=angle, fill=False))
    ax.set(title=name, xticks=[], yticks=[])
plt.show()
