"""The process that fits: one order on standard input, lines of JSON on standard output, then the answers at other K.

`stop` on standard input ends a fit as Ctrl-C does: the best so far is written. When the server is gone, a fit that has
begun is finished and written, and nothing else is begun.
"""

from __future__ import annotations

import _thread
import json
import math
import os
import queue
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

BACKGROUND = 5  # by how much the answers at other K stand back
AROUND = 4  # K on either side of the answer that are made without being asked for


class Line:
    """The way back to the server, and what it has asked since."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.wanted: queue.Queue[int] = queue.Queue()
        self.over = threading.Event()
        self.busy = threading.Event()

    def tell(self, **what: Any) -> None:
        try:
            self.out.write(json.dumps(what) + "\n")
            self.out.flush()
        except OSError:
            self.over.set()

    def listen(self, lines: TextIO) -> None:
        for text in lines:
            word, _, rest = text.strip().partition(" ")
            if word == "k" and rest.isdigit():
                self.wanted.put(int(rest))
            elif word == "stop":
                self.over.set()
                if self.busy.is_set():
                    _thread.interrupt_main()
        self.over.set()


def main() -> None:
    """Import what a fit needs, wait for the order, and do it."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing but ours on the line
    import ilk.selection.given_labels  # noqa: F401  a long import, before anybody waits
    from ilk.app.rehearsal import rehearse_fit

    warnings.simplefilter("ignore")  # cautions are in the summary
    rehearse_fit()
    order = sys.stdin.readline()
    if not order:
        return
    asked = json.loads(order)
    line = Line(out)
    threading.Thread(target=line.listen, args=(sys.stdin,), daemon=True).start()
    try:
        (_fit if asked["do"] == "fit" else _change)(asked, line)
    except KeyboardInterrupt:
        line.tell(failed={"code": "stopped", "text": "stopped before there was anything to keep"})
    except Exception as error:
        line.tell(failed=_said(error))


def _said(error: Exception) -> dict[str, str]:
    from ilk.errors import IlkError, shown, typed

    if isinstance(error, IlkError):
        return {"code": error.code, "text": shown(typed(str(error), error.options), 2000)}
    if isinstance(error, MemoryError):
        return {"code": "out-of-memory", "text": "memory ran out: use fewer columns or rows"}
    return {"code": "bug", "text": f"an unexpected {type(error).__name__}: this is a bug in ilk"}


def _fit(asked: dict[str, Any], line: Line) -> None:
    from ilk.analysis.run import run_and_keep
    from ilk.analysis.run_folder import write_all
    from ilk.app.asked import job_of

    folder = Path(asked["folder"])
    job = job_of(
        Path(asked["table"]), asked["options"], callback=_teller(line, asked["options"].get("budget"))
    )
    line.busy.set()
    result, findings = run_and_keep(job)
    line.tell(progress={"stage": "writing"})
    summary = write_all(result, str(folder), force=True, parquet=_in_parquet(asked["table"]))
    line.busy.clear()
    line.tell(done={"interrupted": summary["interrupted"], "k": summary["chosen"]["k"]})
    if summary["interrupted"] or asked.get("alone") or line.over.is_set():
        return
    from ilk.app.rows import write_cells

    write_cells(result.table, folder)
    line.tell(cells=True)
    if hasattr(os, "nice"):
        os.nice(BACKGROUND)  # nobody waits: fits that somebody waits for come first
    _other_k(_Maker(job, result, findings, asked), line)


def _teller(line: Line, budget: float | None) -> Any:
    def tell(progress: Any) -> None:
        left = None
        if progress.total and progress.done and progress.stage == "fitting":
            left = progress.seconds / progress.done * (progress.total - progress.done)
        if budget is not None:
            left = max(min(left if left is not None else budget, budget - progress.seconds), 0.0)
        line.tell(
            progress={
                "stage": progress.stage,
                "done": progress.done,
                "total": progress.total,
                "method": progress.method,
                "k": progress.k,
                "bic": _finite(progress.best_bic),
                "seconds": progress.seconds,
                "left": _finite(left),
            }
        )

    return tell


def _finite(value: float | None) -> float | None:
    """None for what JSON has no word for: there is no best BIC before the first valid model."""
    return value if value is not None and math.isfinite(value) else None


def _in_parquet(table: str) -> bool:
    """Whether the groups of its rows are written as Parquet, as the table is."""
    return table.lower().endswith((".parquet", ".pq"))


class _Maker:
    """Makes the answers at other K: of the fits that the search kept, else by a fit as `--k` makes it."""

    def __init__(self, job: Any, result: Any, findings: Any, asked: dict[str, Any]) -> None:
        from ilk.analysis.other_k import Searched, kept_models, write_fits

        self.folder, self.parquet = Path(asked["folder"]), _in_parquet(asked["table"])
        self.job = replace(job, match_to=str(self.folder), callback=None, budget=None)
        if not job.reading:
            self.job = replace(self.job, data=result.table)
        self.result = result
        self.models = {} if findings is None else kept_models(findings, result.model)
        self.searched = None if findings is None else Searched.of(findings)
        write_fits(self.models, self.folder)

    def nearest(self) -> list[int]:
        """The K that are made without being asked for, the nearest first."""
        from ilk.app.history import ks_of

        rest = [k for k in ks_of(self.result.summary()) if 0 < abs(k - self.result.k) <= AROUND]
        return sorted(rest, key=lambda k: abs(k - self.result.k))

    def has(self, k: int) -> bool:
        from ilk.app.history import has_k

        return has_k(self.folder, k)

    def make(self, k: int) -> None:
        from ilk.analysis.other_k import at_k
        from ilk.analysis.run import run
        from ilk.analysis.run_folder import write_run
        from ilk.app.history import k_folder

        if k in self.models and self.searched is not None:
            made = at_k(self.searched, self.models[k], self.result.model)
        else:
            made = run(replace(self.job, k=k))
        write_run(made, str(k_folder(self.folder, k)), force=True, parquet=self.parquet)


def _other_k(maker: _Maker, line: Line) -> None:
    """The answers at the other K that were tried, the nearest first, each a run folder within the run."""
    rest = maker.nearest()
    while not line.over.is_set():
        try:
            k = line.wanted.get_nowait()
        except queue.Empty:
            if not rest:
                break
            k = rest.pop(0)
        if maker.has(k):
            continue
        line.tell(making=k)
        try:
            maker.make(k)
            line.tell(made=k)
        except Exception as error:  # there is no model of this K
            line.tell(unmade={"k": k, **_said(error)})
    line.tell(rested=True)


def _change(asked: dict[str, Any], line: Line) -> None:
    from ilk.app.changes import change

    line.busy.set()
    change(asked)
    line.busy.clear()
    line.tell(done={"interrupted": False})


if __name__ == "__main__":
    main()
