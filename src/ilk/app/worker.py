"""The process that fits: one order on standard input, lines of JSON on standard output, then the answers at other K.

`stop` on standard input ends a fit as Ctrl-C does: the best so far is written. When the server is gone, a fit that has
begun is finished and written, and nothing else is begun.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import math
import os
import queue
import shutil
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

BACKGROUND = 5  # by how much the answers at other K stand back
AROUND = 4  # K on either side of the answer that are tested without being asked for
Step = tuple[Callable[[int], str | None], int]


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
        {"fit": _fit, "change": _change, "others": _others}[asked["do"]](asked, line)
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
    from ilk.analysis.other_k import Searched, kept_models
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
    try:
        fits = kept_models(findings, result)
    except KeyboardInterrupt:
        result, fits = result.stopped(), {}
    parquet = _in_parquet(asked["table"])
    summary = write_all(result, str(folder), force=True, parquet=parquet, fits=fits)
    line.busy.clear()
    line.tell(done={"interrupted": summary["interrupted"], "k": summary["chosen"]["k"]})
    if summary["interrupted"] or asked.get("alone") or line.over.is_set():
        return
    from ilk.app.history import mark_of
    from ilk.app.rows import write_cells

    write_cells(result.table, folder)
    line.tell(cells=True)
    if not job.reading:
        job = replace(job, data=result.table)
    searched = None if findings is None else Searched.of(findings)
    _other_k(_Maker(job, folder, searched, fits, result.model, parquet, mark_of(folder)), line)


def _others(asked: dict[str, Any], line: Line) -> None:
    """The answers at other K of a run that is there, of the fits that it keeps."""
    from ilk.analysis.other_k import kept_ks, read_fit
    from ilk.analysis.regroup import searched_again
    from ilk.app.history import mark_of

    folder, first = Path(asked["folder"]), asked["first"]
    mark = mark_of(folder)
    try:
        searched, own = searched_again(folder, asked["table"])
        fits = {k: read_fit(folder, k) for k in kept_ks(folder)}
    except Exception as error:
        if first is not None:
            line.tell(unmade={"k": first, **_said(error)})
        raise
    line.tell(done={})
    parquet = (folder / "assignments.parquet").exists()
    _other_k(_Maker(searched.job, folder, searched, fits, own, parquet, mark), line, first)


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


@dataclass(frozen=True)
class _Maker:
    """Makes the answers at other K: of the fits that the search kept, else by a fit as `--k` makes it."""

    job: Any
    folder: Path
    searched: Any
    fits: Mapping[int, Any]
    own: Any  # the model of the run
    parquet: bool
    mark: str  # of the run that the fits are of

    def steps(self) -> list[Step]:
        """A first look at all fits that are kept, then the whole answers of the K nearby."""
        from ilk.analysis.folder import find_summary
        from ilk.app.history import ks_of

        summary = find_summary(str(self.folder))
        own = int(summary["chosen"]["k"])
        rest = sorted({*ks_of(summary)} - {own}, key=lambda k: (abs(k - own), k))
        first: list[Step] = [(self.look, k) for k in rest if k in self.fits]
        return first + [(self.make, k) for k in rest if abs(k - own) <= AROUND]

    def out_of_date(self) -> bool:
        """Whether another run was written over the one that this is about."""
        from ilk.app.history import mark_of

        return mark_of(self.folder) != self.mark

    def look(self, k: int) -> str | None:
        """What is seen of a fit at once; the groups of many rows are written with the whole answer."""
        from ilk.analysis.other_k import glance_at_k
        from ilk.analysis.run_folder import HURRIED_ROWS
        from ilk.app.history import glance_folder, has_glance, has_k

        if k not in self.fits or has_k(self.folder, k) or has_glance(self.folder, k):
            return None
        made = glance_at_k(self.searched, self.fits[k], self.own)
        few = made.table.n_rows <= HURRIED_ROWS
        return self._written(made, glance_folder(self.folder, k), "made", assignments=few)

    def make(self, k: int) -> str | None:
        """The answer with its resamples."""
        from ilk.analysis.other_k import at_k
        from ilk.analysis.run import run
        from ilk.app.history import glance_folder, has_k, k_folder

        if has_k(self.folder, k):
            return None
        if k in self.fits:
            made = at_k(self.searched, self.fits[k], self.own)
        else:
            made = run(replace(self.job, k=k, match_to=str(self.folder), callback=None, budget=None))
        word = self._written(made, k_folder(self.folder, k), "tested")
        shutil.rmtree(glance_folder(self.folder, k), ignore_errors=True)
        return word

    def _written(self, made: Any, to: Path, word: str, **how: Any) -> str | None:
        from ilk.analysis.run_folder import write_run

        if self.out_of_date():
            return None
        write_run(made, str(to), force=True, parquet=self.parquet, **how)
        if not self.out_of_date():
            return word
        shutil.rmtree(to, ignore_errors=True)  # it came too late, and is of another run
        with contextlib.suppress(OSError):
            to.parent.rmdir()
        return None


def _other_k(maker: _Maker, line: Line, first: int | None = None) -> None:
    """The answers at other K, the nearest first, each a run folder within the run; one that is asked for comes next."""
    if hasattr(os, "nice"):
        os.nice(BACKGROUND)  # nobody waits: fits that somebody waits for come first
    steps = maker.steps()
    if first is not None:
        line.wanted.put(first)
    while not line.over.is_set():
        with contextlib.suppress(queue.Empty):
            k = line.wanted.get_nowait()
            steps = [(maker.look, k), (maker.make, k), *steps]
        if not steps or maker.out_of_date():
            break
        do, k = steps.pop(0)
        line.tell(making=k)
        try:
            word = do(k)
            if word is not None:
                line.tell(**{word: k})
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
