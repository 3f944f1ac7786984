"""The kernels under the sanitizers, for `make sanitize`: their tests, then random tables through their callers.

    python -m tests.kernels.sanitized build/sanitize/_compiled*.so 10000

The sanitizers end the process at the first report; what Python sees beyond it ends here.
"""

from __future__ import annotations

import importlib.util
import sys

import pytest

ASSORTED = ("tests/assorted/test_compiled_update.py", "tests/assorted/test_compiled_run.py")


def load(path: str) -> None:
    """Take the place of the compiled kernels, before anything imports them."""
    name = "ilk.kernels._compiled"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


class Counted:
    """Counts the tests that passed."""

    passed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed += report.when == "call" and report.passed


def main(path: str, n_tables: int) -> int:
    load(path)
    from ilk import kernels
    from tests.kernels import fuzz_tables

    assert kernels.COMPILED
    counted = Counted()
    # Wheels are built without sanitizers.
    chosen = ["tests/kernels", *ASSORTED, "--ignore=tests/kernels/test_build.py"]
    ended = pytest.main([*chosen, "-p", "no:cacheprovider", "-x"], plugins=[counted])
    if ended:
        return int(ended)
    tried = fuzz_tables.run(n_tables, 0)
    told = ", ".join(f"{count} {what}" for what, count in sorted(tried.ended.items()))
    print(*tried.lines(), sep="\n")
    print(
        f"sanitize: {counted.passed} kernel tests, {n_tables} random tables ({told}), no report of a sanitizer"
    )
    return 1 if tried.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
