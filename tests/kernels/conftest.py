"""Every kernel test runs on every path this machine has: each instruction set, and NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from ilk import kernels
from ilk.kernels import plain

if kernels.COMPILED:
    from ilk.kernels import _compiled, compiled

    PATHS = [*_compiled.all_instructions(), "numpy"]
else:
    PATHS = ["numpy"]


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The module of kernels to test, set to one instruction set."""
    if request.param == "numpy":
        yield plain
        return
    _compiled.use_instructions(request.param)
    yield compiled
    _compiled.use_instructions(kernels.INSTRUCTIONS)
