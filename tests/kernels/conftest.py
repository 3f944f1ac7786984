"""Every kernel test runs on every path this machine has: each instruction set, and NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from ilk import kernels
from ilk.kernels import plain

if kernels.COMPILED:
    from ilk.kernels import _compiled, compiled

    INSTRUCTIONS = list(_compiled.all_instructions())
else:
    INSTRUCTIONS = []


@pytest.fixture(params=[*INSTRUCTIONS, "numpy"])
def path(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The module of kernels to test, set to one instruction set."""
    if request.param == "numpy":
        yield plain
    else:
        yield from _set_to(request.param)


@pytest.fixture(params=INSTRUCTIONS)
def compiled_path(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The compiled kernels, set to one instruction set: what is held against the NumPy twin."""
    yield from _set_to(request.param)


def _set_to(instructions: str) -> Iterator[ModuleType]:
    _compiled.use_instructions(instructions)
    yield compiled
    _compiled.use_instructions(kernels.INSTRUCTIONS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without compiled kernels there is nothing to hold against the twin."""
    alone = [] if INSTRUCTIONS else [i for i in items if "compiled_path" in getattr(i, "fixturenames", ())]
    items[:] = [item for item in items if item not in alone]
    if alone:
        config.hook.pytest_deselected(items=alone)
