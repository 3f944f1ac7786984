"""Tables that are not in memory at the estimators' face: frames on clusters, and tables larger than memory.

Their rows for a fit, and answers as columns beside them; a table larger than memory is answered with an array.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.engines.base import Rows
from ilk.engines.condition import Unconditioned, conditioned, survey_rows, weighed
from ilk.engines.frame_sample import sampled
from ilk.engines.frames import FRAMES, DaskArray, Frame, Packer, frame_of
from ilk.engines.packed import Cutter, NumberPacker, Pack, PackLayout
from ilk.engines.pieces import PieceFrame
from ilk.errors import Caution, DataError, UsageError, shown
from ilk.model.columns import free_names
from ilk.model.packer import ModelPacker
from ilk.table.block import BLOCK_ROWS, Array, Block, Encoding
from ilk.table.cells import as_numbers
from ilk.table.condition import Survey, precision_cautions
from ilk.table.out_of_core.memory_limit import open_table
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table, from_arrow
from ilk.table.schema import Schema, asked_kinds, infer
from ilk.threads import thread_count

SAMPLE_ROWS = 100_000  # of a frame on a cluster, from which kinds and levels of columns are known


def opened(X: Any) -> Any:
    """A path or a stream as a table; a frame where it is larger than memory, or where data lie on a cluster. All else
    as it is."""
    frame = frame_of(X)
    if frame is not None:
        return frame
    if isinstance(X, (str, os.PathLike, pa.RecordBatchReader)) or hasattr(X, "to_arrow_reader"):
        table = open_table(X)
        return PieceFrame(table) if isinstance(table, PieceTable) else table
    return X


def is_frame(X: Any) -> bool:
    """Whether `opened` has found a frame."""
    return isinstance(X, (*FRAMES, PieceFrame))


def read_numbers(table: Table, names: Sequence[str]) -> Array:
    """The cells of these columns (rows, columns), which are numbers."""
    refuse_absent(table.source, table.names, names)
    kind = _number_type({name: table.column(name).type for name in names})
    return NumberPacker(PackLayout(kind, len(names)))(table.arrow.select(list(names))).raw


def without_weight(table: Table, name: str) -> tuple[Table, Array]:
    """The other columns of a table, and the weights that one of them holds."""
    (name,) = weight_name(table.names, name)
    others = [other for other in table.names if other != name]
    weight = as_numbers(table.column(name), name)
    return from_arrow(table.arrow.select(others), table.source), weight


def frame_rows(
    estimator: Any,
    frame: Frame | PieceFrame,
    sample_weight: Any,
    *,
    scale: str | None,
    threads: int | None,
    k: int,
) -> Rows:
    """The rows of a fit, checked and conditioned; `sample_weight` is the name of a column."""
    rows = number_rows(estimator, frame, sample_weight, threads=threads, k=k)
    names = estimator.feature_names_in_.tolist()
    facts = survey_rows(rows, names)
    for caution in precision_cautions(facts, names):
        caution.warn(depth=6)
    found: Rows = conditioned(rows, facts, scale)
    return found


def number_rows(
    estimator: Any, frame: Frame | PieceFrame, sample_weight: Any, *, threads: int | None, k: int
) -> Unconditioned:
    """The rows of a frame of numbers as they are; the estimator learns their names."""
    weight = weight_name(frame.schema.names, sample_weight)
    names = [name for name in frame.schema.names if name not in weight]
    kinds = {name: frame.schema.field(name).type for name in (*names, *weight)}
    layout = PackLayout(_number_type(kinds), len(names), weighted=bool(weight))
    given: Unconditioned = frame.rows([*names, *weight], NumberPacker(layout), layout, threads)
    rows, n_counting = weighed(given)
    if n_counting < k:
        raise DataError(
            "fewer-rows-than-groups",
            f"n_samples={n_counting} rows with weight are fewer than the {k} groups asked for",
            do="Ask for fewer groups",
        )
    estimator.n_features_in_ = len(names)
    estimator.feature_names_in_ = np.array(names, dtype=object)
    return rows


def weight_name(names: Sequence[str], sample_weight: Any) -> list[str]:
    """The column of the weights, where there is one."""
    if sample_weight is None:
        return []
    if isinstance(sample_weight, str) and sample_weight in names:
        return [sample_weight]
    raise UsageError(
        "bad-weight",
        "sample_weight is not the name of a column of the frame",
        do='Put the weights into a column and name it: sample_weight="weight"',
    )


def _number_type(kinds: Mapping[str, Any]) -> str:
    for name, kind in kinds.items():
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not (is_number or pa.types.is_boolean(kind)):
            raise DataError(
                "not-numbers",
                f"column {shown(name)!r} holds {kind}, not numbers",
                do="Select the columns of numbers, or use ilk.cluster, which takes columns of any type",
            )
    return "float32" if all(kind == pa.float32() for kind in kinds.values()) else "float64"


@dataclass(frozen=True)
class Answer:
    """What is told of rows: a visit, and how the numbers it sees are conditioned."""

    encoding: Encoding
    visit: Callable[[Any, Block], Array]
    state: Any


@dataclass(frozen=True)
class Reply:
    """How it is given: an array, or columns of these names and Arrow types. A single column may be a vector."""

    columns: Mapping[str, Any]
    is_vector: bool = False


LABEL = Reply({"label": pa.int32()}, is_vector=True)
LOG_DENSITY = Reply({"log_density": pa.float64()}, is_vector=True)


def probabilities(n_components: int) -> Reply:
    """One column for each component."""
    return Reply({f"probability_{k}": pa.float64() for k in range(n_components)})


@dataclass(frozen=True)
class MixedRows:
    """Rows of any kinds of columns, not yet conditioned: what they are taken for, and facts of the numbers."""

    rows: Any
    schema: Schema
    facts: Survey
    n_counting: int
    cautions: tuple[Caution, ...]


def mixed_rows(frame: Frame | PieceFrame, types: Any, sample_weight: Any, threads: int | None) -> MixedRows:
    """The rows of a frame with columns of any kind; `sample_weight` is the name of a column."""
    weight = weight_name(frame.schema.names, sample_weight)
    schema, cautions = _schema_of(frame, types, weight[0] if weight else None, thread_count(threads))
    packer = ModelPacker(schema, coded=True, every=True)
    rows, n_counting = weighed(frame.rows(packer.names, packer, packer.layout, threads))
    facts = survey_rows(rows, [column.name for column in schema.numeric])
    return MixedRows(rows, replace(schema, weight=None), facts, n_counting, cautions)


def _schema_of(
    frame: Frame | PieceFrame, types: Any, weight: str | None, threads: int
) -> tuple[Schema, tuple[Caution, ...]]:
    """Kinds and levels: from all rows of a table in pieces, from a sample of a frame on a cluster."""
    if isinstance(frame, PieceFrame):
        frame.table.gather(asked_kinds(types), threads)
        schema = infer(frame.table, types=types, weight=weight)
        return schema, (*frame.table.warnings, *schema.warnings)
    n_rows = frame.count()
    if not n_rows:
        raise DataError("no-rows", f"the {frame.source} has no rows", do="Give at least one row")
    table = from_arrow(sampled(frame, n_rows, SAMPLE_ROWS, 0), frame.source)
    schema = infer(table, types=types, weight=weight)
    if n_rows <= SAMPLE_ROWS:
        return schema, (*table.warnings, *schema.warnings)
    told = (
        f"types and categories of the columns come from a sample of {table.n_rows:,} of {n_rows:,} rows; a category "
        "that it lacks is treated as missing"
    )
    return schema, (*table.warnings, *schema.warnings, Caution("sampled-frame", told))


def answered(
    frame: Frame | PieceFrame, names: Sequence[str], answer: Answer, reply: Reply, threads: int | None
) -> Any:
    """What a visit tells of each row of numbers, beside the columns of a frame on a cluster."""
    refuse_absent(frame.source, frame.schema.names, names)
    layout = PackLayout(_number_type({name: frame.schema.field(name).type for name in names}), len(names))
    return _told(frame, _Fill(tuple(names), NumberPacker(layout), answer), reply, threads)


def answered_mixed(
    frame: Frame | PieceFrame,
    own_names: Mapping[str, str],
    schema: Schema,
    answer: Answer,
    reply: Reply,
    threads: int | None,
) -> Any:
    """The same of rows of any kinds of columns; `own_names` are what the frame calls those of the schema."""
    packer = ModelPacker(schema, coded=True, every=True)
    wanted = tuple(own_names[name] for name in packer.names)
    refuse_absent(frame.source, frame.schema.names, wanted)
    return _told(frame, _Fill(wanted, _Renamed(packer), answer), reply, threads)


def fitted_names(estimator: Any, frame: Frame | PieceFrame) -> Sequence[str]:
    """What the frame calls the columns of the fit: the same; where an array was fitted, what stands in their place."""
    if hasattr(estimator, "feature_names_in_"):
        return list(estimator.feature_names_in_)
    if not isinstance(frame, (DaskArray, PieceFrame)):
        raise UsageError(
            "no-column-names",
            f"the fit was of an array, whose columns have no names, so those of the {frame.source} cannot be matched",
            do="Fit a table that names its columns, or give an array",
        )
    check_count(estimator, frame.source, frame.schema.names)
    return list(frame.schema.names)


def check_count(estimator: Any, source: str, names: Sequence[str]) -> None:
    """Columns that are matched by position must be as many as were fitted."""
    if len(names) != estimator.n_features_in_:
        raise DataError(
            "column-count",
            f"the {source} has {len(names)} columns, and {estimator.n_features_in_} were fitted",
            do="Give a table with the columns of the fit",
        )


def refuse_absent(source: str, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Columns that were fitted must be there."""
    absent = [name for name in wanted if name not in names]
    if absent:
        raise DataError(
            "column-absent",
            f"the {source} has no column {shown(absent[0])!r}, which was fitted",
            do="Give a table with the columns of the fit",
        )


