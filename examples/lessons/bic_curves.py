"""
BIC over structures and K
=========================

A mixture of Gaussians may share volume, shape and orientation among its components. Three letters name a structure, one
for each: E equal, V free, I round or along the columns. Every structure at every K has a BIC; the lowest wins. It is
the picture of the lecture, with all fourteen structures instead of ten.
"""

# %%
# Iris without its species, the table every mixture program is shown with. Units are centimetres, taken as they are.
import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

import ilk

iris = load_iris()
found = ilk.select(iris.data, k=range(1, 7))
print(found)

# %%
# -2 log-likelihood + parameters * log(rows): lower is better. mclust prints minus this, the lecture minus half of it.
LECTURE = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "EEV", "VEV", "VVV")
curves = {}
for candidate in found.candidates:
    if candidate.bic is not None:
        curves.setdefault(candidate.structure, []).append((candidate.k, candidate.bic))

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for number, (structure, points) in enumerate(sorted(curves.items())):
    style = "-" if structure in LECTURE else "--"
    colour = plt.colormaps["tab20"](number)
    ax.plot(*zip(*sorted(points), strict=True), style, color=colour, marker=".", label=structure)
ax.plot(found.chosen.k, found.chosen.bic, "o", ms=14, mfc="none", mec="black")
ax.set(xlabel="components", ylabel="BIC (lower is better)", ylim=(540, 1300))
ax.legend(ncols=2, fontsize="small", title="dashed: not in the lecture")
plt.show()

# %%
# BIC wants two components, though there are three species: two of them overlap. The next best is close, and says so.
runner_up = found.candidates[found.runner_up]
margin = found.margin(found.runner_up)
print(f"chosen {found.chosen.structure}, K = {found.chosen.k}")
print(f"next   {runner_up.structure}, K = {runner_up.k}, {margin:.1f} higher")
