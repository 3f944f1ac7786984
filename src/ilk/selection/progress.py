"""What a search tells on its way: to the user's callback, and as lines of text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from ilk.errors import UsageError
from ilk.fitting.interrupt import heard


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What the `callback` of `cluster` and `select` is told.

    After each candidate; after each pass of a search whose end is not known, with `total` and `k` 0; and once as
    each later stage begins.

    Attributes
    ----------
    done : int
        Candidates, or passes, so far.
    total : int
        Candidates in all; 0 where that is not known.
    method : str
        Method of the last candidate.
    k : int
        Its number of groups; 0 where there is none yet.
    best_bic : None or float
        Lowest BIC so far.
    seconds : float
        Time since the search began.
    stage : str
        "fitting", "resampling" or "describing".
    line : str
        All this as a line of text.

    See Also
    --------
    Event : What the callback of an estimator is told.

    Examples
    --------
    >>> import ilk
    >>> told = []
    >>> found = ilk.select([[0.0], [1.0], [2.0], [7.0]], k=2, structures="E", callback=told.append)
    >>> told[-1].stage, told[-1].done == told[-1].total
    ('fitting', True)
    """

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
    except KeyboardInterrupt:
        if not heard():  # a mark was left, and every deadline is over
            raise
    except Exception as error:
        raise UsageError(
            "callback-failed",
            f"the callback raised {type(error).__name__}",
            do="Look at the error above this one",
        ) from error
