"""A person at a terminal: run `ilk` with arguments in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ilk.cli.main import cli

HERE = Path(__file__).parents[1]
DATA = HERE / "data"


@pytest.fixture
def ilk(tmp_path, monkeypatch):
    """Call `ilk ARGS` in an empty folder; gives click's result with stdout, stderr and exit_code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # test runners set it

    def run(*args, **options):
        return CliRunner().invoke(cli, [str(a) for a in args], **options)

    return run


@pytest.fixture
def shell(tmp_path):
    """`ilk ARGS` as a process of its own."""

    def run(*args, env=None, **options):
        return subprocess.run(
            [sys.executable, "-m", "ilk.cli.main", *map(str, args)],
            cwd=tmp_path,
            env={**environment(), **(env or {})},
            capture_output=True,
            timeout=120,
            **options,
        )

    return run


def environment() -> dict[str, str]:
    source = str(HERE.parent / "src")
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    return {**kept, "PYTHONPATH": source}


@pytest.fixture
def blobs(tmp_path):
    """A CSV with two clear groups, an id and a class."""
    path = tmp_path / "blobs.csv"
    rows = [f"r{i},{1 + i % 5 * 0.1:.1f},{2 + i % 3 * 0.1:.1f},low" for i in range(30)]
    rows += [f"s{i},{9 + i % 5 * 0.1:.1f},{8 + i % 3 * 0.1:.1f},high" for i in range(20)]
    path.write_text("\n".join(["code,x,y,size", *rows]) + "\n")
    return path
