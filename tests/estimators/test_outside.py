"""Estimators on tables that are not in memory: paths, streams, tables larger than memory, frames of Dask."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ilk
from ilk.assorted.fit import SEARCH_ROWS
from ilk.engines.pieces import PieceFrame
from ilk.errors import DataError, UsageError
from ilk.estimators import frames as outside
from ilk.estimators.frames import opened

N_ROWS = 1200
draws = np.random.default_rng(5)
GROUP = draws.integers(0, 3, size=N_ROWS)
NUMBERS = {
    "a": draws.normal(size=N_ROWS) + 4.0 * GROUP,
    "b": (draws.normal(size=N_ROWS) - 3.0 * GROUP).astype(np.float32),
    "c": draws.poisson(3 + 5 * GROUP),
}
NUMBERS["a"][::29] = np.nan
HEFT = draws.integers(0, 3, size=N_ROWS).astype(float)
MIXED = {**NUMBERS, "kind": np.array(["low", "mid", "high"])[(GROUP + (draws.random(N_ROWS) < 0.1)) % 3]}
BITS = {f"bit{j}": (draws.random(N_ROWS) < np.where(j == GROUP, 0.9, 0.1)).astype(float) for j in range(3)}

MODELS = {
    "k-means": (ilk.KMeans(3, n_init=2, random_state=0), NUMBERS),
    "k-medians": (ilk.KMedians(3, n_init=1, max_iter=3, random_state=0), NUMBERS),
    "trimmed": (ilk.TrimmedKMeans(3, n_init=1, max_iter=3, random_state=0), NUMBERS),
    "dp-means": (ilk.DPMeans(target_clusters=3, random_state=0), NUMBERS),
    "gaussian": (ilk.GaussianMixture(3, n_init=1, max_iter=5, random_state=0), NUMBERS),
    "student": (ilk.StudentMixture(2, n_init=1, max_iter=3, random_state=0), NUMBERS),
    "mixed": (ilk.MixedMixture(3, n_init=1, max_iter=5, random_state=0), MIXED),
    "assorted": (ilk.AssortedMixture(max_components=3, n_init=2, random_state=0), MIXED),
    "process": (ilk.DirichletProcessMixture(4, max_iter=5, random_state=0), MIXED),
    "craft": (ilk.CRAFT(target_clusters=2, max_iter=3, random_state=0), MIXED),
    "binary": (ilk.BinaryDPMeans(), BITS),
}
FEW = ("k-means", "gaussian", "mixed", "binary")  # one of each way to the rows


def written(path: Any, columns: dict[str, Any], *, name: str = "table.parquet", heft: bool = True) -> str:
    table = pa.table({**columns, "heft": HEFT} if heft else columns)
    pq.write_table(table, path / name, row_group_size=500)
    return str(path / name)


@pytest.fixture
def little_memory(monkeypatch):
    """Any table is larger than memory."""
    monkeypatch.setattr("ilk.table.out_of_core.memory_limit.LEAST", 0)
    monkeypatch.setenv("ILK_MEMORY", "3 B")


def same(name: str, here: Any, there: Any) -> None:
    assert np.array_equal(here.labels_, there.labels_)
    for field in ("cluster_centers_", "means_", "weights_"):
        if hasattr(here, field):
            np.testing.assert_allclose(getattr(there, field), getattr(here, field), rtol=1e-9, atol=1e-12)


def in_memory(name: str) -> Any:
    """The model fitted to the same table in memory."""
    import pandas as pd
    from sklearn.base import clone

    model, columns = MODELS[name]
    X = pd.DataFrame(columns)
    return clone(model).fit(X, sample_weight=HEFT), X


@pytest.mark.parametrize("name", MODELS)
def test_a_table_larger_than_memory_gives_the_answer_of_memory(name, tmp_path, little_memory):
    model, columns = MODELS[name]
    here, X = in_memory(name)
    path = written(tmp_path, columns)
    assert isinstance(opened(path), PieceFrame)
    there = model.fit(path, sample_weight="heft")
    same(name, here, there)
    assert there.feature_names_in_.tolist() == list(columns)
    found = there.predict(path)
    assert np.array_equal(found, here.predict(X))


@pytest.mark.parametrize("name", FEW)
def test_a_path_and_a_stream_are_read(name, tmp_path):
    model, columns = MODELS[name]
    here, X = in_memory(name)
    path = written(tmp_path, columns)
    same(name, here, model.fit(path, sample_weight="heft"))
    reader = pa.RecordBatchReader.from_batches(pa.table(columns).schema, pa.table(columns).to_batches(100))
    assert np.array_equal(model.predict(reader), here.predict(X))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FEW else pytest.mark.slow) for name in MODELS]
)
def test_a_frame_of_dask_gives_the_answer_of_memory(name):
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("distributed")
    import pandas as pd

    model, columns = MODELS[name]
    here, X = in_memory(name)
    frame = dd.from_pandas(pd.DataFrame({**columns, "heft": HEFT}), npartitions=3, sort=False)
    there = model.fit(frame, sample_weight="heft")
    same(name, here, there)
    assert np.array_equal(there.predict(frame).compute()["label"], here.predict(X))


def test_a_table_that_is_decoded_in_each_pass_gives_the_same(tmp_path, monkeypatch):
    """As where the disk is slower than decoding."""
    monkeypatch.setattr("ilk.table.out_of_core.memory_limit.COPIES", 1e6)
    monkeypatch.setattr("ilk.table.out_of_core.pack._reads_faster", lambda *_, **__: False)
    model, columns = MODELS["mixed"]
    here, _ = in_memory("mixed")
    there = model.fit(written(tmp_path, columns), sample_weight="heft")
    same("mixed", here, there)


@pytest.mark.parametrize("memory", ["much", "1MB", "-1"])
def test_a_bad_size_of_memory_is_named(memory, tmp_path, monkeypatch):
    monkeypatch.setenv("ILK_MEMORY", memory)
    with pytest.raises(UsageError, match=f"ILK_MEMORY='{memory}' is ") as caught:
        ilk.KMeans(2).fit(written(tmp_path, NUMBERS))
    assert caught.value.code == "bad-memory"


def test_a_client_of_our_own_that_was_closed_is_made_anew():
    pytest.importorskip("distributed")
    from ilk.engines.futures import DaskPool, _own_client

    first = _own_client()
    assert _own_client() is first
    first.close()
    again = DaskPool(_own_client())
    assert again.client is not first
    assert again.get(again.submit(len, again.put("four"))) == 4


def test_probabilities_of_a_table_larger_than_memory(tmp_path, little_memory):
    here, X = in_memory("mixed")
    found = here.predict_proba(written(tmp_path, MIXED))
    assert np.array_equal(found, here.predict_proba(X))


@pytest.mark.parametrize(
    "model",
    [ilk.GaussianMixture(1, random_state=0), ilk.MixedMixture(1), ilk.AssortedMixture(1, max_components=1)],
    ids=lambda model: type(model).__name__,
)
def test_one_component_has_a_column_of_probabilities(model, tmp_path, little_memory):
    da = pytest.importorskip("dask.array")
    X = np.column_stack([NUMBERS["a"], NUMBERS["b"]])
    model.fit(X)
    path = written(tmp_path, {"x0": X[:, 0], "x1": X[:, 1]}, heft=False)
    array = da.from_array(X, chunks=(500, 2))
    for found in (model.predict_proba(path), model.predict_proba(array).compute()):
        assert np.array_equal(found, np.ones((N_ROWS, 1)))
    for found in (model.predict(path), model.predict(array).compute()):
        assert np.array_equal(found, np.zeros(N_ROWS))


def test_probabilities_of_a_dask_array_are_made_once():
    da = pytest.importorskip("dask.array")
    X = np.column_stack([NUMBERS["a"], NUMBERS["b"]])
    model = ilk.GaussianMixture(2, n_init=1, max_iter=3, random_state=0).fit(X)
    found = model.predict_proba(da.from_array(X, chunks=(500, 2)))
    assert found.shape == (N_ROWS, 2)
    assert found.dtype == np.float64
    assert len(found.to_delayed().ravel()) == 3
    assert np.array_equal(found.compute(), model.predict_proba(X))


@pytest.mark.parametrize("name", FEW)
def test_columns_without_names_are_matched_by_position(name, tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd
    from sklearn.base import clone

    columns = {key: column for key, column in MODELS[name][1].items() if key != "kind"}
    X = np.column_stack([*columns.values()])
    model = clone(MODELS[name][0]).fit(X)
    labels = model.predict(X)
    few = written(tmp_path, dict([*columns.items()][:2]), heft=False, name="few.parquet")
    path = written(tmp_path, columns, heft=False)
    assert np.array_equal(model.predict(da.from_array(X, chunks=(500, 3))).compute(), labels)
    assert np.array_equal(model.predict(path), labels)
    with pytest.raises(DataError, match="has 2 columns, and 3 were fitted"):
        model.predict(few)
    monkeypatch.setattr("ilk.table.out_of_core.memory_limit.memory_bytes", lambda memory: 3.0)
    assert np.array_equal(model.predict(path), labels)
    for other in (few, da.from_array(X[:, :2])):
        with pytest.raises(DataError, match="has 2 columns, and 3 were fitted"):
            model.predict(other)
    with pytest.raises(UsageError, match="whose columns have no names"):
        model.predict(dd.from_pandas(pd.DataFrame(columns), npartitions=2))


def test_a_large_table_is_told_of_with_the_threads_and_columns_needed(tmp_path, little_memory, monkeypatch):
    from ilk.engines import pieces
    from ilk.table.out_of_core.table import PieceTable

    model = ilk.KMeans(2, n_init=1, max_iter=2, random_state=0, threads=1)
    model.fit(written(tmp_path, {name: NUMBERS[name] for name in ("a", "b")}, heft=False))
    read, threads = [], []
    parts_of, in_order = PieceTable.parts_of, pieces.in_order

    def watched(table: Any, piece: int, names: Any = None) -> Any:
        read.append(names)
        return parts_of(table, piece, names)

    def walked(task: Any, items: Any, n_threads: int) -> Any:
        threads.append(n_threads)
        return in_order(task, items, n_threads)

    monkeypatch.setattr(PieceTable, "parts_of", watched)
    monkeypatch.setattr(pieces, "in_order", walked)
    model.predict(written(tmp_path, MIXED))
    assert {tuple(names) for names in read} == {("a", "b")}
    assert threads == [1]


def test_cells_that_are_not_binary_are_refused_wherever_they_lie(tmp_path, little_memory):
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    model = ilk.BinaryDPMeans().fit(pd.DataFrame(BITS))
    other = BITS | {"bit1": np.where(np.arange(N_ROWS) == 900, 2.0, BITS["bit1"])}
    for X, where in ((pd.DataFrame(other), "; first row 900"), (written(tmp_path, other), "")):
        with pytest.raises(DataError, match=rf"1 cells are neither 0 nor 1 \(columns 1{where}\)"):
            model.predict(X)
    frame = dd.from_pandas(pd.DataFrame(other), npartitions=2)
    with pytest.raises(DataError, match=r"1 cells are neither 0 nor 1 \(columns 1\)") as refused:
        model.predict(frame).compute()
    travelled = pickle.loads(pickle.dumps(refused.value))  # from a worker
    assert (type(travelled), vars(travelled), str(travelled)) == (
        DataError,
        vars(refused.value),
        str(refused.value),
    )


def test_a_model_of_a_large_table_is_pickled_without_its_rows(tmp_path, little_memory):
    n_rows = SEARCH_ROWS + 1
    place = np.arange(n_rows) % 2
    columns = {"a": draws.normal(size=n_rows) + 9.0 * place, "b": draws.normal(size=n_rows)}
    path = written(tmp_path, columns, heft=False)
    model = ilk.AssortedMixture(2, n_init=1, max_iter=2, transforms=False, numbers="cells", random_state=0)
    stored = pickle.dumps(model.fit(path))
    assert len(stored) < n_rows * 8  # labels and their costs, no column
    again = pickle.loads(stored)
    assert np.array_equal(again.predict(path), model.predict(path))
    assert np.array_equal(again.predict_proba(path), model.predict_proba(path))
    assert again.traits() == model.traits()
    assert np.isfinite(model.objective_from(place))
    with pytest.raises(UsageError, match="pickled without the rows of its fit"):
        again.objective_from(place)


def test_kinds_of_a_large_frame_come_from_a_sample(monkeypatch):
    dd = pytest.importorskip("dask.dataframe")
    pytest.importorskip("distributed")
    import pandas as pd

    monkeypatch.setattr(outside, "SAMPLE_ROWS", 300)
    frame = dd.from_pandas(pd.DataFrame(MIXED), npartitions=2, sort=False)
    with pytest.warns(UserWarning, match=r"come from a sample of [\d,]+ of 1,200 rows"):
        found = ilk.MixedMixture(3, n_init=1, max_iter=3, random_state=0).fit(frame)
    assert len(found.labels_) == N_ROWS


def test_what_cannot_be_fitted_is_refused(tmp_path, little_memory):
    path = written(tmp_path, MIXED)
    with pytest.raises(DataError, match="'kind' holds string, not numbers"):
        ilk.KMeans(2).fit(path)
    with pytest.raises(UsageError, match="not the name of a column"):
        ilk.MixedMixture(2).fit(path, sample_weight=HEFT)
    with pytest.raises(UsageError, match="larger or elsewhere"):
        ilk.KMeans(2, random_state=0).fit(np.arange(6.0)[:, None]).transform(path)
    with pytest.raises(DataError, match="neither 0 nor 1"):
        ilk.BinaryDPMeans().fit(written(tmp_path, BITS | {"bit0": GROUP.astype(float)}))
    fitted = ilk.BinaryDPMeans().fit(written(tmp_path, BITS), sample_weight="heft")
    with pytest.raises(DataError, match="no column 'bit0'"):
        fitted.predict(written(tmp_path, NUMBERS))


def test_cells_of_a_large_table_are_cut_at_a_threshold(tmp_path, little_memory):
    numbers = {name: 3.0 * column - 1 for name, column in BITS.items()}
    path = written(tmp_path, numbers)
    model = ilk.BinaryDPMeans(binarize=0.0).fit(path, sample_weight="heft")
    here, X = in_memory("binary")
    assert np.array_equal(model.labels_, here.labels_)
    assert np.array_equal(model.predict(path), here.predict(X))


CHILD = """
import resource, sys, warnings
import numpy as np, pyarrow.parquet as pq, ilk

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

warnings.simplefilter("ignore")
path, small = sys.argv[1:]
centres = pq.read_table(small).slice(0, 3).to_pandas().to_numpy()
options = {"init": centres, "max_iter": 1, "threads": 2}
models = ilk.KMeans(3, **options), ilk.GaussianMixture(3, structure="VVV", **options)
for model in models:
    model.fit(small)  # what is imported and made once is no part of the growth
before = peak()
for model in models:
    assert len(model.fit(path).labels_) == 2_400_000
print(peak() - before)
"""


def test_a_file_of_300_mb_grows_memory_by_no_more_than_150_mb(tmp_path):
    part = pa.table({f"x{j}": draws.normal(size=100_000) for j in range(16)})
    with pq.ParquetWriter(
        tmp_path / "large.parquet", part.schema, compression="none", use_dictionary=False
    ) as file:
        for _ in range(24):
            file.write_table(part)
    pq.write_table(part.slice(0, 5_000), tmp_path / "small.parquet")
    paths = [str(tmp_path / name) for name in ("large.parquet", "small.parquet")]
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, *paths],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ILK_MEMORY": "150MB"},
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) <= 150e6
