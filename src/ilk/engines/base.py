"""Where the rows are: a table together with the engine that walks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self, TypeVar

from ilk.table.block import Array, Block, Encoding


class Summable(Protocol):
    """A partial result; partials of blocks add up, in block order, to that of the table.

    Engines add with `+=`, for which a partial may give its own memory away.
    """

    def __add__(self, other: Any) -> Self: ...


SummableT = TypeVar("SummableT", bound=Summable)
State = TypeVar("State")
Result = TypeVar("Result")


class Rows(Protocol):
    """All that fitting knows of a table. `visit` is a module-level function, all that varies is in `state`."""

    encoding: Encoding
    n_rows: int
    n_columns: int
    complete: bool
    threads: int  # that work on samples and sums may use here

    def reduce(self, visit: Callable[[State, Block], SummableT], state: State) -> SummableT:
        """One pass: the partials of all blocks, added in block order."""
        ...

    def scan(self, visit: Callable[[State, Block], Result], state: State) -> Iterator[Result]:
        """One pass: a result per block, in row order."""
        ...

    def sample(self, n_rows: int, seed: int) -> Block:
        """At most `n_rows` rows drawn by weight, the whole table when it is no larger."""
        ...

    def take(self, rows: Array) -> Block:
        """The rows with these global numbers, in that order."""
        ...
