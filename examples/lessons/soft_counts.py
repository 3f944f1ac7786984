"""
Soft counts, worked by hand
===========================

In a mixture a row may belong to two groups in parts. Adding up the parts gives the soft size of a group; dividing by
the rows gives its share; weighting rows by their parts gives its mean. That is all there is to an M step.
"""

# %%
# Twelve rows, three groups. The first five belong to the first group; the others are divided between the second
# and the third. (In the lecture the last row has 0.1 and 0.5, which is not a whole row: 0.9 is meant.)
import matplotlib.pyplot as plt
import numpy as np

import ilk

part = np.zeros((12, 3))
part[:5, 0] = 1.0
part[5:, 1] = [0.9, 0.9, 0.85, 0.85, 0.8, 0.1, 0.1]
part[5:, 2] = [0.1, 0.1, 0.15, 0.15, 0.2, 0.9, 0.9]
size = part.sum(axis=0)
share = size / len(part)
print("soft sizes", size, "of", int(size.sum()), "rows; shares", share.round(3))

# %%
# A mixture that ilk fitted obeys the same arithmetic: its shares and means are those of its own memberships.
x = np.array([1.0, 1.4, 2.0, 2.3, 2.9, 4.8, 5.0, 5.3, 5.8, 6.3, 7.0, 8.0])[:, None]
model = ilk.GaussianMixture(3, structure="EII", tol=1e-12, random_state=0).fit(x)
gamma = model.predict_proba(x)
by_hand = gamma.T @ x / gamma.sum(axis=0)[:, None]
for k in range(3):
    print(f"group {k}: soft size {gamma[:, k].sum():5.2f}, share {model.weights_[k]:.3f}, "
          f"mean {model.means_[k, 0]:6.3f}, by hand {by_hand[k, 0]:6.3f}")  # fmt: skip

# %%
# Each bar is a row, cut into its parts.
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained", sharey=True)
for ax, parts, title in zip(
    axes, (part, gamma), ("the lecture's twelve rows", "a fitted mixture"), strict=True
):
    below = np.zeros(12)
    for k in range(3):
        ax.bar(np.arange(1, 13), parts[:, k], bottom=below, width=0.9, label=f"{parts[:, k].sum():.2f} rows")
        below += parts[:, k]
    ax.set(title=title, xlabel="row")
    ax.legend(loc="lower left")
axes[0].set_ylabel("membership")
plt.show()
