"""What a search tells on its way: to the user's callback, and as lines of text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from ilk.errors import UsageError


@dataclass(frozen=True)
class Progress:
    """What a callback of `ilk.cluster` is told after each candidate; after each pass of a search whose end is not
    known, and `total` and `k` are 0 then; and once as each later `stage` begins ("resampling", "describing")."""

    done: int
    total: int
    method: str
    k: int
    best_bic: float | None
    seconds: float
    stage: str = "fitting"

    @property
    def line(self) -> str:
        """The report as a line of text."""
        of_all = f" of {self.total}, K={self.k}" if self.total else ""
        best = "" if self.best_bic is None else f", best BIC {self.best_bic:.6g}"
        return f"ilk: {self.stage}, {self.method}, step {self.done}{of_all}{best}, {self.seconds:.1f} s"


def spoken(callback: Callable[[Progress], None] | None, verbose: int) -> Callable[[Progress], None] | None:
    """The user's callback, and with `verbose` a line on stderr for each report."""
    if isinstance(verbose, (str, float)) or verbose < 0:
        raise UsageError(
            "bad-verbose", f"verbose={verbose!r}", do="Give 0 for silence or 1 for a line a step"
        )
    if not verbose:
        return callback

    def tell(progress: Progress) -> None:
        print(progress.line, file=sys.stderr)
        if callback is not None:
            callback(progress)

    return tell


def told(callback: Callable[[Progress], None] | None, progress: Progress) -> None:
    """Tell the user's callback, if there is one; its errors are named as its own."""
    if callback is None:
        return
    try:
        callback(progress)
    except Exception as error:
        raise UsageError(
            "callback-failed",
            f"the callback raised {type(error).__name__}",
            do="Look at the error above this one",
        ) from error
