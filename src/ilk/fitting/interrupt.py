"""Ctrl-C, remembered: an exception can be caught on its way by a loop that keeps what it has reached, or be lost in a
callback; that there was a signal must not be.

While a job listens, signals do what they did before (raise KeyboardInterrupt) and leave a mark, which every deadline
counts as its end. A job that is done asks once more.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_marks: list[int] = []


def heard() -> bool:
    """Whether a signal to stop has come while a job was listening."""
    return bool(_marks)


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Remember the signals that have a Python handler; in threads other than the main one there are none to hear."""
    old: dict[int, Any] = {}
    with contextlib.suppress(ValueError):  # not the main thread
        for name in NAMES:
            number = getattr(signal, name, None)
            handler = None if number is None else signal.getsignal(number)
            if number is not None and callable(handler):
                signal.signal(number, _marking(handler))
                old[number] = handler
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        if old:
            _marks.clear()


def _marking(handler: Any) -> Any:
    def mark(number: int, frame: FrameType | None) -> Any:
        _marks.append(number)
        return handler(number, frame)

    return mark
