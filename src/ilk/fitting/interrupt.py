"""Ctrl-C, remembered: an exception can be caught on its way by a loop that keeps what it has reached, or be lost in a
callback; that there was a signal must not be.

While a job listens, signals do what they did before (raise KeyboardInterrupt) and leave a mark, which every deadline
counts as its end. A job that is done asks once more.

Once there is a model to keep, a signal raises only where somebody waits for it with that model in hand (`exposed`);
anywhere else it would be lost on the way, and the mark is enough. Who insists (`INSISTING` signals) is let out.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
INSISTING = 3
_marks: list[int] = []
_open: list[bool] = [
    True
]  # whether a signal raises, the last entry for now; of the main thread, which alone hears


def keep() -> None:
    """There is a model from now on."""
    if _hears():
        _open[0] = False


@contextlib.contextmanager
def exposed() -> Iterator[None]:
    """Where a signal raises, since the caller takes it with what was found so far."""
    depth = len(_open)
    if _hears():
        _open.append(True)
    try:
        yield
    finally:
        if _hears():
            del _open[depth:]


def _hears() -> bool:
    return threading.current_thread() is threading.main_thread()


def heard() -> bool:
    """Whether a signal to stop has come while a job was listening."""
    return bool(_marks)


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Remember the signals that have a Python handler; in threads other than the main one there are none to hear."""
    old: dict[int, Any] = {}
    before = list(_open)
    if _hears():
        _open[:] = [True]
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
        if _hears():
            _open[:] = before


def _marking(handler: Any) -> Any:
    def mark(number: int, frame: FrameType | None) -> Any:
        _marks.append(number)
        return handler(number, frame) if _open[-1] or len(_marks) >= INSISTING else None

    return mark
