"""What is known of pairs of rows and of single rows: together, apart, or of a group; kept whole or refused by name.

Rows that must be together are one chunklet, which is assigned as a whole. A known label is a node of its own, tied to
its rows and apart from every other label, so that a conflict is always a chain between two nodes that are apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from ilk.errors import UsageError, shown
from ilk.fitting.colouring import Apart, components_apart
from ilk.measures.labels import codes_of, same_length
from ilk.table.block import Array

Pairs = Iterable[tuple[int, int]] | Array | None
CHAIN_SHOWN = 12  # rows of a conflict that are named


@dataclass(frozen=True, eq=False)
class Constraints:
    """`chunklet` (rows,) numbers the sets of rows that are together; those of known labels are the first, in the
    order of `labels`. `apart` are the sets of chunklets that exclude each other, with a way to tell them apart."""

    chunklet: Array
    n_chunklets: int
    labels: tuple[Any, ...]
    apart: tuple[Apart, ...]

    @property
    def n_known(self) -> int:
        return len(self.labels)

    def added(self, values: Array) -> Array:
        """Values of rows (rows, K) added up over the chunklets."""
        total = np.zeros((self.n_chunklets, values.shape[1]))
        np.add.at(total, self.chunklet, values)
        return total

    def pinned(self, costs: Array) -> Array:
        """Costs of chunklets (chunklets, K) in which a known label can only have its own component."""
        known = np.arange(self.n_known)
        own = costs[known, known].copy()
        costs[: self.n_known] = np.inf
        costs[known, known] = own
        return costs

    def assigned(self, costs: Array, before: Array | None) -> Array:
        """The component of each chunklet: the cheapest that nothing forbids, never dearer than `before`."""
        found = costs.argmin(axis=1)
        for part in self.apart:
            found[part.members] = part.assigned(
                costs[part.members], None if before is None else before[part.members]
            )
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class Known:
    """Labels of some rows, and pairs of rows that are together or apart, as a user gave them."""

    labels: Any = None
    must_link: Pairs = None
    cannot_link: Pairs = None

    @property
    def nothing(self) -> bool:
        return all(given is None for given in (self.labels, self.must_link, self.cannot_link))

    def of(self, n_rows: int, k: int) -> Constraints:
        """The constraints that they are for K groups, checked."""
        return constraints_of(n_rows, k, self.must_link, self.cannot_link, self.labels)

    def of_groups(self, found: Array, n_groups: int) -> tuple[Any, ...]:
        """The label that was known of rows of each group, None for a group without."""
        codes, labels = known_codes(self.labels, len(found))
        made: list[Any] = [None] * n_groups
        for code, label in enumerate(labels):
            made[found[np.flatnonzero(codes == code)[0]]] = label
        return tuple(made)


def constraints_of(n_rows: int, k: int, must_link: Pairs, cannot_link: Pairs, known: Any) -> Constraints:
    """What a user knows of the rows, checked: refused where it contradicts itself or does not fit in K groups."""
    codes, labels = known_codes(known, n_rows)
    if len(labels) > k:
        raise UsageError(
            "constraint-conflict",
            f"known has {len(labels)} different labels, and {k} groups were asked for",
            do=f"Ask for {len(labels)} groups or more",
        )
    together, apart = pairs_of("must_link", must_link, n_rows), pairs_of("cannot_link", cannot_link, n_rows)
    marked = np.flatnonzero(codes >= 0)
    together = np.vstack([together, np.column_stack([marked, n_rows + codes[marked]])])
    n_labels = len(labels)
    label_pairs = np.array([(i, j) for i in range(n_labels) for j in range(i)], dtype=np.intp).reshape(-1, 2)
    apart = np.vstack([apart, label_pairs + n_rows])
    ones, size = np.ones(len(together)), (n_rows + n_labels, n_rows + n_labels)
    graph = coo_array((ones, (together[:, 0], together[:, 1])), shape=size).tocsr()
    n_sets, of_node = connected_components(graph, directed=False)
    names = _Names(n_rows, labels)
    broken = np.flatnonzero(of_node[apart[:, 0]] == of_node[apart[:, 1]])
    if len(broken):
        raise _conflict(graph, apart[broken[0]], names)
    first = np.concatenate([of_node[n_rows:], of_node[:n_rows]])  # labels come first
    _, place = np.unique(first, return_index=True)
    order = np.argsort(np.argsort(place))
    chunklet = order[of_node]
    sets = components_apart(chunklet[apart], n_sets, k)
    for part in sets:
        if part.colours is None:
            raise _too_few(part, chunklet, names, k)
    return Constraints(chunklet[:n_rows], n_sets, labels, tuple(sets))


@dataclass(frozen=True)
class _Names:
    n_rows: int
    labels: Sequence[Any]

    def __call__(self, node: int) -> str:
        return (
            f"row {node}" if node < self.n_rows else f"label {shown(str(self.labels[node - self.n_rows]))!r}"
        )

    def listed(self, nodes: Sequence[int]) -> str:
        first = ", ".join(self(int(node)) for node in nodes[:CHAIN_SHOWN])
        return first + (f", … ({len(nodes)} in all)" if len(nodes) > CHAIN_SHOWN else "")


def _conflict(graph: Any, pair: Array, names: _Names) -> UsageError:
    """The chain of rows that are together from one of a pair to the other, though the two are apart."""
    one, other = int(pair[0]), int(pair[1])
    if one == other:
        return UsageError("constraint-conflict", f"cannot_link has {names(one)} apart from itself")
    _, before = breadth_first_order(graph, one, directed=False)
    chain = [other]
    while chain[-1] != one:
        chain.append(int(before[chain[-1]]))
    linked = " - ".join(names(node) for node in chain[:CHAIN_SHOWN])
    linked += f" - … ({len(chain)} in all)" if len(chain) > CHAIN_SHOWN else ""
    both = "two labels" if one >= names.n_rows else "cannot_link"
    return UsageError(
        "constraint-conflict",
        f"{names(other)} and {names(one)} must be together by the chain {linked}, and apart by {both}",
        do="Take away one of the links of the chain, or what keeps the two apart",
    )


def _too_few(part: Apart, chunklet: Array, names: _Names, k: int) -> UsageError:
    """Rows that exclude each other and do not fit in K groups."""
    nodes = [int(np.flatnonzero(chunklet == member)[0]) for member in part.conflict]
    what = f"{k} groups cannot keep {names.listed(nodes)} apart as cannot_link asks"
    if not part.proven:
        what = f"no way was found to keep {names.listed(nodes)} apart in {k} groups as cannot_link asks"
    return UsageError(
        "constraint-conflict", what, do=f"Ask for more than {k} groups, or take away some of these pairs"
    )


def known_codes(known: Any, n_rows: int) -> tuple[Array, tuple[Any, ...]]:
    """The code of each row's label, -1 where it is not known, and the labels."""
    if known is None:
        return np.full(n_rows, -1), ()
    codes, levels = codes_of(known, "known")
    same_length(n_rows, len(codes), "the table", "known")
    unknown = [i for i, level in enumerate(levels) if isinstance(level, (int, float)) and level == -1]
    codes = np.where(np.isin(codes, unknown), -1, codes)
    used, codes_used = np.unique(codes[codes >= 0], return_inverse=True)
    codes[codes >= 0] = codes_used
    return codes, tuple(levels[code] for code in used)


def pairs_of(name: str, given: Pairs, n_rows: int) -> Array:
    """Pairs of row numbers, checked."""
    if given is None:
        return np.empty((0, 2), dtype=np.intp)
    pairs = np.asarray(list(given) if not isinstance(given, np.ndarray) else given)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    whole = pairs.dtype.kind in "iu"
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not whole:
        raise UsageError(
            f"bad-{name}",
            f"{name} is no list of pairs of row numbers",
            do=f"Give pairs, counted from 0: {name}=[(0, 5), (2, 7)]",
        )
    beyond = pairs[(pairs < 0) | (pairs >= n_rows)]
    if len(beyond):
        raise UsageError(
            f"bad-{name}", f"{name} names row {beyond[0]}", do=f"Rows are counted from 0 to {n_rows - 1}"
        )
    return pairs.astype(np.intp)
