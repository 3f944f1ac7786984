"""A result as pandas frames: the user's rows with their groups, what is in the groups, which columns matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import getitem
from typing import Any

import numpy as np

from ilk.analysis.result import Result
from ilk.errors import ResourceError, UsageError
from ilk.report.figures import told_value
from ilk.table.out_of_core.table import PieceTable


def pandas() -> Any:
    """The module, or a refusal that says how to get it."""
    try:
        import pandas as module
    except ImportError:
        raise ResourceError("no-pandas", "frames need pandas", do="Install it: pip install pandas") from None
    return module


def frame_of_rows(result: Result) -> Any:
    """The user's rows and index with the columns that `assign` gives, and the names of the groups."""
    frame = _rows(result)
    model = replace(result.model, options={**result.model.options, "named": True})
    taken = tuple(str(name) for name in frame.columns)
    if result.placed is None:
        columns = model.label_columns(result.finest(), taken)
    else:
        columns = model.columns_for(result.placed, taken)
    return frame.assign(**columns)


def _rows(result: Result) -> Any:
    table, module = result.table, pandas()
    if isinstance(table, PieceTable):
        raise UsageError(
            "read-in-parts",
            "the table was read in parts and is not in memory",
            do="Use result.assign on the rows that you want, or the assignments that ilk fit writes",
        )
    native = table.native
    if isinstance(native, module.DataFrame) and len(native) == table.n_rows:
        return native
    return module.DataFrame({name: table.column(name).to_pandas() for name in table.names})


def frame_of_profile(summary: Mapping[str, Any]) -> Any:
    """Means and shares: a line for each number and for each category, the most important columns first."""
    module = pandas()
    letters = [group["letter"] for group in summary["groups"]]
    lines = [line for entry in summary["profile"] for line in _lines(entry, summary["groups"])]
    index = module.MultiIndex.from_tuples([line[:2] for line in lines], names=["column", "category"])
    clocks = any(fact.get("clock") for fact in summary["groups"][0]["facts"])
    kind = object if clocks else float
    return module.DataFrame([line[2] for line in lines], index=index, columns=["whole", *letters], dtype=kind)


def _lines(entry: Mapping[str, Any], groups: Any) -> Iterator[tuple[str, str, list[Any]]]:
    name, spread = entry["column"], entry["distribution"]
    facts = [next(fact for fact in group["facts"] if fact["column"] == name) for group in groups]
    if entry["type"] == "number":
        told = told_value if facts[0].get("clock") else getitem
        yield name, "", [told(facts[0], "whole"), *(told(fact, "value") for fact in facts)]
    elif spread is None:  # of the least important columns, what sets groups apart
        for level in dict.fromkeys(fact["category"] for fact in facts if fact["category"] is not None):
            same = [fact if fact["category"] == level else None for fact in facts]
            whole = next(fact["whole"] for fact in same if fact)
            yield name, level, [whole, *(fact and fact["value"] for fact in same)]
    else:
        counts = np.array([spread["whole"], *spread["groups"]], dtype=float)
        with np.errstate(invalid="ignore"):
            shares = counts / counts.sum(axis=1, keepdims=True)
        others = [f"({spread['others']} others)"] * bool(spread["others"])
        for place, level in enumerate([*spread["categories"], *others]):
            yield name, level, shares[:, place].tolist()


def frame_of_importance(summary: Mapping[str, Any]) -> Any:
    """How much each column tells groups apart, in nats per row, the most telling first."""
    lines = [
        {
            "column": entry["column"],
            "importance": entry["relevance"],
            "type": entry["type"],
            "used": entry["used"],
            "distinctive_in": ", ".join(entry["distinctive_in"]),
        }
        for entry in summary["profile"]
    ]
    return pandas().DataFrame(lines).set_index("column")
