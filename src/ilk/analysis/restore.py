"""A result from the folder of its run: everything that was written, and what was not said to be missing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ilk.analysis.folder import SUMMARY, find_assignments, find_model, find_summary, no_assignments
from ilk.analysis.result import Result
from ilk.errors import Caution, ModelFileError, Option, UsageError, shown
from ilk.model.columns import free_names
from ilk.model.model import Model
from ilk.model.placed import Placed
from ilk.report.groups import Contrast, Fact, Group, Pair
from ilk.report.terms import Rule, Term
from ilk.selection.candidates import Candidate
from ilk.selection.reasons import Reason
from ilk.selection.verdict import Verdict
from ilk.table.block import Array
from ilk.table.read import Table, from_arrow, read


def restored(folder: str) -> Result:
    """The result that `ilk fit` wrote into this folder."""
    summary, model = find_summary(folder), find_model(folder)
    try:
        table, finest, placed = _rows(folder, model, find_assignments(folder))
        lost = (
            "probabilities of each row for every group, and cells other than id and truth, are not in a run"
        )
    except UsageError:
        table, placed = from_arrow(_nothing(), folder), None
        finest, lost = np.empty(0, dtype=np.int32), "the run was written without rows: there are no labels"
    Caution("not-restored", f"{shown(folder, 80)}: {lost}").warn(depth=4)
    try:
        return Result(
            labels=np.minimum(finest, 0) if model.segmented else finest,
            segments=finest if model.segmented else None,
            probabilities=None,
            k=summary["chosen"]["k"],
            components=summary["chosen"]["components"],
            groups=tuple(_group(entry) for entry in summary["groups"]),
            candidates=tuple(_of(Candidate, entry) for entry in summary["candidates"]),
            verdict=_verdict(summary["verdict"]),
            warnings=tuple(_caution(entry) for entry in summary["warnings"]),
            model=model,
            table=table,
            placed=placed,
            _summary=summary,
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        raise ModelFileError(
            "not-a-summary",
            "the summary of the run lacks something that a result has",
            where=shown(os.path.join(folder, SUMMARY), 200),
            do="Fit the table again",
        ) from None


def _nothing() -> Any:
    import pyarrow as pa

    return pa.table({"row": pa.array([], pa.int64())})


def _rows(folder: str, model: Model, path: str) -> tuple[Table, Array, Placed | None]:
    """What the run knows of its rows: their number, id and truth; the group of each; where it was placed."""
    read_back = read(path)
    own = tuple(dict.fromkeys(["row", *(n for n in (model.schema.id, model.schema.truth) if n is not None)]))
    try:
        table = from_arrow(read_back.arrow.select(list(own)), folder)
        cells = _outputs(model, read_back, own)
    except KeyError:
        raise no_assignments(path, "the assignments of the run lack a column") from None
    number = {mark: place for place, mark in enumerate(model.letters)}
    try:
        finest, second = (
            np.array([-1 if mark is None else number[mark] for mark in cells[name]], dtype=np.int32)
            if name in cells
            else None
            for name in ("segment" if model.segmented else "group", "second")
        )
    except KeyError:
        raise no_assignments(path, "the assignments of the run name a group that its model lacks") from None
    assert finest is not None
    if second is None:
        return table, finest, None
    return table, finest, Placed(finest, second, _figures(cells, "novelty"), _figures(cells, "probability"))


def _outputs(model: Model, table: Table, own: tuple[str, ...]) -> dict[str, list[Any]]:
    """The columns that a run adds, by their own names."""
    wanted = model.output_names()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = free_names(own, wanted)
    return {name: table.column(free).to_pylist() for name, free in zip(wanted, written, strict=True)}


def _figures(cells: Mapping[str, list[Any]], name: str) -> Array:
    given = cells.get(name)
    length = len(next(iter(cells.values())))
    return np.full(length, np.nan) if given is None else np.array(given, dtype=np.float64)


def _of(kind: Any, entry: Mapping[str, Any], **made: Any) -> Any:
    names = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in entry.items() if name in names} | made)


def _group(entry: Mapping[str, Any]) -> Group:
    facts = tuple(_of(Fact, fact) for fact in entry["facts"])
    rule = entry.get("rule")
    if rule is not None:
        terms = tuple(_of(Term, term, categories=tuple(term["categories"])) for term in rule["terms"])
        rule = _of(Rule, {"group": entry["letter"], "base_rate": None, **rule}, terms=terms)
    unlike, pair = entry.get("unlike"), entry.get("pair")
    if unlike is not None:
        unlike = Contrast(group=unlike["group"], facts=tuple(_of(Fact, fact) for fact in unlike["facts"]))
    if pair is not None:
        pair = _of(Pair, pair, columns=tuple(pair["columns"]))
    group: Group = _of(Group, entry, facts=facts, rule=rule, unlike=unlike, pair=pair)
    return group


def _verdict(entry: Mapping[str, Any]) -> Verdict:
    reasons = tuple(_of(Reason, reason) for reason in entry["reasons"])
    verdict: Verdict = _of(Verdict, entry, reasons=reasons)
    return verdict


def _caution(entry: Mapping[str, Any]) -> Caution:
    """Its options are texts by now: they are in the sentence."""
    return Caution(str(entry["code"]), str(entry["text"]), list[Option]())
