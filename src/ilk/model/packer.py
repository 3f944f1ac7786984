"""Tables elsewhere, packed by the schema of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.engines.packed import Pack, PackLayout
from ilk.model.columns import design
from ilk.table.block import Encoding
from ilk.table.cells import as_numbers
from ilk.table.encode import encode_new
from ilk.table.read import from_arrow
from ilk.table.schema import Schema


@dataclass(frozen=True)
class ModelPacker:
    """Packs Arrow tables by a schema, as the rows of a sample were encoded; `coded` keeps categories as codes, and
    `every` keeps rows without a value."""

    schema: Schema
    coded: bool
    every: bool = False

    @property
    def names(self) -> list[str]:
        weight = [] if self.schema.weight is None else [self.schema.weight]
        return [*(column.name for column in self.schema.used), *weight]

    @property
    def layout(self) -> PackLayout:
        n_codes = len(self.schema.coded) if self.coded else 0
        n_binary = 0 if self.coded else sum(column.kind == "binary" for column in self.schema.coded)
        weighted = self.schema.weight is not None
        return PackLayout("float64", len(self.schema.numeric) + n_binary, n_codes, weighted)

    def __call__(self, arrow: Any) -> Pack:
        table = from_arrow(arrow, "the frame")
        untouched = Encoding(1.0, np.zeros(len(self.schema.numeric)))
        encoded = encode_new(table, self.schema, untouched)
        raw = encoded.numbers if self.coded else design(encoded.numbers, encoded.codes, self.schema)
        codes = encoded.codes if self.coded else None
        blank = np.asarray(np.isnan(raw).all(axis=1))
        if codes is not None:
            blank &= (codes < 0).all(axis=1)
        blank &= not self.every
        weight = None
        if self.schema.weight is not None:
            weight = as_numbers(table.column(self.schema.weight), self.schema.weight)[~blank]
        codes = None if codes is None else codes[~blank].astype(np.int32)
        return Pack(raw[~blank].astype(np.float64), weight, codes)
