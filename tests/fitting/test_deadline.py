"""One deadline is passed down: its end never moves back, its time is counted anew where a step begins."""

from __future__ import annotations

import math

from ilk.fitting.deadline import Deadline


def test_no_limit_is_never_over():
    for none in (Deadline.none(), Deadline.after(None), Deadline.none().within()):
        assert none.left == math.inf
        assert not none.over
        assert none == Deadline.none()  # when it began is no part of it


def test_a_limit_of_no_time_is_over_at_once():
    limit = Deadline.after(0.0)
    assert limit.over
    assert limit.left == 0.0


def test_a_part_ends_no_later_than_the_whole():
    whole = Deadline.after(60.0)
    assert whole.within() == whole
    assert whole.within(600.0) == whole
    assert whole.within(1.0).end < whole.end
    assert whole.within().began >= whole.began


def test_time_is_counted_from_the_beginning(monkeypatch):
    now = iter([10.0, 13.0, 20.0])
    monkeypatch.setattr("ilk.fitting.deadline.time.monotonic", lambda: next(now))
    clock = Deadline(60.0, began=10.0)
    assert [clock.spent, clock.spent, clock.left] == [0.0, 3.0, 40.0]
