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
