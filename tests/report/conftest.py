"""Results to report on: made once, with what a browser needs."""

from __future__ import annotations

import numpy as np
import pytest

import ilk
from tests.conftest import table_path


@pytest.fixture(scope="session")
def penguins():
    return ilk.cluster(table_path("penguins"), truth="target", types={"year": "categorical"})


@pytest.fixture(scope="session")
def wine():
    """A mixture: it has probabilities and many structures."""
    return ilk.cluster(table_path("wine"), k=range(1, 5))


@pytest.fixture(scope="session")
def cloud():
    """No groups."""
    draws = np.random.default_rng(0)
    return ilk.cluster({"x": draws.normal(size=200), "y": draws.normal(size=200)}, k=range(1, 4))


def stripes(n=200):
    """Three groups that overlap in width and in height, and lie side by side in both together."""
    draws = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], n)
    width = draws.normal(0, 2, 3 * n)
    height = width + (labels - 1) * 1.6 + draws.normal(0, 0.2, 3 * n)
    return labels, {"noise": draws.normal(size=3 * n), "width": width, "height": height}


@pytest.fixture(scope="session")
def striped():
    return ilk.cluster(stripes()[1], k=3, method="gaussian")


@pytest.fixture(scope="session")
def levels_together():
    """Wind and rain are each the same in both groups, and go together in opposite ways."""
    draws = np.random.default_rng(0)
    labels = np.repeat([0, 1], 300)
    wind = draws.integers(0, 2, 600)
    rain = np.where(labels == 0, wind, 1 - wind)
    table = {
        "wind": np.array(["east", "a very long name of the west"])[wind],
        "rain": np.array(["no", "yes"])[rain],
    }
    return ilk.describe(table, labels)
