"""What a second thread is worth on this machine at this moment, whatever the program."""

from __future__ import annotations

import hashlib
import threading
import time

PIECE = bytes(4_000_000)
PIECES = 25


def _hash() -> None:
    for _ in range(PIECES):
        hashlib.sha256(PIECE).digest()  # releases the interpreter lock


def _seconds(threads: int) -> float:
    workers = [threading.Thread(target=_hash) for _ in range(threads)]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - began


def second_thread() -> float:
    """Work per second of two threads that share nothing, over that of one: 2.0 on two idle cores."""
    return 2.0 * _seconds(1) / _seconds(2)
