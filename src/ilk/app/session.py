"""What the page asks of the server, as plain documents: tables, fits, answers, changes. Nothing here knows of HTTP."""

from __future__ import annotations

import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from ilk.analysis.folder import ASSIGNMENTS, SUMMARY, find_model, find_summary
from ilk.analysis.other_k import kept_ks
from ilk.analysis.runs import checked, compared
from ilk.app import changes, rows
from ilk.app.answer import answer_of, brief
from ilk.app.asked import Options, lines_of, options_of
from ilk.app.columns import look_at, reading_of
from ilk.app.history import (
    STATE,
    Step,
    at_revision,
    changed,
    has_glance,
    has_k,
    is_older,
    ks_of,
    let_go,
    lock_of,
    new_state,
    new_version,
    read_state,
    version_folder,
    with_entry,
    write_state,
)
from ilk.app.numbers import Numbers
from ilk.app.place import Place
from ilk.app.tasks import Task, Tasks
from ilk.errors import IlkError, UsageError
from ilk.methods import METHODS, names
from ilk.monitor import comparison
from ilk.table.read import Table, read
from ilk.text.comparison import comparison_text
from ilk.text.drift import check_text
from ilk.text.explain import row_text
from ilk.text.layout import Surface

Memory = OrderedDict[Any, dict[str, Any]]

KEPT_BYTES = 500_000_000  # of a file; a larger table is read again at every look
LOOKS = 16  # columns of tables that are remembered
BRIEFS = 500
ANSWERS = 32  # as the page shows them, some hundred kilobytes each
MOVED = 200  # rows that moved between two runs, at most
PLAIN = Surface(width=88)
NARROW = Surface(width=66)


