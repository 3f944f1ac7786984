"""A server in a folder with two tables, one for all tests of a file."""

from __future__ import annotations

import shutil

import pytest

from tests.app.serving import serving
from tests.conftest import OWN

pytest.importorskip("starlette", reason="the page is not served: pip install 'ilk[app]'")
pytest.importorskip("uvicorn", reason="the page is not served: pip install 'ilk[app]'")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    shutil.copy(OWN / "everyday" / "crm.csv", folder / "crm.csv")
    shutil.copy(OWN / "everyday" / "eu_simple.csv", folder / "eu.csv")
    (folder.parent / "secret.csv").write_text("a,b\n1,2\n")
    with serving(folder) as made:
        yield made


@pytest.fixture(scope="module")
def run(served):
    """A run of crm.csv."""
    return served.fit("crm.csv")
