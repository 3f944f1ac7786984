"""Every example of the README runs, and its terminal picture is what `ilk demo` prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from ilk.cli.main import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def blocks(language):
    return [text for found, text in BLOCKS if found == language]


@pytest.fixture
def customers(tmp_path, monkeypatch):
    """The table that the examples speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # test runners set it
    draws = np.random.default_rng(0)
    group = np.repeat([0, 1], [80, 40])
    pd.DataFrame(
        {
            "spend": np.round(draws.normal(100, 10, 120) + 300 * group, 2),
            "visits": draws.poisson(3 + 9 * group),
            "notes": [f"note {i}" for i in range(120)],
            "segment": np.where(group, "regular", "new"),
        }
    ).to_csv("customers.csv", index=False)
    pd.read_csv("customers.csv").head(5).to_csv("new.csv", index=False)


@pytest.mark.parametrize("text", blocks("python"))
def test_python_examples(customers, text, capsys):
    exec(compile(text, "README.md", "exec"), {})  # our own text


def test_commands(customers):
    commands = [c for text in blocks("sh") for c in text.splitlines() if c.startswith("ilk ")]
    assert len(commands) >= 8
    for command in commands:
        args = shlex.split(command, comments=True)[1:]
        if args[0] == "fit" and Path("customers.ilk").exists():
            args.append("--force")
        result = CliRunner().invoke(cli, args)
        assert result.exit_code == 0, (command, result.stderr)
    assert Path("placed.csv").exists()
    assert Path("types.toml").exists()


def test_terminal_picture_is_real(customers):
    (picture,) = blocks("")
    result = CliRunner().invoke(cli, ["demo"])

    def timeless(text):
        text = re.sub(r"\(\d+ kB\)", "(0 kB)", text)
        return re.sub(r"   [\d.]+ s$", "   0 s", text, flags=re.MULTILINE)

    assert timeless(picture.removeprefix("$ ilk demo\n")) == timeless(result.stdout)


def test_make_has_the_target_it_names():
    assert re.search(r"^test-all:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


def test_bundled_table_is_the_tests_own_copy():
    ours = (ROOT / "src" / "ilk" / "data" / "penguins.csv").read_text().splitlines()
    theirs = (ROOT / "tests" / "data" / "penguins.csv").read_text().splitlines()
    assert ours[0] == theirs[0].replace("target", "species")
    assert ours[1:] == theirs[1:]
