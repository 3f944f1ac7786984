"""Group sizes under control: small groups join the one in which their rows cost least, full groups hand rows on.

Sizes count rows, whatever their weight. A limit from above gives the cheapest labelling of all that keep it: rows
leave full groups along the cheapest chains of moves (successive shortest paths; Ahuja, Magnanti and Orlin, Network
Flows, 1993, section 9.7). The model stays as it is, so new rows get their best group whatever its size.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ilk.engines.base import Rows
from ilk.errors import Caution, NoModelError, Option, UsageError
from ilk.model.grouped import Grouped, visit_costs
from ilk.table.block import Array

DEAREST = 1e300  # stands for an infinite cost


@dataclass(frozen=True)
class Joined:
    """A group that was too small: one of its pieces, its rows, and what it costs them to be in the other group."""

    piece: int
    rows: int
    cost: float


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """What the wish for sizes changed: groups joined, rows moved from their best group (from, to, rows), the cost."""

    least: int | None
    most: int | None
    unit: str
    joined: tuple[Joined, ...] = ()
    moves: tuple[tuple[int, int, int], ...] = ()
    cost: float = 0.0  # of the rows moved

    @property
    def n_moved(self) -> int:
        return sum(rows for _, _, rows in self.moves)

    def to_dict(self, group_of: Array, letters: Sequence[str]) -> dict[str, Any]:
        """As the summary holds it."""
        return {
            "min_size": self.least,
            "max_size": self.most,
            "unit": self.unit,
            "joined": [
                {"rows": one.rows, "into": letters[group_of[one.piece]], "cost": one.cost}
                for one in self.joined
            ],
            "moved": self.n_moved,
            "moves": [{"from": letters[a], "to": letters[b], "rows": rows} for a, b, rows in self.moves],
            "cost": self.cost,
        }

    def cautions(self, group_of: Array, letters: Sequence[str]) -> list[Caution]:
        """The same in words."""
        made = list[Caution]()
        for one in self.joined:
            rows = f"{one.rows} row{'s' * (one.rows != 1)}"
            text = (
                f"a group of {rows}, fewer than {self.least}, was merged into {letters[group_of[one.piece]]}"
            )
            made.append(
                Caution("min-size", f"{text}, at {one.cost / max(1, one.rows):.2f} {self.unit} a row")
            )
        if self.n_moved:
            text = f"{self.n_moved} rows moved from their best group, so that none has more than {self.most}"
            each = self.cost / self.n_moved
            made.append(Caution("max-size", f"{text}: {self.cost:.4g} {self.unit} in all, {each:.2g} a row"))
        return made


def check_sizes(least: Any, most: Any, n_rows: int) -> None:
    """Refuse sizes that cannot be."""
    for name, value in (("min_size", least), ("max_size", most)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            given = Option(name, value)
            raise UsageError(
                "bad-size",
                f"{given} is not a number of rows",
                do="Give a whole number from 1",
                options=[given],
            )
    low, high = Option("min_size", least), Option("max_size", most)
    if least is not None and most is not None and least > most:
        raise UsageError("bad-size", f"{low} is above {high}", do="Give sizes in order", options=[low, high])
    if least is not None and least > n_rows:
        raise UsageError(
            "bad-size", f"{low}, and the table has {n_rows} rows", do="Give a smaller one", options=[low]
        )


def least_groups(most: int | None, n_rows: int) -> int:
    """How many groups it takes to hold all rows.

    >>> least_groups(40, 100), least_groups(None, 100)
    (3, 1)
    """
    return 1 if most is None else -(-n_rows // most)


def join_small(rows: Rows, grouped: Grouped, least: int | None) -> tuple[Grouped, tuple[Joined, ...]]:
    """The groups after all with fewer than `least` rows have joined others, the smallest first."""
    if least is None or grouped.n_groups == 1:
        return grouped, ()
    costs = group_costs(rows, grouped)
    group_of, made = grouped.group_of.copy(), []
    while costs.shape[1] > 1:
        label = costs.argmin(axis=1)
        size = np.bincount(label, minlength=costs.shape[1])
        small = int(np.argmin(size))
        if size[small] >= least:
            break
        mine = label == small
        total = costs[mine].sum(axis=0)
        total[small] = np.inf
        into = int(np.argmin(total)) if mine.any() else int(np.argmax(size))
        rise = float((costs[mine, into] - costs[mine, small]).sum())
        made.append(Joined(int(np.flatnonzero(group_of == small)[0]), int(mine.sum()), rise))
        pair = costs[:, [small, into]]
        costs[:, into] = -np.logaddexp.reduce(-pair, axis=1) if grouped.soft else pair.min(axis=1)
        costs = np.delete(costs, small, axis=1)
        group_of[group_of == small] = into
        group_of[group_of > small] -= 1
    return replace(grouped, group_of=group_of), tuple(made)


def group_costs(rows: Rows, grouped: Grouped) -> Array:
    """Cost of every row in every group, finite throughout."""
    costs = np.concatenate([*rows.scan(visit_costs, grouped)])
    return np.where(np.isfinite(costs), costs, DEAREST)


def within(costs: Array, label: Array, most: int) -> Array:
    """The labels of least cost with at most `most` rows in each group, from those of least cost without that limit.

    >>> costs = np.array([[0.0, 3.0], [0.0, 1.0], [0.0, 2.0], [5.0, 0.0]])
    >>> within(costs, costs.argmin(axis=1), 2).tolist()
    [0, 1, 0, 1]
    """
    n_groups = costs.shape[1]
    if n_groups * most < len(costs):
        raise NoModelError(
            "no-room",
            f"{n_groups} groups of at most {most} rows hold {n_groups * most} of {len(costs)} rows",
            do="Ask for more groups, or allow larger ones",
        )
    moves = _Moves(costs, np.array(label, dtype=np.intp))
    size = np.bincount(moves.label, minlength=n_groups)
    edges = np.array([[moves.cheapest(g, h)[0] for h in range(n_groups)] for g in range(n_groups)])
    while (size > most).any():
        path = _cheapest_path(edges, size > most, size < most)
        for one, other in pairwise(path):
            moves.move(one, other)
        size[path[0]] -= 1
        size[path[-1]] += 1
        for g in path:
            edges[g] = [moves.cheapest(g, h)[0] for h in range(n_groups)]
    return moves.label


def _cheapest_path(edges: Array, full: Array, free: Array) -> list[int]:
    """Groups along the cheapest chain of moves from a full group to one with room (Bellman and Ford)."""
    distance = np.where(full, 0.0, np.inf)
    before = np.full(len(distance), -1)
    for _ in range(len(distance)):
        through = distance[:, None] + edges
        origin = through.argmin(axis=0)
        nearest = through[origin, np.arange(len(distance))]
        better = nearest < distance - 1e-12 * np.abs(np.where(np.isfinite(distance), distance, 0.0))
        if not better.any():
            break
        distance, before = np.where(better, nearest, distance), np.where(better, origin, before)
    path = [int(np.argmin(np.where(free, distance, np.inf)))]
    while before[path[0]] >= 0:
        path.insert(0, int(before[path[0]]))
    return path


class _Moves:
    """The cheapest row to move from each group to each other: sorted lists of the first members, heaps of the later."""

    def __init__(self, costs: Array, label: Array) -> None:
        self.costs, self.label = costs, label
        self.first = {g: np.flatnonzero(label == g) for g in range(costs.shape[1])}
        self.order: dict[tuple[int, int], tuple[Array, Array]] = {}
        self.at: dict[tuple[int, int], int] = {}
        self.late: dict[tuple[int, int], list[tuple[float, int]]] = {}

    def cheapest(self, one: int, other: int) -> tuple[float, int]:
        """What the cheapest move costs, and its row; infinite where there is none."""
        if one == other:
            return np.inf, -1
        key = one, other
        if key not in self.order:
            rows = self.first[one]
            rise = self.costs[rows, other] - self.costs[rows, one]
            order = np.argsort(rise, kind="stable")
            self.order[key], self.at[key] = (rise[order], rows[order]), 0
        rise, rows = self.order[key]
        at = self.at[key]
        while at < len(rows) and self.label[rows[at]] != one:
            at += 1
        self.at[key] = at
        heap = self.late.setdefault(key, [])
        while heap and self.label[heap[0][1]] != one:
            heapq.heappop(heap)
        found = (float(rise[at]), int(rows[at])) if at < len(rows) else (np.inf, -1)
        return min(found, heap[0]) if heap else found

    def move(self, one: int, other: int) -> None:
        """Make the cheapest move."""
        row = self.cheapest(one, other)[1]
        self.label[row] = other
        for third in range(self.costs.shape[1]):
            if third != other:
                rise = float(self.costs[row, third] - self.costs[row, other])
                heapq.heappush(self.late.setdefault((other, third), []), (rise, row))


def limited(rows: Rows, grouped: Grouped, label: Array, sizing: Sizing) -> tuple[Array, Sizing]:
    """Labels that keep the limit from above, and what that changed."""
    if sizing.most is None or np.bincount(label).max() <= sizing.most:
        return label, sizing
    costs = group_costs(rows, grouped)
    kept = within(costs, label, sizing.most).astype(label.dtype)
    everyone = np.arange(len(label))
    rise = float((costs[everyone, kept] - costs[everyone, label]).sum())
    flow = np.zeros((costs.shape[1],) * 2, dtype=int)
    np.add.at(flow, (label, kept), 1)
    np.fill_diagonal(flow, 0)
    moves = tuple((int(a), int(b), int(flow[a, b])) for a, b in zip(*np.nonzero(flow), strict=True))
    return kept, replace(sizing, moves=moves, cost=rise)
