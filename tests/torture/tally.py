"""How many were tried, what went wrong, and a limit on processor time for each attempt."""

from __future__ import annotations

import contextlib
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Where a disk is not what is tried, files are written to memory: a sync there takes no time.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


class TooSlow(BaseException):
    """More of the processor than an attempt may take."""


@dataclass
class Tally:
    """One line of the page: what was tried, how attempts ended, the first input of each kind of failure."""

    what: str
    ended: Counter[str] = field(default_factory=Counter)
    failures: dict[str, tuple[int, object]] = field(default_factory=dict)
    seconds: float = 0.0
    modules: set[str] = field(default_factory=set)  # of ilk, that the attempts have loaded

    @property
    def tried(self) -> int:
        return sum(self.ended.values())

    def failed(self, how: str, case: object) -> None:
        times, first = self.failures.get(how, (0, case))
        self.failures[how] = times + 1, first

    @property
    def n_failures(self) -> int:
        return sum(times for times, _ in self.failures.values())

    def lines(self) -> list[str]:
        ended = ", ".join(f"{count:,} {how}" for how, count in self.ended.most_common())
        return [
            f"{self.what}: {self.tried:,} tried in {self.seconds:.0f} s ({ended}), {self.n_failures} failures",
            *(f"   {times} x {how} (first: {first})" for how, (times, first) in self.failures.items()),
        ]

    def as_plain(self) -> dict[str, Any]:
        """For another process."""
        return vars(self) | {"ended": dict(self.ended), "modules": sorted(self.modules)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Tally:
        failures = {how: (times, first) for how, (times, first) in plain["failures"].items()}
        told = {"ended": Counter(plain["ended"]), "failures": failures, "modules": set(plain["modules"])}
        return cls(**plain | told)


class Clock:
    """Time that may be spent; at least one attempt is made. It is over at once where `ended` is set."""

    ended = False

    def __init__(self, seconds: float) -> None:
        self.began, self.seconds, self.asked = time.monotonic(), seconds, 0

    def more(self) -> bool:
        self.asked += 1
        return self.asked == 1 or (self.spent < self.seconds and not Clock.ended)

    @property
    def spent(self) -> float:
        return time.monotonic() - self.began


def end_early(*_: object) -> None:
    """For a signal: the attempt under way is the last, and what was tried counts."""
    Clock.ended = True


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """At most so much of the processor for the block: others may be at work too."""

    def stop(*_: object) -> None:
        raise TooSlow

    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def named(error: BaseException) -> str:
    """What was raised, and where in our code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/ilk/" in frame.filename.replace("\\", "/")] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}" if ours else ""
    return f"{type(error).__name__}: {str(error)[:90]} @ {place}"
