"""Habits of scikit-learn that estimators keep: `n_jobs`, `n_init="auto"`, `verbose`, a function as `init`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.errors import UsageError
from ilk.estimators.base import Callback, given_start, whole_number
from ilk.fitting.loop import Event
from ilk.random import stream
from ilk.table.block import Array
from ilk.threads import threads_or_jobs


def threads_of(estimator: Any) -> int | None:
    """What the user gave, in either spelling."""
    return threads_or_jobs(estimator.threads, estimator.n_jobs)


def n_starts_of(n_init: object, default: int) -> int:
    """A number of starts; "auto" is the default of the estimator."""
    if isinstance(n_init, str):
        if n_init != "auto":
            raise UsageError(
                "bad-n_init", f"n_init={n_init!r}", do='Give a whole number of 1 or more, or "auto"'
            )
        return default
    return whole_number("n_init", n_init)


def callback_of(estimator: Any) -> Callback | None:
    """The user's callback, and with `verbose` a line on stderr for each pass."""
    verbose = estimator.verbose
    loud = verbose if isinstance(verbose, (bool, np.bool_)) else whole_number("verbose", verbose, least=0)
    if not loud:
        return estimator.callback  # type: ignore[no-any-return]
    name, theirs = type(estimator).__name__, estimator.callback

    def tell(event: Event) -> None:
        running = f"{event.n_running} of {event.n_starts} starts running"
        print(
            f"{name}: pass {event.pass_number}, {running}, cost {event.best_cost:.6g}, {event.seconds:.1f} s",
            file=sys.stderr,
        )
        if theirs is not None:
            theirs(event)

    return tell


def called_starts(init: Callable[..., Any], rows: Rows, k: int, n_starts: int, seed: int) -> list[Array]:
    """Centres in the user's units from `init(X, n_clusters, random_state)`, called once for each start and checked."""
    table = rows.whole
    if table is None:
        raise UsageError(
            "start-needs-memory",
            "init is a function, which needs the rows in memory",
            do="Give the name of a start, or an array of centres",
        )
    made = []
    for number in range(n_starts):
        bits = stream(seed, "called start", number).bit_generator
        state = np.random.RandomState(bits)
        centres = np.asarray(init(table.raw.copy(), k, random_state=state))
        if centres.ndim != 2:
            raise UsageError(
                "bad-start",
                f"the function given as init returned shape {centres.shape}",
                do=f"Return centres of shape ({k}, {rows.n_columns})",
            )
        made.append(given_start(centres, rows, k))
    return made
