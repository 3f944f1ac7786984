"""A fitted model on its own: what is needed to place new rows, save it, and read it back.

A model holds no rows: the schema of the columns it uses, the encoding, the parameters, the marks and names of
its groups, and per group the quantiles of the costs of its training rows, from which novelty is read.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ilk import store
from ilk.assorted.problem import ColumnTransform
from ilk.engines.base import Rows
from ilk.engines.derived import derive
from ilk.engines.frames import Frame, frame_of
from ilk.engines.memory import MemoryRows
from ilk.errors import DataError, warn
from ilk.model.columns import design, free_names
from ilk.model.grouped import Grouped
from ilk.model.marks import Marked
from ilk.model.no_prediction_rule import no_rule
from ilk.model.parameters import Params
from ilk.model.placed import Placed, Scored, visit_placed
from ilk.model.registry import known, setting_of
from ilk.table.block import Array, Encoding
from ilk.table.encode import Encoded, encode_new
from ilk.table.out_of_core.memory_limit import open_table
from ilk.table.out_of_core.table import PieceTable
from ilk.table.own_transforms import OwnTransforms
from ilk.table.read import Table, from_arrow, read
from ilk.table.schema import Schema

KIND = "clustering model"


def _spelled(schema: Schema) -> tuple[str, ...]:
    """Columns that a text file must leave as they are written."""
    return tuple({column.origin: None for column in schema.used if column.written or column.topic})


@dataclass(frozen=True, eq=False, kw_only=True)
class Model(Marked):
    """A fitted model without its rows: `assign` gives new rows their groups, `save` writes it, `load` reads it back.

    Attributes
    ----------
    method : str
        Name of the method.
    family : str
        What a component is.
    options : mapping
        Options of the fit.
    schema : Schema
        Columns, their types and categories.
    encoding : Encoding
        How numbers are conditioned.
    params : object
        Parameters of the components, in conditioned units.
    group_of : tuple of int
        The group of each component.
    letters : tuple of str
        Letter of each group.
    names : tuple of str
        Name of each group.
    sizes : array of shape (k,)
        Sum of the weights of the training rows of each group.
    quantiles : array of shape (k, 201)
        Costs of the training rows of each group at equal steps, from which novelty is read.
    training : mapping
        What is known of the training rows.
    treat : None or Treat
        What the assorted model makes of the columns.
    transforms : OwnTransforms
        What the user asked to make of single columns.
    k : int
        Number of groups.
    grouped : Grouped
        The components and the groups they belong to.
    has_rule : bool
        Whether new rows can be placed; methods of distances have no rule for that.
    segmented : bool
        Whether there were no clear groups, and letters, names and sizes are those of segments of a single group.
    named : bool
        Whether names were given by the user.

    See Also
    --------
    load : Reads a model back.
    Result : Holds the model of a run.

    Examples
    --------
    >>> import ilk
    >>> model = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2).model
    >>> model.assign({"size": [1.3, 7.0]})["group"].to_pylist()
    ['A', 'B']
    """

    method: str
    family: str
    options: Mapping[str, Any]
    schema: Schema
    encoding: Encoding
    params: Params
    group_of: tuple[int, ...]  # of each component, a piece, the group
    letters: tuple[str, ...]
    names: tuple[str, ...]
    sizes: Array
    quantiles: Array  # (groups, N_QUANTILES) costs of the training rows
    training: Mapping[str, Any] = field(default_factory=dict)
    treat: ColumnTransform | None = None  # what the assorted model makes of the columns
    transforms: OwnTransforms = field(default_factory=OwnTransforms)

    @property
    def k(self) -> int:
        """Number of groups."""
        return len(self.letters)

    @property
    def grouped(self) -> Grouped:
        """The components and the groups they belong to."""
        saved = known(self.family)
        family = saved.family(self.params, setting_of(self.family, self.schema, self.treat))
        return Grouped(family, self.params, np.array(self.group_of), saved.soft)

    def __repr__(self) -> str:
        columns = len(self.schema.used)
        groups = "1 group" if self.k == 1 else f"{self.k} groups"
        return f"<ilk.Model {self.method}, {groups}, {columns} column{'s' * (columns != 1)}>"

    def assign(self, data: Any, *, absent: str = "error") -> Any:
        """Return the group of each row of `data`.

        Columns are matched by name: order does not matter, unknown ones are ignored with a warning. A category that
        was not seen in training counts as missing, with a warning. A row without a value in the columns used has no
        group.

        Parameters
        ----------
        data : frame, array, list, mapping or path
            New rows.
        absent : "error" or "missing", default="error"
            Whether a column that is not there is refused, or every value in it is taken as missing.

        Returns
        -------
        frame
            A frame of the caller's kind (for arrays and paths an Arrow table). Columns: `group` (its letter),
            `probability` (of that group; not of methods that give none), `second` (the next likeliest or nearest
            group), `novelty` (how unusual the row is among the training rows of its group, from 0 at the centre to
            1, further out than any of them). After a fit without clear groups also `segment`, to which probability
            and second choice then belong; after `Result.rename` also `name`. A column that `data` has already is
            named `group_ilk`, with a warning.
            A Spark frame comes back with these columns.
        """
        frame = frame_of(data)
        if frame is not None:
            return self._assign_frame(frame, absent)
        return self.assign_table(self.open(data), absent=absent)

    def _assign_frame(self, frame: Frame, absent: str) -> Any:
        """On the workers; what would be warned of rows is left unsaid."""
        lacking = [c.origin for c in self.schema.used if c.origin not in frame.schema.names]
        if lacking:
            encode_new(
                from_arrow(frame.schema.empty_table(), frame.source),
                self.schema,
                self.encoding,
                absent=absent,
            )
        figures = ("probability", "novelty")
        kinds = {name: pa.float64() if name in figures else pa.string() for name in self.output_names()}
        names = free_names(tuple(frame.schema.names), tuple(kinds))
        return frame.filled(_Assign(self, names, absent), dict(zip(names, kinds.values(), strict=True)))

    def read(self, data: Any, **reading: Any) -> Table:
        """Read new data as a table; a file with a header alone is an empty table.

        Parameters
        ----------
        data : frame, array, list, mapping or path
            New rows.
        **reading : dict
            How to read a text file.

        Returns
        -------
        Table
            The table.
        """
        try:
            return read(data, **reading, as_text=_spelled(self.schema))
        except DataError as error:
            return self._empty(error)

    def open(self, data: Any, memory: Any = None, **reading: Any) -> Table | PieceTable:
        """Read new data as a table, in parts where it is larger than memory.

        Parameters
        ----------
        data : frame, array, list, mapping or path
            New rows.
        memory : None, float or str, default=None
            Bytes that may be used.
        **reading : dict
            How to read a text file.

        Returns
        -------
        Table or PieceTable
            The table.
        """
        try:
            return open_table(data, memory, **reading, as_text=_spelled(self.schema))
        except DataError as error:
            return self._empty(error)

    def _empty(self, error: DataError) -> Table:
        if error.code != "no-rows":
            raise error
        warn("no-rows", error.what, depth=5)
        kinds = {
            c.origin: float if c.levels is None and not (c.written or c.topic) else str
            for c in self.schema.used
        }
        empty = {name: np.empty(0, kind) for name, kind in kinds.items()}
        return from_arrow(pa.table(empty), "the table")

    def assign_table(self, table: Table | PieceTable, *, absent: str = "error") -> Any:
        """Return the group of each row of a table that has been read.

        Parameters
        ----------
        table : Table or PieceTable
            New rows.
        absent : "error" or "missing", default="error"
            Whether a column that is not there is refused, or every value in it is taken as missing.

        Returns
        -------
        frame
            As `assign` returns it.
        """
        if isinstance(table, PieceTable):
            parts = [self.columns_for(self.place(part, absent=absent), table.names) for part in table.parts()]
            return pa.concat_tables([pa.table(part) for part in parts], promote_options="default")
        columns = self.columns_for(self.place(table, absent=absent), table.names)
        return table.give_back(columns)

    def place(self, table: Table, *, absent: str = "error") -> Placed:
        """Return group, second group, probability and novelty of each row, as arrays.

        Parameters
        ----------
        table : Table
            New rows.
        absent : "error" or "missing", default="error"
            Whether a column that is not there is refused, or every value in it is taken as missing.

        Returns
        -------
        Placed
            Where the rows belong.
        """
        placed = self.place_rows(self._read_rows(table, absent))
        n_lost = int((placed.group < 0).sum())
        if n_lost:
            warn(
                "empty-rows",
                f"{n_lost} rows have no value in the columns of the model and get no group",
                depth=5,
            )
        return placed

    def memberships(self, table: Table, *, absent: str = "error") -> Array:
        """Return the probability of each group for each row; for methods that give none 0 and 1.

        Parameters
        ----------
        table : Table
            New rows.
        absent : "error" or "missing", default="error"
            Whether a column that is not there is refused, or every value in it is taken as missing.

        Returns
        -------
        array of shape (n_rows, k)
            Probabilities; NaN for a row without a value in the columns used.
        """
        rows = self._read_rows(table, absent)
        if not rows.n_rows:
            return np.empty((0, self.k))
        scored = Scored.of(rows, self.grouped)
        shares = np.eye(self.k)[scored.group] if scored.memberships is None else scored.memberships.copy()
        shares[scored.lost] = np.nan
        return shares

    def _read_rows(self, table: Table, absent: str) -> Rows:
        """The rows of a table as the model sees them, with warnings of what it does not know."""
        if not self.has_rule:
            raise no_rule(self.method)
        untouched = Encoding(1.0, np.zeros(len(self.schema.numeric)))
        encoded = encode_new(table, self.schema, untouched, absent=absent)
        for caution in encoded.warnings:
            caution.warn(depth=6)
        return self._rows(encoded)

    def _rows(self, encoded: Encoded) -> Rows:
        numbers = self.transforms(encoded.numbers, self.schema)
        if known(self.family).takes == "numbers":
            raw = design(numbers, encoded.codes, self.schema)
            return MemoryRows(raw, self.encoding, complete=bool(not np.isnan(raw).any()))
        codes = encoded.codes if self.schema.coded else None
        complete = encoded.complete and not (self.transforms and np.isnan(numbers).any())
        rows = MemoryRows(numbers, self.encoding, codes=codes, complete=complete)
        return rows if self.treat is None else derive(rows, self.treat)

    def place_rows(self, rows: Rows) -> Placed:
        """Return group, second group, probability and novelty of rows that are encoded.

        Parameters
        ----------
        rows : Rows
            Encoded rows, wherever they lie.

        Returns
        -------
        Placed
            Where the rows belong, in row order.
        """
        parts = [*rows.scan(visit_placed, self)] if rows.n_rows else []
        if not parts:
            return Placed(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(0))
        return Placed(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to one file of JSON and plain arrays, atomically.

        Parameters
        ----------
        path : str or path
            Where to write it.
        overwrite : bool, default=False
            Whether a file that is there is replaced.
        """
        document, arrays = store.flatten(self._tree())
        store.save(path, KIND, document, arrays, overwrite=overwrite)

    def _tree(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "family": self.family,
            "options": dict(self.options),
            "schema": self.schema.to_dict(),
            "encoding": {
                "power": self.encoding.power,
                "centre": self.encoding.centre,
                "factor": self.encoding.factor,
            },
            "parameters": known(self.family).tree(self.params),
            "groups": list(self.group_of),
            "letters": list(self.letters),
            "names": list(self.names),
            "sizes": self.sizes,
            "quantiles": self.quantiles,
            "training": dict(self.training),
            "treatment": None if self.treat is None else self.treat.to_dict(),
            **(
                {"transforms": {n: asdict(one) for n, one in self.transforms.of.items()}}
                if self.transforms
                else {}
            ),
        }


@dataclass(frozen=True)
class _Assign:
    """What travels to the rows of a frame."""

    model: Model
    names: tuple[str, ...]
    absent: str

    def __call__(self, arrow: Any) -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            placed = self.model.place(from_arrow(arrow, "the frame"), absent=self.absent)
        return dict(zip(self.names, self.model.columns_for(placed).values(), strict=True))
