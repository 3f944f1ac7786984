"""Who is told how far a run is: the user's callback, a bar, lines on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ilk.errors import Option, UsageError, shown
from ilk.selection.progress import Progress, spoken

Tell = Callable[[Progress], None]


@contextmanager
def reporting(progress: Any, callback: Tell | None, verbose: int) -> Iterator[Tell | None]:
    """What a run calls: the callback, lines where `verbose`, and a bar, or the function given in its place."""
    told = spoken(callback, verbose)
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        given = Option("progress", shown(progress))
        raise UsageError(
            "bad-progress", f"{given} is no answer", do="Give True, False or a function", options=[given]
        )
    if callable(progress):
        yield _both(progress, told)
        return
    from ilk.text.progress import Meter, in_notebook

    if progress is False or (progress is None and not in_notebook()):
        yield told
        return
    with Meter() as bar:
        yield _both(bar, told)


def _both(one: Tell, other: Tell | None) -> Tell:
    def tell(progress: Progress) -> None:
        one(progress)
        if other is not None:
            other(progress)

    return tell
