"""Chunklets that exclude each other: which component each can have, and the cheapest way that was found.

Whether K components are enough is a colouring of a graph, which is decided by search; the cheapest one is sought by
branch and bound from a solution that is known, so that it is never dearer than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ilk.table.block import Array

COLOUR_STEPS = 20_000  # of the search for a colouring, for one set of chunklets
BOUND_STEPS = 5_000  # of branch and bound, for one set of chunklets and pass
SHRUNK = 200  # chunklets up to which a conflict is made as small as possible

Neighbours = list[set[int]]


@dataclass(frozen=True, eq=False)
class Apart:
    """A connected set of chunklets (`members`) that exclude each other by pairs; `colours` is one way to tell them
    apart, None where there is none (or, not `proven`, none was found), with the members in `conflict`."""

    members: Array
    neighbours: Neighbours  # places among the members
    colours: Array | None
    conflict: tuple[int, ...] = ()
    proven: bool = True

    def assigned(self, costs: Array, before: Array | None) -> Array:
        """A component for each member, the cheapest way that was found; `costs` (members, K)."""
        n = len(costs)
        if all(len(near) == n - 1 for near in self.neighbours):
            return np.asarray(linear_sum_assignment(costs)[1])
        assert self.colours is not None
        starts = [_best_names(self.colours, costs)] + ([] if before is None else [before])
        start = min(starts, key=lambda way: float(costs[np.arange(n), way].sum()))
        return _BranchAndBound(self.neighbours, costs).run(_eased(start, self.neighbours, costs))


def components_apart(pairs: Array, n: int, k: int) -> list[Apart]:
    """The sets of chunklets that exclude each other, each with a colouring in K colours if there is one."""
    pairs = np.unique(np.sort(pairs.reshape(-1, 2), axis=1), axis=0)
    if not len(pairs):
        return []
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    _, of_node = connected_components(graph, directed=False)
    made = []
    for number in np.unique(of_node[pairs[:, 0]]):
        members = np.flatnonzero(of_node == number)
        place = {int(node): i for i, node in enumerate(members)}
        neighbours: Neighbours = [set() for _ in members]
        for one, other in pairs[of_node[pairs[:, 0]] == number]:
            neighbours[place[int(one)]].add(place[int(other)])
            neighbours[place[int(other)]].add(place[int(one)])
        colours, proven = coloured(neighbours, k)
        if colours is None:
            core = _core(neighbours, k)[0]
            conflict = _shrunk(neighbours, core, k) if proven and len(core) <= SHRUNK else core
            made.append(Apart(members, neighbours, None, tuple(int(members[i]) for i in conflict), proven))
        else:
            made.append(Apart(members, neighbours, np.array(colours)))
    return made


def coloured(neighbours: Neighbours, k: int) -> tuple[list[int] | None, bool]:
    """A colouring in K colours, or None; and whether that is proven."""
    n = len(neighbours)
    colour = [-1] * n
    core, easy = _core(neighbours, k)
    steps, inside = 0, set(core)

    def next_one() -> int:
        """The one with the fewest colours left (DSATUR)."""
        open_ = [v for v in core if colour[v] < 0]
        return max(
            open_, key=lambda v: (len({colour[u] for u in neighbours[v]} - {-1}), len(neighbours[v] & inside))
        )

    stack: list[tuple[int, list[int]]] = []
    done = 0
    while done < len(core):
        vertex = next_one()
        taken = {colour[u] for u in neighbours[vertex]}
        top = max(colour) + 1  # a colour that nobody has is as good as any other
        stack.append((vertex, [c for c in range(min(top + 1, k)) if c not in taken]))
        while stack and not stack[-1][1]:
            colour[stack.pop()[0]] = -1
            if stack:
                colour[stack[-1][0]] = -1
        if not stack:
            return None, True
        steps += 1
        if steps > COLOUR_STEPS:
            return None, False
        colour[stack[-1][0]] = stack[-1][1].pop(0)
        done = len(stack)
    for vertex in reversed(easy):
        taken = {colour[u] for u in neighbours[vertex]}
        colour[vertex] = next(c for c in range(k) if c not in taken)
    return colour, True


def _core(neighbours: Neighbours, k: int) -> tuple[list[int], list[int]]:
    """Those that are left when whoever has fewer than K neighbours left goes, again and again; and those that went, in
    their order: coloured in the opposite one, they always find a colour."""
    left, gone = set(range(len(neighbours))), list[int]()
    while easy := [v for v in left if len(neighbours[v] & left) < k]:
        left.difference_update(easy)
        gone += easy
    return sorted(left), gone


def _shrunk(neighbours: Neighbours, core: list[int], k: int) -> list[int]:
    """A conflict of which nobody can be taken away."""
    kept = list(core)
    for vertex in core:
        rest = [v for v in kept if v != vertex]
        place = {v: i for i, v in enumerate(rest)}
        inside = [{place[u] for u in neighbours[v] if u in place} for v in rest]
        if coloured(inside, k) == (None, True):
            kept = rest
    return kept


def _best_names(colours: Array, costs: Array) -> Array:
    """The colouring with the components that cost least as its colours."""
    k = costs.shape[1]
    by_colour = np.stack([costs[colours == colour].sum(axis=0) for colour in range(k)])
    return np.asarray(linear_sum_assignment(by_colour)[1][colours])


def _eased(start: Array, neighbours: Neighbours, costs: Array) -> Array:
    """One at a time to the cheapest component that its neighbours leave, until nobody gains."""
    found, moved = start.copy(), True
    while moved:
        moved = False
        for vertex, near in enumerate(neighbours):
            free = costs[vertex].copy()
            free[found[list(near)]] = np.inf
            best = int(free.argmin())
            if free[best] < costs[vertex, found[vertex]]:
                found[vertex], moved = best, True
    return found


class _BranchAndBound:
    """Branch and bound over the members, those with the most to lose first."""

    def __init__(self, neighbours: Neighbours, costs: Array) -> None:
        self.neighbours, self.costs = neighbours, costs
        ranked = np.sort(costs, axis=1)
        regret = np.where(np.isfinite(ranked[:, 0]), ranked[:, 1] - ranked[:, 0], np.inf)
        self.order = np.argsort(-np.where(np.isnan(regret), np.inf, regret), kind="stable")
        least = ranked[self.order, 0]
        self.rest = np.append(np.cumsum(least[::-1])[::-1], 0.0)
        self.steps = 0

    def run(self, known: Array) -> Array:
        self.best, self.least = known.copy(), float(self.costs[np.arange(len(known)), known].sum())
        self.way = np.full(len(known), -1)
        stack = [(0, 0.0, self._ways(0))]
        while stack and self.steps < BOUND_STEPS:
            depth, spent, ways = stack[-1]
            vertex = self.order[depth]
            self.way[vertex] = -1
            if not ways:
                stack.pop()
                continue
            self.steps += 1
            component = ways.pop()
            total = spent + float(self.costs[vertex, component])
            if total + self.rest[depth + 1] >= self.least:
                continue
            self.way[vertex] = component
            if depth + 1 == len(self.order):
                self.best, self.least = self.way.copy(), total
                continue
            stack.append((depth + 1, total, self._ways(depth + 1)))
        return self.best

    def _ways(self, depth: int) -> list[int]:
        """Components that are free for the member at a depth, the cheapest last."""
        vertex = self.order[depth]
        taken = {int(self.way[u]) for u in self.neighbours[vertex]}
        order = np.argsort(-self.costs[vertex], kind="stable")
        return [int(c) for c in order if int(c) not in taken and np.isfinite(self.costs[vertex, c])]
