"""Write `requirements.lock`: every package of development at one version, with the hashes of its wheel.

`make lock` asks the index that pip is set to; the wheels are those of the Python and system that it runs on.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("test", "dev", "docs")


def wanted() -> list[str]:
    """What `pip install -e '.[test,dev,docs]'` asks for, without ilk itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extra = project["project"]["optional-dependencies"]
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    asked += [line for name in EXTRAS for line in extra[name]]
    return sorted({line for line in asked if not line.startswith("ilk[")})


def resolved() -> list[tuple[str, str, str]]:
    """Name, version and SHA-256 of what pip would install."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        options = [
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--only-binary=:all:",
            "--no-binary=pyspark",
            "--report",
            report.name,
        ]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, *wanted()], check=True)
        told = json.load(report)
    return sorted(
        (
            one["metadata"]["name"].lower().replace("_", "-"),
            one["metadata"]["version"],
            one["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for one in told["install"]
    )


if __name__ == "__main__":
    version = ".".join(map(str, sys.version_info[:2]))
    lines = [f"# Written by `make lock` for Python {version} on {sys.platform}; use with --require-hashes."]
    lines += [f"{name}=={number} --hash=sha256:{digest}" for name, number, digest in resolved()]
    (ROOT / "requirements.lock").write_text("\n".join(lines) + "\n")