def _told(frame: Frame | PieceFrame, fill: _Fill, reply: Reply, threads: int | None) -> Any:
    if isinstance(frame, PieceFrame):
        return frame.told(fill.names, fill.array, threads)
    names = free_names(tuple(frame.schema.names), tuple(reply.columns))
    made = frame.filled(replace(fill, columns=names), dict(zip(names, reply.columns.values(), strict=True)))
    return made[:, 0] if reply.is_vector and isinstance(frame, DaskArray) else made


@dataclass(frozen=True)
class _Fill:
    """What travels to the rows of a frame."""

    names: tuple[str, ...]
    packer: Packer
    answer: Answer
    columns: tuple[str, ...] = ()

    def __call__(self, table: Any) -> dict[str, Array]:
        found = self.array(table) if table.num_rows else np.empty((0, len(self.columns)))
        each = found.reshape(len(found), -1).T
        return dict(zip(self.columns, each, strict=True))

    def array(self, table: Any) -> Array:
        """What the visit tells of the rows, of which there is one at least."""
        pack = self.packer(table.select(list(self.names)))
        cutter = Cutter(self.answer.encoding, bool(not np.isnan(pack.raw).any()), BLOCK_ROWS)
        parts = [self.answer.visit(self.answer.state, block) for block in cutter.blocks(pack, 0)]
        return np.concatenate(parts)


@dataclass(frozen=True)
class _Renamed:
    """Packs tables whose columns stand in the order of the packer, whatever their names."""

    packer: ModelPacker

    def __call__(self, table: Any) -> Pack:
        return self.packer(table.rename_columns(self.packer.names))
