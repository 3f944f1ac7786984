"""The numbers of groups to try, from what a user may give as `k`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ilk.errors import Option, UsageError

K_MOST = 9
ROWS_PER_GROUP = (
    4  # a table of n rows is searched up to K = n / 4: beyond, groups of one or two rows explain all
)


def k_range(k: object, n_rows: int) -> tuple[int, ...]:
    """The K to try: "auto", a number, or a range or list of numbers.

    >>> k_range("auto", 344), k_range(3.0, 344), k_range(range(2, 5), 344)
    ((1, 2, 3, 4, 5, 6, 7, 8, 9), (3,), (2, 3, 4))
    """
    if isinstance(k, str):
        if k != "auto":
            raise _bad_k(k)
        return tuple(range(1, max(1, min(K_MOST, n_rows // ROWS_PER_GROUP)) + 1))
    if isinstance(k, (range, list, tuple)):
        wanted = tuple(_whole(one) for one in k)
        if not wanted or len(set(wanted)) < len(wanted) or list(wanted) != sorted(wanted):
            given, good = Option("k", k), Option("k", range(2, 10))
            raise UsageError(
                "bad-k",
                f"{given} is empty, reversed or repeats itself",
                do=f"Give {good}",
                options=[given, good],
            )
    else:
        wanted = (_whole(k),)
    possible = tuple(one for one in wanted if one <= n_rows)
    if not possible:
        raise NoRowsForGroups(wanted[0], n_rows)
    return possible


def k_most(k: object, ks: tuple[int, ...], n_rows: int) -> int:
    """The largest K that a search may reach: the last that was asked for, and with "auto" what the rows allow.

    >>> k_most("auto", (1, 2, 3, 4, 5, 6, 7, 8, 9), 344), k_most(range(2, 5), (2, 3, 4), 344)
    (86, 4)
    """
    return max(ks[-1], n_rows // ROWS_PER_GROUP) if isinstance(k, str) else ks[-1]


class NoRowsForGroups(UsageError):
    """More groups asked for than there are rows; the table is what is refused, so the exit code is 3."""

    exit_code = 3

    def __init__(self, k: int, n_rows: int) -> None:
        super().__init__(
            "fewer-rows-than-groups",
            f"the table has {n_rows} rows, fewer than the {k} groups asked for",
            do="Ask for fewer groups",
        )


def _whole(k: object) -> int:
    number = k.item() if isinstance(k, np.generic) else k
    if isinstance(number, bool) or not isinstance(number, (int, float)) or number != number:
        raise _bad_k(k)
    if math.isinf(number) or number != int(number) or number < 1:
        raise _bad_k(k)
    return int(number)


def _bad_k(k: object) -> UsageError:
    given = Option("k", k)
    return UsageError(
        "bad-k",
        f"{given} is not a number of groups",
        do='Give a whole number from 1, a range, or "auto"',
        options=[given],
    )


def ladder(ks: Sequence[int]) -> tuple[int, ...]:
    """The K that are fitted: those asked for, and those below, from which components are cut in two.

    >>> ladder((3,)), ladder((2, 4)), ladder((40,))
    ((1, 2, 3), (1, 2, 3, 4), (1, 40))
    """
    below = range(1, ks[-1] if ks[-1] <= K_MOST else 2)
    return tuple(sorted({*below, *ks}))
