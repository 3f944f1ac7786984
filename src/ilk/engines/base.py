"""Where the rows are: a table together with the engine that walks it.

Fitting asks no more of an engine than the `Rows` protocol, so every method of the loop runs on every engine:
- Blocks are cut by global row number, `block_rows(n_rows, n_columns)` rows each (`ilk.table.block`), whatever the
  pieces in which the table arrived, and partials are added in block order. An engine that does both has the bits of
  the engine in memory. One that adds in another order has the same labels, and parameters to the last digits.
- No array of the size of the table is asked for. What fitting wants to know of all rows it gathers with `reduce`;
  `scan` gives a small result per block (labels, costs), which the caller may put together.
- `sample` draws the rows that `ilk.engines.draw` names by what they say, so that starts and searches are the same on
  every engine and in any order of the rows.
- `take` is for few rows (the dearest ones, a small table); an engine may read a whole block for each of them.
- `memo` of a block may always be None: it only saves work.
Work on a sample, or on a small table, is done in memory: `ilk.engines.memory.held(rows, n_rows, seed)`.
"""

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
    complete: bool  # no numeric cell is missing
    weighted: bool  # the blocks have weights; `fitting/weights.py` tells their sum
    threads: int  # that work on samples and sums may use here

    @property
    def whole(self) -> Block | None:
        """All rows as one block of parts, which kernels share among threads without the interpreter between blocks;
        None where they are not complete or lie neither in memory nor on a device."""
        ...

    @property
    def resident(self) -> Block | None:
        """All rows as one block on a device, with their codes and missing cells; None elsewhere."""
        ...

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
