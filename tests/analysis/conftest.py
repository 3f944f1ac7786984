"""A person at a terminal, for what is said there of an analysis."""

from tests.cli.conftest import blobs, ilk

__all__ = ["blobs", "ilk"]
