"""How much time there is: one deadline is made where the user's limit is known, and passed down."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import inf

from ilk.fitting.interrupt import heard


@dataclass(frozen=True)
class Deadline:
    """A moment by which work should end, and since when its time is counted; both on the monotonic clock.

    >>> limit = Deadline.after(60)
    >>> limit.over, 59 < limit.left <= 60, limit.within(0).over
    (False, True, True)
    """

    end: float = inf
    began: float = field(default_factory=lambda: time.monotonic(), compare=False)  # looked up when asked

    @classmethod
    def none(cls) -> Deadline:
        """Time without end, counted from now."""
        return cls()

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """So many seconds from now; None stands for no limit."""
        return cls().till(seconds)

    def till(self, seconds: float | None) -> Deadline:
        """So many seconds from the beginning; None stands for no limit."""
        return Deadline(inf if seconds is None else self.began + seconds, self.began)

    def within(self, seconds: float = inf) -> Deadline:
        """The same end, or so many seconds from now where that is sooner; counted from now."""
        now = time.monotonic()
        return Deadline(min(self.end, now + seconds), now)

    def less(self, seconds: float) -> Deadline:
        """So many seconds sooner."""
        return Deadline(self.end - seconds, self.began)

    def part(self, share: float) -> Deadline:
        """A share of the time that is left; counted from now."""
        return self.within(share * self.left)

    @property
    def left(self) -> float:
        """Seconds to the end, 0 once it is over."""
        return max(0.0, self.end - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether the time has run out, or somebody asked to stop."""
        return heard() or time.monotonic() >= self.end

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began
