"""Frames on clusters at the estimators' face: their rows for a fit, and answers as columns beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ilk.engines.base import Rows
from ilk.engines.condition import check_weights, conditioned, survey_rows
from ilk.engines.frames import Frame
from ilk.engines.packed import Cutter, NumberPacker, PackLayout
from ilk.errors import DataError, UsageError, shown, warn
from ilk.fitting.model import free_names
from ilk.table.block import BLOCK_ROWS, Array, Block, Encoding
from ilk.table.condition import precision_cautions


def frame_rows(
    estimator: Any, frame: Frame, sample_weight: Any, *, scale: str | None, threads: int | None, k: int
) -> Rows:
    """The rows of a fit, checked and conditioned; `sample_weight` is the name of a column."""
    weight = _weight_name(frame, sample_weight)
    names = [name for name in frame.schema.names if name not in weight]
    layout = PackLayout(_number_type(frame, [*names, *weight]), len(names), weighted=bool(weight))
    rows = frame.rows([*names, *weight], NumberPacker(layout), layout, threads)
    n_counting = check_weights(rows)
    if n_counting < k:
        raise DataError(
            "fewer-rows-than-groups",
            f"n_samples={n_counting} rows with weight are fewer than the {k} groups asked for",
            do="Ask for fewer groups",
        )
    facts = survey_rows(rows, names)
    for code, text in precision_cautions(facts, names):
        warn(code, text, depth=6)
    estimator.n_features_in_ = len(names)
    estimator.feature_names_in_ = np.array(names, dtype=object)
    found: Rows = conditioned(rows, facts, scale)
    return found


def _weight_name(frame: Frame, sample_weight: Any) -> list[str]:
    if sample_weight is None:
        return []
    if isinstance(sample_weight, str) and sample_weight in frame.schema.names:
        return [sample_weight]
    raise UsageError(
        "bad-weight",
        "sample_weight is not the name of a column of the frame",
        do='Put the weights into a column and name it: sample_weight="weight"',
    )


def _number_type(frame: Frame, names: Sequence[str]) -> str:
    kinds = {name: frame.schema.field(name).type for name in names}
    for name, kind in kinds.items():
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not (is_number or pa.types.is_boolean(kind)):
            raise DataError(
                "not-numbers",
                f"column {shown(name)!r} holds {kind}, not numbers",
                do="Select the columns of numbers, or use ilk.cluster, which takes all kinds",
            )
    return "float32" if all(kind == pa.float32() for kind in kinds.values()) else "float64"


@dataclass(frozen=True)
class Answer:
    """What is told of rows: a visit, and how the numbers it sees are conditioned."""

    encoding: Encoding
    visit: Callable[[Any, Block], Array]
    state: Any


def answered(frame: Frame, names: Sequence[str], answer: Answer, columns: Mapping[str, Any]) -> Any:
    """The frame with what a visit tells of each row, in columns of these names and Arrow types."""
    absent = [name for name in names if name not in frame.schema.names]
    if absent:
        raise DataError(
            "column-absent",
            f"the frame has no column {shown(absent[0])!r}, which was fitted",
            do="Give a frame with the columns of the fit",
        )
    layout = PackLayout(_number_type(frame, names), len(names))
    wanted = dict(zip(free_names(tuple(frame.schema.names), tuple(columns)), columns.values(), strict=True))
    return frame.filled(_Fill(tuple(names), layout, answer, tuple(wanted)), wanted)


@dataclass(frozen=True)
class _Fill:
    """What travels to the rows of a frame."""

    names: tuple[str, ...]
    layout: PackLayout
    answer: Answer
    columns: tuple[str, ...]

    def __call__(self, table: Any) -> dict[str, Array]:
        pack = NumberPacker(self.layout)(table.select(list(self.names)))
        cutter = Cutter(self.answer.encoding, bool(not np.isnan(pack.raw).any()), BLOCK_ROWS)
        parts = [self.answer.visit(self.answer.state, block) for block in cutter.blocks(pack, 0)]
        found = np.concatenate(parts) if parts else np.empty((0, len(self.columns)))
        each = found.reshape(len(found), -1).T
        return dict(zip(self.columns, each, strict=True))
