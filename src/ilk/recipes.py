"""The catalogue: every method as family + rule + start."""

from __future__ import annotations

from ilk.families.centroid import Means, Medians
from ilk.fitting.restarts import Recipe

K_MEANS = Recipe("k-means", Means())
K_MEDIANS = Recipe("k-medians", Medians())
TRIMMED_K_MEANS = Recipe("trimmed-k-means", Means(), trim=0.05)

CATALOGUE = {recipe.name: recipe for recipe in (K_MEANS, K_MEDIANS, TRIMMED_K_MEANS)}
