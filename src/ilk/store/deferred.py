"""Signals that wait: what must be whole is done before Ctrl-C, SIGTERM or SIGHUP raise."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Hold back the signals that have a Python handler until the block has ended; only the main thread hears any."""
    waiting: list[tuple[int, FrameType | None]] = []
    old: dict[int, Any] = {}
    with contextlib.suppress(ValueError):  # not the main thread
        for name in NAMES:
            number = getattr(signal, name, None)
            handler = None if number is None else signal.getsignal(number)
            if number is not None and callable(handler):
                signal.signal(number, lambda number, frame: waiting.append((number, frame)))
                old[number] = handler
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        if waiting:
            number, frame = waiting[0]
            old[number](number, frame)
