"""Models to export, made without a search, and the labels that DuckDB gives by their SELECT."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ilk
from ilk.assorted.problem import ColumnTransform
from ilk.export.dialects import DUCKDB
from ilk.export.sql import select
from ilk.model.model import Model
from ilk.model.placed import N_QUANTILES
from ilk.table.schema import Schema


def gaussian_model(structure, group_of=(0, 1, 2), columns=3, seed=0):
    """Three components of a structure, with groups as wished."""
    draws = np.random.default_rng(seed)
    mixed = draws.normal(size=(columns, columns))
    places = (np.zeros(columns), np.full(columns, 2.5), np.arange(columns) * 2.0 - 3)
    X = np.vstack(
        [draws.normal(size=(60, columns)) @ mixed * (1 + 0.3 * i) + m for i, m in enumerate(places)]
    )
    X = X * [1, 100, 0.01, 7][:columns] + [1e4, 0, -3, 5][:columns]
    fitted = ilk.GaussianMixture(3, structure=structure, random_state=0).fit(X)
    names = [f"x{j}" for j in range(columns)]
    k = max(group_of) + 1
    model = Model(
        method="gaussian",
        family=f"gaussian {structure}",
        options={},
        schema=Schema.numbers(names),
        encoding=fitted._encoding,
        params=fitted.fit_.params,
        group_of=group_of,
        letters=tuple("ABC"[:k]),
        names=tuple("abc"[:k]),
        sizes=np.ones(k),
        quantiles=np.tile(np.arange(N_QUANTILES), (k, 1)) * 1.0,
    )
    return model, dict(zip(names, X.T, strict=True))


def level_for_missing_model():
    """Two groups, one of which most often has no soil; a missing soil is a level of its own."""
    draws = np.random.default_rng(0)
    side = np.arange(120) % 2
    soil = np.where(side == 1, "clay", "sand").astype(object)
    soil[(side == 1) & (draws.random(120) < 0.7)] = None
    frame = pd.DataFrame({"x": draws.normal(size=120) + 4 * side, "soil": soil})
    fitted = ilk.AssortedMixture(2, missing="level", numbers="cells", random_state=0).fit(frame)
    scene = fitted._found.scene
    return Model(
        method="assorted",
        family="assorted",
        options={},
        schema=fitted._format.schema,
        encoding=fitted._format.encoding,
        params=fitted._found.params,
        treat=ColumnTransform(scene.plan, scene.scales, scene.options.numbers),
        group_of=(0, 1),
        letters=("A", "B"),
        names=("a", "b"),
        sizes=np.ones(2),
        quantiles=np.tile(np.arange(N_QUANTILES), (2, 1)) * 1.0,
    )


def with_blanks(columns, share=0.3, seed=1):
    """The same columns with some cells missing, and a first row of nothing else."""
    draws = np.random.default_rng(seed)
    made = {}
    for name, values in columns.items():
        gaps = draws.random(len(values)) < share
        gaps[0] = True
        made[name] = pa.array(values.tolist() if hasattr(values, "tolist") else values, mask=gaps)
    return made


@pytest.fixture
def sql_labels():
    """The labels of a table by the SELECT of a model, in the order of its rows."""

    def run(model, table):
        table = pa.table(table)
        numbered = table.append_column("the row", pa.array(range(table.num_rows)))
        with duckdb.connect() as connection:
            connection.register("data", numbered)
            made = connection.sql(select(model, DUCKDB, "data"))
            names, rows = made.columns, made.fetchall()
        rows.sort(key=lambda row: row[names.index("the row")])
        return [row[-1] for row in rows]

    return run


def assigned(model, table):
    """The labels that `assign` gives; of a table without clear groups its segments, as the SELECT has them."""
    with np.errstate(all="ignore"):
        return model.assign(pa.table(table))["segment" if model.segmented else "group"].to_pylist()