class Session:
    """A place, its tasks, and what was read of it lately."""

    def __init__(self, place: Place, *, read_only: bool = False) -> None:
        self.place, self.read_only, self.tasks = place, read_only, Tasks()
        self.numbers = Numbers(place, self.tasks)
        self._looks: Memory = OrderedDict()
        self._briefs: Memory = OrderedDict()
        self._answers: Memory = OrderedDict()
        self._tables: Memory = OrderedDict()
        self._lock = threading.Lock()

    def overview(self) -> dict[str, Any]:
        """Tables, runs and tasks."""
        return {
            "folder": self.place.folder.name or str(self.place.folder),
            "read_only": self.read_only,
            "most_upload": self.place.most_upload,
            "tables": self.place.tables(),
            "runs": [entry for name in self.place.runs() if (entry := self._brief(name)) is not None],
            "tasks": self.under_way(),
            "methods": [{"name": name, "text": METHODS[name].when} for name in names() if name in METHODS],
        }

    def under_way(self) -> list[dict[str, Any]]:
        return [task.to_dict() for task in self.tasks.all()]

    def _run(self, name: str) -> Path:
        """The folder of a run, without what the page made of one that was written over since."""
        run = self.place.run(name)
        if is_older(run):
            if self.read_only:
                what = "this run was written over since the page was last used with it"
                raise UsageError("older-page", what, do="Open it without --read-only")
            let_go(run)
        return run

    def _brief(self, name: str) -> dict[str, Any] | None:
        """A run in a line; None where its folder cannot be read."""
        try:
            run = self.place.run(name)
            state = run / STATE
            marks = [os.stat(path).st_mtime_ns for path in (run / "summary.json", state) if path.exists()]
            return self._remembered(self._briefs, (name, *marks), BRIEFS, lambda: self._made_brief(name, run))
        except (IlkError, OSError, KeyError, TypeError, ValueError):
            return None

    def _made_brief(self, name: str, run: Path) -> dict[str, Any]:
        summary = find_summary(str(run))
        state = read_state(run, summary)
        version = state["entries"][state["at"]]["version"]
        now = find_summary(str(version_folder(run, version))) if version else summary
        return brief(name, now, state) | {"command": state["entries"][0]["command"]}

    def _remembered(
        self, kept: Memory, key: Any, most: int, make: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        with self._lock:
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
        made = make()
        with self._lock:
            kept[key] = made
            while len(kept) > most:
                kept.popitem(last=False)
        return made

    def columns(self, table: str, given: Any) -> dict[str, Any]:
        """The columns of a table as the fit with these options would take them, and the lines that fit it."""
        options, path = options_of(given), self.place.table(table)
        facts = os.stat(path)
        wanted = {
            name: value for name, value in options.items() if name not in ("k", "method", "budget", "seed")
        }
        mark = (table, facts.st_mtime_ns, facts.st_size)
        key = (*mark, repr(sorted(wanted.items())))
        seen = self._remembered(
            self._looks, key, LOOKS, lambda: look_at(self._read(path, mark, options), options)
        )
        return {**seen, "table": table, "lines": lines_of(table, options)}

    def _read(self, path: Path, mark: tuple[Any, ...], options: Options) -> Table:
        """The table; the last one that was read is kept, so that a change of one column does not read it again."""
        reading = reading_of(options)

        def made() -> dict[str, Any]:
            return {"table": read(str(path), **reading)}

        if mark[-1] > KEPT_BYTES:
            return cast(Table, made()["table"])
        key = (*mark, repr(sorted(reading.items())))
        return cast(Table, self._remembered(self._tables, key, 1, made)["table"])

    def fit(self, table: str, given: Any) -> dict[str, Any]:
        """Begin a fit of a table in a folder of its own."""
        options, path = options_of(given), self.place.table(table)
        with self._lock:
            folder = self.place.new_run(path.name, self.tasks.busy_runs())
        order = {"do": "fit", "table": str(path), "folder": str(folder), "options": self._resolved(options)}
        lines = lines_of(table, options, folder.name)

        def end(task: Task) -> None:
            del task
            write_state(folder, new_state(folder, table, options, Step("Fit", **lines)))

        return self.tasks.start(order, folder.name, {"what": "fit", "table": table, **lines}, end).to_dict()

    def _resolved(self, options: Options) -> Options:
        """Options whose run is named by its path."""
        if "match_to" not in options:
            return options
        return {**options, "match_to": str(self.place.run(options["match_to"]))}

    def answer(self, name: str) -> dict[str, Any]:
        """The version of a run that is shown now, whole."""
        run = self._run(name)
        summary = find_summary(str(run))
        state = read_state(run, summary)
        version = state["entries"][state["at"]]["version"]
        try:
            now = find_summary(str(version_folder(run, version)))
        except IlkError:  # its folder was removed: the run itself is there
            state["at"], version, now = 0, "", summary
        return {
            **self._told(name, version_folder(run, version), now),
            "state": state,
            "version": version,
            "ks": self.numbers.listed(name, run, summary),
            "table": self._table_of(run, summary, state),
            "cells": rows.has_cells(run),
        }

    def told(self, name: str, version: str) -> dict[str, Any]:
        """A version of a run, whether it is shown now or not."""
        folder = version_folder(self._run(name), version)
        return {**self._told(name, folder, find_summary(str(folder))), "version": version}

    def _told(self, name: str, folder: Path, summary: dict[str, Any]) -> dict[str, Any]:
        def made() -> dict[str, Any]:
            has_rule = find_model(str(folder)).has_rule
            return {**answer_of(summary), "brief": brief(name, summary), "has_rule": has_rule}

        facts = os.stat(folder / SUMMARY)
        return self._remembered(self._answers, (folder, facts.st_mtime_ns, facts.st_size), ANSWERS, made)

    def _table_of(self, run: Path, summary: Any, state: Any) -> str | None:
        """The table of a run by the name it is listed with; of a run of the command line the file of its name."""
        for name in (state["table"], summary["source"], f"uploads/{summary['source']}"):
            try:
                if name:
                    self.place.table(str(name))
                    return str(name)
            except UsageError:
                continue
        return None

    def show_k(self, name: str, k: int, revision: int) -> dict[str, Any]:
        """Show the answer with another number of groups; where it is not there yet, it is asked for."""
        run = self._run(name)
        summary = find_summary(str(run))
        if k not in ks_of(summary):
            raise UsageError("bad-k", f"{k} groups were not tried", do="Choose another number")
        own, state = int(summary["chosen"]["k"]), read_state(run, summary)
        table = self._table_of(run, summary, state)
        if k != own and not has_k(run, k):
            self.numbers.make(name, run, k, table, state["options"])
            if not has_glance(run, k):
                return {"making": k}
        version = "" if k == own else f"k/{k}"
        if k == own:
            lines = {word: state["entries"][0][word] for word in ("command", "python")}
        elif k in kept_ks(run):
            lines = changes.lines_of(name, table, {"k": k}, f"{name}/k/{k}")
        else:
            lines = lines_of(table or "DATA", {**state["options"], "k": k}, f"{name}/k/{k}", match_to=name)
        entry = Step(f"Show {k} group{'s' * (k != 1)}", version=version, **lines)

        def edit(state: dict[str, Any]) -> None:
            last = state["entries"][state["at"]]
            if last["version"].startswith("k/") and state["at"]:  # sliding on replaces where it passed
                state["entries"], state["at"] = state["entries"][: state["at"]], state["at"] - 1
            if state["entries"][state["at"]]["version"] != version:
                with_entry(state, entry)

        changed(run, summary, revision, edit)
        return self.answer(name)

    def prepare(self, name: str) -> dict[str, Any]:
        """Have the fits that a run keeps looked at, so that the next number of groups is there when it is asked for."""
        run = self._run(name)
        summary = find_summary(str(run))
        state = read_state(run, summary)
        table = self._table_of(run, summary, state)
        with lock_of(run):
            if not (run / STATE).exists():
                write_state(run, state)  # says of which run the answers will be
        self.numbers.prepare(name, run, summary, table, state["entries"][state["at"]]["version"])
        return {}

    def change(self, name: str, given: Any, revision: int) -> dict[str, Any]:
        """Begin a change of the groups by hand."""
        what, run = changes.change_of(given), self._run(name)
        summary = find_summary(str(run))
        self._now(name)
        with lock_of(run):
            state = at_revision(run, summary, revision)
            before, version = state["entries"][state["at"]]["version"], new_version(run)
            (run / version).mkdir(parents=True)
        table = self._table_of(run, summary, state)
        lines = changes.lines_of("/".join(filter(None, (name, before))), table, what, f"{name}/{version}")
        order = {
            "do": "change",
            "from": str(version_folder(run, before)),
            "to": str(run / version),
            "table": None if table is None else str(self.place.table(table)),
            "change": what,
        }
        entry = Step(changes.words_of(what), version=version, **lines)

        def end(task: Task) -> None:
            del task
            changed(run, summary, revision, lambda state: with_entry(state, entry))

        if {"names", "colours"} & set(what):  # no rows are looked at: it takes a moment
            changes.change(order)
            changed(run, summary, revision, lambda state: with_entry(state, entry))
            return self.answer(name)
        return self.tasks.start(order, name, {"what": "change", **lines}, end).to_dict()

    def step(self, name: str, at: int, revision: int) -> dict[str, Any]:
        """Go to another entry of the history: undo, redo."""
        run = self._run(name)
        summary = find_summary(str(run))

        def edit(state: dict[str, Any]) -> None:
            if not 0 <= at < len(state["entries"]):
                raise UsageError("no-entry", "there is no such entry of the history", do="Load the page anew")
            version_folder(run, state["entries"][at]["version"])
            state["at"] = at

        changed(run, summary, revision, edit)
        return self.answer(name)

    def rows(self, name: str, version: str, query: rows.Query) -> dict[str, Any]:
        run = self._run(name)
        self._ensure_cells(run)
        return rows.rows(run, self._with_rows(name, run, version), query)

    def _with_rows(self, name: str, run: Path, version: str) -> Path:
        """The folder of a version, once the groups of its rows are written."""
        folder = version_folder(run, version)
        if any((folder / file).exists() for file in ASSIGNMENTS):
            return folder
        return self.numbers.whole(name, run, version)

    def _ensure_cells(self, run: Path) -> None:
        """Keep the cells of a run that the command line wrote, where its table is here."""
        if rows.has_cells(run) or self.read_only:
            return
        from ilk.table.out_of_core.memory_limit import open_table

        summary = find_summary(str(run))
        table = self._table_of(run, summary, read_state(run, summary))
        if table is None:
            return
        with lock_of(run):
            if rows.has_cells(run):
                return
            try:
                read = open_table(
                    str(self.place.table(table)), None, **(summary["options"].get("reading") or {})
                )
                if read.n_rows == summary["table"]["rows"]:
                    rows.write_cells(read, run)
            except IlkError:  # the groups are shown without cells
                return

    def row(self, name: str, version: str, number: int) -> dict[str, Any]:
        """One row and why it is where it is."""
        run = self._run(name)
        folder = self._with_rows(name, run, version)
        found = rows.row(run, folder, number)
        placed = {key: found["cells"][key] for key in found["own"]} | {"row": number}
        cells = {key: value for key, value in found["cells"].items() if key not in found["own"]}
        summary = find_summary(str(folder))
        numeric = {f["column"] for g in summary["groups"] for f in g["facts"] if f["type"] == "number"}
        told = {key: _number(value) if key in numeric else value for key, value in cells.items()}
        return {
            "row": number,
            "placed": placed,
            "cells": cells,
            "text": row_text(summary, placed, told, NARROW),
        }

    def compare(self, first: str, second: str) -> dict[str, Any]:
        """Two runs as they are shown now: how far they agree, who moved."""
        paths = [self._now(name) for name in (first, second)]
        found = compared(str(paths[0]), str(paths[1]), None)
        document = found.document
        for side, name in (("first", first), ("second", second)):
            document[side]["source"] = name
        every = comparison.rows_of(found.first, found.second, document, document["matched_by"])
        names = [name for name in every if name != "moved"]
        some = np.flatnonzero(every["moved"] == True)[:MOVED]  # noqa: E712  None where a row has no group
        return {
            "document": document,
            "text": comparison_text(document, PLAIN),
            "columns": names,
            "rows": [[every[name][i] for name in names] for i in some],
            "cautions": [c[1] for c in found.cautions],
        }

    def version(self, name: str, version: str) -> tuple[Path, Path]:
        """The folders of a run and of a version of it, whole."""
        run = self._run(name)
        return run, self.numbers.whole(name, run, version)

    def _now(self, name: str) -> Path:
        """What is shown of a run, whole."""
        run = self._run(name)
        state = read_state(run, find_summary(str(run)))
        return self.numbers.whole(name, run, state["entries"][state["at"]]["version"])

    def check(self, name: str, table: str) -> dict[str, Any]:
        """New rows against the model of a run: drift, and their groups."""
        model = find_model(str(self._now(name)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            document = checked(model, model.read(str(self.place.table(table))), "missing")
        return {"document": document, "text": check_text(document, PLAIN)}


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
