"""The answer on bundled tables, as hashes: what changes names, words or places changes no label and no number.

A change that is meant to move answers makes them anew: `python -m tests.house.test_same_answer`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ilk

HERE = Path(__file__).parent
STORED = HERE / "same_answer.json"
CASES: dict[str, dict[str, Any]] = {
    "penguins": {"truth": "target"},
    "zoo": {},
    "soybean_small": {},
    "heart_cleveland": {},
    "craft_binary_disjoint": {},
    "seven_normals_outliers": {},
    "wine": {"method": "gaussian"},
    "craft_numeric_overlap": {"method": "k-means", "k": 3},
}
PASSING = {"seconds", "version", "versions", "date", "ilk"}  # of the moment, not of the answer

pytestmark = pytest.mark.skipif(
    os.environ.get("ILK_KERNELS") == "numpy", reason="stored for the compiled kernels"
)


def numbers(value: Any) -> Iterator[str]:
    """The numbers of a document in their order, to six digits: other machines round the last ones differently."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in PASSING:
                yield from numbers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield f"{value:.6g}"


def hashed(texts: Iterator[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def answer(name: str) -> dict[str, Any]:
    result = ilk.cluster(HERE.parent / "data" / f"{name}.csv", **CASES[name])
    labels = (str(label) for label in result.labels)
    return {"k": result.k, "labels": hashed(labels), "numbers": hashed(numbers(result.summary()))}


@pytest.mark.parametrize("name", CASES)
def test_labels_and_numbers_are_those_stored(name):
    assert answer(name) == json.loads(STORED.read_text())[name]


if __name__ == "__main__":
    STORED.write_text(json.dumps({name: answer(name) for name in CASES}, indent=1) + "\n")
