"""The process that fits: one order on standard input, lines of JSON on standard output, then the answers at other K.

`stop` on standard input ends a fit as Ctrl-C does: the best so far is written. When the server is gone, a fit that has
begun is finished and written, and nothing else is begun.
"""

from __future__ import annotations

import _thread
import json
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
    import ilk.analysis.run
    import ilk.selection.given_labels
    import ilk.selection.resampling  # noqa: F401  the longest imports, before anybody waits

    warnings.simplefilter("ignore")  # cautions are in the summary
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
    from ilk.analysis.run import run
    from ilk.analysis.run_folder import write_all
    from ilk.app.asked import job_of

    folder = Path(asked["folder"])
    job = job_of(
        Path(asked["table"]), asked["options"], callback=_teller(line, asked["options"].get("budget"))
    )
    line.busy.set()
    result = run(job)
    line.tell(progress={"stage": "writing"})
    summary = write_all(result, str(folder), force=True, parquet=_in_parquet(asked["table"]))
    line.busy.clear()
    line.tell(done={"interrupted": summary["interrupted"], "k": summary["chosen"]["k"]})
    if summary["interrupted"] or asked.get("alone") or line.over.is_set():
        return
    from ilk.app.rows import write_cells

    write_cells(result.table, folder)
    line.tell(cells=True)
    _other_k(job, result, asked, line)


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
                "bic": progress.best_bic,
                "seconds": progress.seconds,
                "left": left,
            }
        )

    return tell


def _in_parquet(table: str) -> bool:
    """Whether the groups of its rows are written as Parquet, as the table is."""
    return table.lower().endswith((".parquet", ".pq"))


def _other_k(job: Any, result: Any, asked: dict[str, Any], line: Line) -> None:
    """The answers at the other K that were tried, the nearest first, each a run folder within the run."""
    from ilk.analysis.run import run
    from ilk.analysis.run_folder import write_run
    from ilk.app.history import has_k, k_folder, ks_of

    folder = Path(asked["folder"])
    job = replace(job, match_to=str(folder), callback=None, budget=None)
    if not job.reading:
        job = replace(job, data=result.table)
    rest = [k for k in ks_of(result.summary()) if not has_k(folder, k)]
    rest = [k for k in rest if abs(k - result.k) <= AROUND]
    rest.sort(key=lambda k: abs(k - result.k))
    if hasattr(os, "nice"):
        os.nice(BACKGROUND)  # nobody waits: fits that somebody waits for come first
    while not line.over.is_set():
        try:
            k = line.wanted.get_nowait()
        except queue.Empty:
            if not rest:
                break
            k = rest.pop(0)
        if has_k(folder, k):
            continue
        line.tell(making=k)
        try:
            made = run(replace(job, k=k))
            write_run(made, str(k_folder(folder, k)), force=True, parquet=_in_parquet(asked["table"]))
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
