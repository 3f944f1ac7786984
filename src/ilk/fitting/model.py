"""A fitted model on its own: what is needed to place new rows, save it, and read it back.

A model holds no rows: the schema of the columns it uses, the encoding, the parameters, the marks and names of
its groups, and per group the quantiles of the costs of its training rows, from which novelty is read.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ilk import kernels, store
from ilk.engines.base import Rows
from ilk.engines.derived import derive
from ilk.engines.frames import Frame, frame_of
from ilk.engines.memory import MemoryRows
from ilk.errors import DataError, warn
from ilk.families.base import Family
from ilk.families.dirichlet import Posteriors, process_of
from ilk.families.unruled import UNRULED
from ilk.fitting.fit import Fit
from ilk.fitting.grouped import Grouped
from ilk.fitting.placing import Params, family_of, is_soft, parameter_tree, takes_codes
from ilk.fitting.scene import Treat
from ilk.table.block import Array, Block, Encoding
from ilk.table.encode import Encoded, encode_new
from ilk.table.piecewise import PieceTable
from ilk.table.read import Table, from_arrow, read
from ilk.table.room import open_table
from ilk.table.schema import Schema

KIND = "clustering model"
N_QUANTILES = 201  # costs at every half per cent of the rows of a group
OUTPUT = ("group", "probability", "second", "novelty")
SUFFIX = "ilk"


@dataclass(frozen=True)
class Placed:
    """Where rows belong: group and second group (-1 for none), probability and novelty (NaN likewise).

    Hard methods give no probability: it is NaN throughout, and has no column.
    """

    group: Array
    second: Array
    novelty: Array
    probability: Array


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model; `assign` places new rows, `save` writes it, `ilk.load` reads it back."""

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
    treat: Treat | None = None  # what the assorted model makes of the columns

    @property
    def k(self) -> int:
        return len(self.letters)

    @property
    def grouped(self) -> Grouped:
        """The components and the groups they belong to."""
        family = family_of(self.family) if self.treat is None else self.treat.family
        if isinstance(self.params, Posteriors):
            family = process_of(self.params, self.schema.level_start)
        assert family is not None
        return Grouped(family, self.params, np.array(self.group_of), is_soft(self.family))

    @property
    def has_rule(self) -> bool:
        """Whether new rows can be placed; methods of distances have no rule for that."""
        return self.family != UNRULED.name

    def __repr__(self) -> str:
        columns = len(self.schema.used)
        groups = "1 group" if self.k == 1 else f"{self.k} groups"
        return f"<ilk.Model {self.method}, {groups}, {columns} column{'s' * (columns != 1)}>"

    def assign(self, data: Any, *, absent: str = "error") -> Any:
        """The group of each row of `data`, in a frame of the caller's type (arrays, paths: an Arrow table).

        Columns: `group` (its letter), `probability` (of that group; methods that give none have no such
        column), `second` (the next likeliest or nearest group), `novelty` (how unusual the row is among the
        training rows of its group: 0 is at the centre, 1 is further out than any of them). Columns are
        matched by name: order does not matter, unknown ones are ignored with a warning, a missing one is
        refused. A category that was not seen in training is treated as missing, with a warning. A row without a
        value in the columns used has no group.
        A column of ours that `data` has already is named `group_ilk`, with a warning. `absent="missing"`
        treats an absent column as missing. A Spark frame gets our columns next to its own.
        """
        frame = frame_of(data)
        if frame is not None:
            return self._assign_frame(frame, absent)
        return self.assign_table(self.open(data), absent=absent)

    def _assign_frame(self, frame: Frame, absent: str) -> Any:
        """On the workers; what would be warned of rows is left unsaid."""
        lacking = [c.name for c in self.schema.used if c.name not in frame.schema.names]
        if lacking:
            encode_new(
                from_arrow(frame.schema.empty_table(), frame.source),
                self.schema,
                self.encoding,
                absent=absent,
            )
        kinds = dict(zip(OUTPUT, (pa.string(), pa.float64(), pa.string(), pa.float64()), strict=True))
        if not is_soft(self.family):
            del kinds["probability"]
        names = free_names(tuple(frame.schema.names), tuple(kinds))
        return frame.filled(_Assign(self, names, absent), dict(zip(names, kinds.values(), strict=True)))

    def read(self, data: Any, **reading: Any) -> Table:
        """New data as a table; a file with a header alone is an empty table, not a refusal."""
        try:
            return read(data, **reading)
        except DataError as error:
            return self._empty(error)

    def open(self, data: Any, memory: Any = None, **reading: Any) -> Table | PieceTable:
        """As `read`, in chunks where the table is larger than memory."""
        try:
            return open_table(data, memory, **reading)
        except DataError as error:
            return self._empty(error)

    def _empty(self, error: DataError) -> Table:
        if error.code != "no-rows":
            raise error
        warn("no-rows", error.what, depth=5)
        empty = [np.empty(0, float if c.levels is None else str) for c in self.schema.used]
        return from_arrow(pa.table(empty, names=[c.name for c in self.schema.used]), "the table")

    def assign_table(self, table: Table | PieceTable, *, absent: str = "error") -> Any:
        """As `assign`, for a table that has been read."""
        if isinstance(table, PieceTable):
            parts = [self.columns_for(self.place(part, absent=absent), table.names) for part in table.parts()]
            return pa.concat_tables([pa.table(part) for part in parts], promote_options="default")
        columns = self.columns_for(self.place(table, absent=absent), table.names)
        return table.give_back(columns)

    def place(self, table: Table, *, absent: str = "error") -> Placed:
        """Group, second group and novelty of each row."""
        if not self.has_rule:
            UNRULED.refuse()
        untouched = Encoding(1.0, np.zeros(len(self.schema.numeric)))
        encoded = encode_new(table, self.schema, untouched, absent=absent)
        for code, text in encoded.warnings:
            warn(code, text, depth=5)
        placed = self.place_rows(self._rows(encoded))
        n_lost = int((placed.group < 0).sum())
        if n_lost:
            warn(
                "empty-rows",
                f"{n_lost} rows have no value in the columns of the model and get no group",
                depth=5,
            )
        return placed

    def _rows(self, encoded: Encoded) -> Rows:
        if self.treat is None and not takes_codes(self.family):
            raw = design(encoded.numbers, encoded.codes, self.schema)
            return MemoryRows(raw, self.encoding, complete=bool(not np.isnan(raw).any()))
        codes = encoded.codes if self.schema.coded else None
        rows = MemoryRows(encoded.numbers, self.encoding, codes=codes, complete=encoded.complete)
        return rows if self.treat is None else derive(rows, self.treat)

    def place_rows(self, rows: Rows) -> Placed:
        """Group, second group, probability and novelty of every row, in row order."""
        parts = [*rows.scan(_visit, self)] if rows.n_rows else []
        if not parts:
            return Placed(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(0))
        return Placed(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def columns_for(self, placed: Placed, taken: tuple[str, ...] = ()) -> dict[str, Array]:
        """The output columns under names that the table does not use itself."""
        values = {
            "group": self._marks(placed.group),
            "probability": np.round(placed.probability, 4),
            "second": self._marks(placed.second),
            "novelty": np.round(placed.novelty, 4),
        }
        if not is_soft(self.family):
            del values["probability"]
        return dict(zip(free_names(taken, tuple(values)), values.values(), strict=True))

    def label_columns(self, labels: Array, taken: tuple[str, ...]) -> dict[str, Array]:
        """The output column of known labels, for groups without a rule."""
        return {free_names(taken, ("group",))[0]: self._marks(labels)}

    def _marks(self, number: Array) -> Array:
        """Letters as text, or as objects where a row has none."""
        if (number >= 0).all():
            return np.array(self.letters, dtype=str)[number]
        return np.array([*self.letters, None], dtype=object)[number]  # -1 picks the last

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to one file: JSON and plain arrays, atomically."""
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
            "parameters": parameter_tree(self.params),
            "groups": list(self.group_of),
            "letters": list(self.letters),
            "names": list(self.names),
            "sizes": self.sizes,
            "quantiles": self.quantiles,
            "training": dict(self.training),
            "treatment": None if self.treat is None else self.treat.to_dict(),
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


def _visit(model: Model, block: Block) -> tuple[Array, Array, Array, Array]:
    grouped = model.grouped
    _, cost = grouped.family.assign(model.params, block)
    label, costs = grouped.label(block), grouped.costs(block)
    everyone = np.arange(block.n_rows)
    probability = np.full(block.n_rows, np.nan)
    if grouped.soft:
        probability = kernels.memberships(-costs, False)[0][everyone, label]
    costs = np.minimum(costs, np.finfo(costs.dtype).max)  # infinite ones, too, come before the own
    costs[everyone, label] = np.inf
    second = costs.argmin(axis=1).astype(np.int32) if model.k > 1 else np.full(block.n_rows, -1, np.int32)
    novelty = np.empty(block.n_rows)
    for g in range(model.k):
        mine = label == g
        novelty[mine] = novelty_of(cost[mine], model.quantiles[g])
    lost = block.blank
    if lost is not None:
        label, second = np.where(lost, -1, label), np.where(lost, -1, second)
        novelty[lost] = probability[lost] = np.nan
    return label, second, novelty, probability


def novelty_of(cost: Array, quantiles: Array) -> Array:
    """Share of the training rows that cost less; equal costs count half.

    >>> novelty_of(np.array([0.0, 1.5, 9.0]), np.array([1.0, 2.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    below, upto = (np.searchsorted(quantiles, cost, side=side) for side in ("left", "right"))
    return np.asarray((below + upto) / (2 * len(quantiles)))


def design(numbers: Array, codes: Array | None, schema: Schema, used: Schema | None = None) -> Array:
    """The numbers a method works on: numeric columns, then the binary ones it uses as 0 and 1; NaN where missing."""
    wanted = {column.name for column in (used or schema).used}
    places = [j for j, column in enumerate(schema.coded) if column.kind == "binary" and column.name in wanted]
    if not places or codes is None:
        return numbers
    binary = codes[:, places].astype(numbers.dtype)
    binary[binary < 0] = np.nan
    return np.hstack([numbers, binary])


def numbers_only(schema: Schema, method: str) -> Schema:
    """The schema of a method of numbers: numeric columns, and for K-means binary ones; the others by name only.
    The assorted model uses them all."""
    if method == "assorted":
        return replace(schema, warnings=())
    others = ("categorical", "ordinal", "binary") if method == "gaussian" else ("categorical", "ordinal")
    columns = tuple(
        replace(c, kind="left out", levels=None, reason=f"described, not used by {method}")
        if c.kind in others
        else c
        for c in schema.columns
    )
    return replace(schema, columns=columns, warnings=())


def cost_quantiles(rows: Rows, family: Family[Any], found: Fit, weight: Array | None) -> Array:
    """Per group, the costs of its training rows at equal steps of their weight."""
    cost = np.concatenate([*rows.scan(partial(_visit_cost), (family, found.params))])
    weight = np.ones(len(cost)) if weight is None else weight
    steps = np.linspace(0.0, 1.0, N_QUANTILES)
    made = np.zeros((len(found.size), N_QUANTILES))
    for g in range(len(found.size)):
        mine = (found.labels == g) & (weight > 0)
        if mine.any():
            order = np.argsort(cost[mine], kind="stable")
            reached = np.cumsum(weight[mine][order])
            at = np.searchsorted(reached, steps * reached[-1], side="left")
            made[g] = cost[mine][order][np.minimum(at, len(order) - 1)]
    return made


def _visit_cost(state: tuple[Family[Any], Any], block: Block) -> Array:
    return state[0].assign(state[1], block)[1]


def free_names(taken: tuple[str, ...], wanted: tuple[str, ...] = OUTPUT) -> tuple[str, ...]:
    """Our output columns, renamed where the table has a column of that name.

    >>> free_names(("size",))
    ('group', 'probability', 'second', 'novelty')
    """
    clash = [name for name in wanted if name in taken]
    made = []
    for name in wanted:
        free = name
        while free in taken:
            free = f"{free}_{SUFFIX}"
        made.append(free)
    if clash:
        now = ", ".join(
            f"{old} is written as {new}" for old, new in zip(wanted, made, strict=True) if old != new
        )
        warn("column-renamed", f"the table has columns called {', '.join(clash)}; {now}", depth=5)
    return tuple(made)
