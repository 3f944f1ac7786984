"""A table that is read in pieces: what `Table` is in memory, for tables that are larger."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.errors import Caution
from ilk.table.block import Array
from ilk.table.cells import ColumnCells
from ilk.table.columns import Column
from ilk.table.fingerprint import fingerprint
from ilk.table.ledger import Ledger
from ilk.table.out_of_core.facts import Gathered
from ilk.table.out_of_core.pieces import Pieces
from ilk.table.read import Table, from_arrow
from ilk.threads import in_order


class PieceTable:
    """The user's table in pieces. `gather` reads it once for the facts from which the schema is made."""

    def __init__(
        self,
        pieces: Pieces,
        ledger: Ledger | None = None,
        warnings: Sequence[Caution] = (),
        decimal: str = "",
    ) -> None:
        self.decimal = decimal  # the decimal mark that the file speaks for, where a column leaves it open
        self.pieces, self.source = pieces, pieces.source
        self._given = list(pieces.schema.names)
        empty = from_arrow(pieces.schema.empty_table(), self.source)
        self.names, self.problems = empty.names, dict(empty.problems)
        self._types = {name: empty.column(name).type for name in empty.names}
        n_rows = pieces.first_rows[-1]
        self.ledger = Ledger(n_rows, n_rows) if ledger is None else ledger
        self.warnings: tuple[Caution, ...] = (*warnings, *empty.warnings)
        self._facts: dict[str, Gathered] = {}
        self.fingerprint = ""  # of the content as it is cut into pieces; known once the facts are gathered

    @property
    def n_rows(self) -> int:
        return self.ledger.used

    @property
    def n_pieces(self) -> int:
        return len(self.pieces.first_rows) - 1

    def arrow_type(self, name: str) -> Any:
        """The Arrow type of a column."""
        return self._types[name]

    def cells(self, name: str) -> ColumnCells:
        """One column as the rules for kinds see it."""
        return self._facts[name]

    def gather(self, asked: Mapping[str, Any], threads: int) -> None:
        """One pass over all columns but those to ignore, for the rules; `asked` are kinds the user gave."""
        names = [name for name in self.names if name not in self.problems and asked.get(name) != "ignore"]
        self._facts = {name: self._fresh(name, asked) for name in self.names}

        def look(piece: int) -> tuple[list[Gathered], bytes]:
            found = [self._fresh(name, asked) for name in names]
            digest = hashlib.sha256()
            for part in self.parts_of(piece, names):
                for one, name in zip(found, names, strict=True):
                    one.add(part.column(name))
                digest.update(fingerprint(part).encode())
            return found, digest.digest()

        digest = hashlib.sha256()
        for found, mark in in_order(look, range(self.n_pieces), threads):
            digest.update(mark)
            for name, one in zip(names, found, strict=True):
                self._facts[name] += one
        self.fingerprint = digest.hexdigest()

    def _fresh(self, name: str, asked: Mapping[str, Any]) -> Gathered:
        def again() -> Iterator[tuple[int, Column]]:
            for piece, first in enumerate(self.pieces.first_rows[:-1]):
                for part in self.parts_of(piece, [name]):
                    yield first, part.column(name)
                    first += part.n_rows

        return Gathered(self._types[name], again, as_number=asked.get(name) in ("numeric", "count"))

    def parts_of(self, piece: int, names: Sequence[str] | None = None) -> Iterator[Table]:
        """The rows of one piece, part by part, each a table of its own."""
        wanted = self.names if names is None else tuple(names)
        given = [self._given[self.names.index(name)] for name in wanted]
        for arrow in self.pieces.read(piece, given):
            yield replace(from_arrow(arrow.rename_columns(list(wanted)), self.source), warnings=())

    def parts(self, names: Sequence[str] | None = None) -> Iterator[Table]:
        """All rows in order, part by part."""
        for piece in range(self.n_pieces):
            yield from self.parts_of(piece, names)

    def take(self, rows: Array) -> Table:
        """The rows with these numbers, in order of the numbers, as a table in memory."""
        rows, firsts = np.sort(rows), np.asarray(self.pieces.first_rows)
        found = [self.pieces.schema.empty_table().rename_columns(list(self.names))]
        for piece in np.unique(np.searchsorted(firsts, rows, "right") - 1):
            first = int(firsts[piece])
            for part in self.parts_of(int(piece)):
                low, high = np.searchsorted(rows, [first, first + part.n_rows])
                if high > low:
                    found.append(part.arrow.take(pa.array(rows[low:high] - first)))
                first += part.n_rows
        return from_arrow(pa.concat_tables(found), self.source)
