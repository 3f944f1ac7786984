"""Stretched clusters are found by BIC, and one cloud is one group, whatever its shape.

A few seeds of what `python -m benchmarks.stretched` counts over a hundred.
"""

from __future__ import annotations

import pytest

from benchmarks.stretched import TABLES, chosen_k
from ilk import kernels

SEEDS = range(15) if kernels.COMPILED else range(1)  # a search takes seconds without a compiler


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cigars-2", "cigars-5"])
def test_parallel_cigars(name, capsys):
    made, groups, _ = TABLES[name]
    right = sum(chosen_k(made(seed)) == groups for seed in SEEDS)
    with capsys.disabled():
        print(f"\n{name}: K right in {right} of {len(SEEDS)}")
    assert right >= 0.9 * len(SEEDS)


@pytest.mark.slow
def test_one_cloud_is_one_group(capsys):
    clouds = [made for made, groups, _ in TABLES.values() if groups == 1]
    ones = sum(chosen_k(made(seed)) == 1 for seed in SEEDS for made in clouds)
    with capsys.disabled():
        print(f"\none cloud, round or stretched: K = 1 in {ones} of {len(SEEDS) * len(clouds)}")
    assert ones >= len(SEEDS) * len(clouds) - 1
