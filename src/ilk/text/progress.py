"""How far a run is, from reading the table to writing the report: a bar of tqdm, or a line a stage.

On a terminal one line is rewritten and gone when the run is over; in a notebook it is a widget; into a file or a pipe
goes one line for each stage, however much is reported.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from types import TracebackType
from typing import Any, TextIO

from ilk.fitting.deadline import Deadline
from ilk.report.figures import value_text
from ilk.text.layout import Surface

TICK = 0.5  # seconds between two looks at the clock
SILENCE = 1.0  # seconds without a report after which the line shows that time goes on
WAITING = "{desc}  {elapsed}"
COUNTING = "{desc}  {n_fmt} passes%s  {elapsed}"
FILLING = "{desc}  {bar:12} {n_fmt}/{total_fmt}%s  {remaining} left"


class Meter:
    """A callback of `ilk.cluster`, and a context in which its line is rewritten even while nothing is reported."""

    def __init__(self, stream: TextIO | None = None, surface: Surface | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.surface = surface or Surface(encoding=getattr(self.stream, "encoding", None) or "ascii")
        self.notebook = stream is None and in_notebook()
        self.rewritten = self.notebook or stream is not None or self.stream.isatty()
        self.stage, self.quiet = "", Deadline.after(SILENCE)
        self._bar: Any = None
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Meter:
        self.now("reading")
        if self.rewritten and not self.notebook:  # a widget is written to by the thread of its cell alone
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            if self._bar is not None:
                self._bar.close()

    def __call__(self, progress: Any) -> None:
        self.quiet = Deadline.after(SILENCE)
        if progress.stage != "fitting":
            self.now(progress.stage)
            return
        best = "" if progress.best_bic is None else f"  best BIC {value_text(progress.best_bic)}"
        what = f"K {progress.k} {progress.method}" if progress.total else progress.method
        form = (FILLING if progress.total else COUNTING) % best
        self._show("fitting", f"fitting  {what}", form, (progress.done, progress.total))

    def now(self, stage: str) -> None:
        """A stage of which nothing is known but that it goes on."""
        self._show(stage, stage, WAITING, (0, 0))

    def _show(self, stage: str, text: str, form: str, figures: tuple[int, int]) -> None:
        with self._lock:
            begins, self.stage = stage != self.stage, stage
            try:
                if not self.rewritten:
                    if begins:
                        print(f"ilk: {stage}", file=self.stream, flush=True)
                    return
                self._rewrite(self.surface.fit(text), form, figures, begins)
            except (OSError, ValueError):  # nobody reads it any more
                self.rewritten = False

    def _rewrite(self, text: str, form: str, figures: tuple[int, int], begins: bool) -> None:
        done, total = figures
        form = form.replace("{bar:12}", "{bar}") if self.notebook else form
        if self._bar is None:
            self._bar = self._made(text, form)
        elif self.notebook and (total or None) != self._bar.total:
            self._bar.reset(total=total or None)  # another widget
        if begins:
            self._bar.start_t = self._bar.last_print_t = time.time()  # each stage has a clock of its own
        self._bar.bar_format, self._bar.n, self._bar.total = form, done, total or None
        self._bar.set_description_str(text)

    def _made(self, text: str, form: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets a notebook has a line of text, which will do
            if self.notebook:
                from tqdm.auto import tqdm
            else:
                from tqdm.std import tqdm

        class Bar(tqdm):  # type: ignore[misc,valid-type,unused-ignore]
            monitor_interval = 0  # our own thread looks at the clock

        plain = not self.surface.encoding.lower().startswith("utf")
        size = {} if self.notebook else {"file": self.stream, "ncols": self.surface.columns, "ascii": plain}
        return Bar(desc=text, bar_format=form, leave=False, **size)

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            if self.quiet.over:
                with self._lock:
                    if self._bar is not None and self.rewritten:
                        self._bar.refresh()


def in_notebook() -> bool:
    """Whether a notebook runs this; nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})
