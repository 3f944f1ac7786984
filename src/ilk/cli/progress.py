"""The line on a terminal that says how far a run is, from reading the table to writing the report."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, TextIO

from ilk.fitting.deadline import Deadline
from ilk.text.layout import Surface
from ilk.text.progress import passes_line, progress_line, stage_line

TICK = 0.5  # seconds between two looks at the clock
SILENCE = 1.0  # seconds without a report after which the line shows that time goes on
CLEAR = "\r\x1b[K"


class Meter:
    """A callback of `ilk.cluster`, and a context in which its line is rewritten even while nothing is reported."""

    def __init__(self, stream: TextIO, surface: Surface) -> None:
        self.stream, self.surface = stream, surface
        self.stage = "reading"
        self.clock, self.quiet = Deadline.none(), Deadline.after(SILENCE)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Meter:
        self._write(self._waiting())
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._write("")

    def __call__(self, progress: Any) -> None:
        self.quiet, self.stage = Deadline.after(SILENCE), progress.stage
        if progress.stage != "fitting":
            self._write(self._waiting())
        elif progress.total:
            left = progress.seconds / progress.done * (progress.total - progress.done)
            what = f"K {progress.k} {progress.method}"
            self._write(progress_line(progress.done, progress.total, what, progress.best_bic, left))
        else:
            self._write(passes_line(progress.done, progress.method, progress.best_bic, progress.seconds))

    def now(self, stage: str) -> None:
        """A stage that the run itself does not report."""
        self.stage = stage
        self._write(self._waiting())

    def _waiting(self) -> str:
        return stage_line(self.stage, self.clock.spent)

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            if self.quiet.over:
                self._write(self._waiting())

    def _write(self, text: str) -> None:
        with self._lock:
            self.stream.write(CLEAR + self.surface.fit(text)[: self.surface.columns])
            self.stream.flush()
