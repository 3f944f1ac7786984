"""Tables larger than memory through the whole job: the answer of memory, and no more memory than was allowed."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ilk
from ilk import store
from ilk.errors import UsageError
from ilk.table.out_of_core import memory_limit as room
from ilk.table.out_of_core.table import PieceTable

N_ROWS = 40_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Numbers, categories, blanks and weights; a row without any value; row groups of an odd size."""
    draws = np.random.default_rng(0)
    label = draws.integers(0, 3, N_ROWS)
    numbers = draws.normal(size=(N_ROWS, 3)) + 6 * label[:, None]
    blank = draws.random((N_ROWS, 4)) < 0.01
    blank[17] = True
    columns = {f"x{j}": pa.array(numbers[:, j], mask=blank[:, j]) for j in range(3)}
    kinds = np.array(["a", "b", "c"])[(label + (draws.random(N_ROWS) < 0.1)) % 3]
    columns["kind"] = pa.array(kinds, mask=blank[:, 3])
    columns["heft"] = pa.array(draws.integers(1, 4, N_ROWS) / 2)
    columns["truth"] = pa.array([f"g{i}" for i in label])
    columns["number"] = pa.array(draws.permutation(N_ROWS))
    target = tmp_path_factory.mktemp("memory") / "table.parquet"
    pq.write_table(pa.table(columns), target, row_group_size=7_001)
    return target


@pytest.fixture
def tight(monkeypatch):
    """Any table is larger than memory."""
    monkeypatch.setattr(room, "LEAST", 0)
    return {"memory": 1e6}


def parameters(model):
    return store.flatten(model._tree())[1]


def test_a_group_that_the_sample_misses_is_told_by_its_own_rows(tmp_path, tight, monkeypatch):
    monkeypatch.setattr("ilk.analysis.shown.TOLD_ROWS", 50)
    draws = np.random.default_rng(0)
    size, width = draws.normal(size=(2, 2000)) + 8.0 * draws.integers(0, 2, 2000)
    size[1500:1504], size[[3, 1501]], width[3] = (
        900.0,
        None,
        None,
    )  # a far group, one of its cells and a row blank
    pq.write_table(pa.table({"size": size, "width": width}), tmp_path / "far.parquet", row_group_size=300)
    result = ilk.cluster(tmp_path / "far.parquet", k=3, method="k-means", memory=tight["memory"] / 100)
    assert isinstance(result.table, PieceTable)
    smallest = result.groups[-1]
    assert smallest.rows == 3
    assert {fact.column: fact.value for fact in smallest.facts}["size"] == 900.0


@pytest.mark.parametrize("method", ["k-means", "gaussian", "assorted"])
def test_the_answer_is_that_of_memory(path, tight, method):
    asked = {"method": method, "k": 3, "weight": "heft", "truth": "truth", "id": "number", "threads": 2}
    if method == "gaussian":
        asked["ignore"] = ["x1", "x2"]
    held, pieces = ilk.cluster(path, **asked), ilk.cluster(path, **asked, **tight)
    assert isinstance(pieces.table, PieceTable)
    assert np.array_equal(held.labels, pieces.labels)
    assert [g.rows for g in held.groups] == [g.rows for g in pieces.groups]
    assert [g.weight for g in held.groups] == pytest.approx([g.weight for g in pieces.groups])
    one, other = held.summary(), pieces.summary()
    assert one["table"]["ledger"] == other["table"]["ledger"]
    assert one["table"]["weight"] == other["table"]["weight"]
    for name in ("bic", "cost", "k"):
        assert one["chosen"][name] == other["chosen"][name]
    mine, theirs = parameters(held.model), parameters(pieces.model)
    assert all(np.array_equal(mine[name], theirs[name], equal_nan=True) for name in mine)
    assert pieces.probabilities is None
    assert other["truth"] is not None


def test_a_reader_and_a_relation_are_read_once(path, tight):
    import duckdb

    table = pq.read_table(path)
    whole = ilk.cluster(table, method="k-means", k=2)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=999))
    relation = duckdb.sql(f"select * from '{path}'")
    for data in (reader, relation):
        found = ilk.cluster(data, method="k-means", k=2, **tight)
        assert isinstance(found.table, PieceTable)
        assert np.array_equal(found.labels, whole.labels)


def test_a_text_file_is_read_in_pieces(path, tight, tmp_path):
    import pyarrow.csv as pc

    target = tmp_path / "table.csv"
    pc.write_csv(pq.read_table(path).slice(0, 3_000), target)
    held, found = (ilk.cluster(target, method="k-means", k=2, **asked) for asked in ({}, tight))
    assert isinstance(found.table, PieceTable)
    assert np.array_equal(found.labels, held.labels)


def test_rows_are_assigned_part_by_part(path, tight, tmp_path):
    from ilk.analysis.run_folder import new_parts, write_parts, write_run
    from ilk.table.out_of_core.memory_limit import open_table

    found = ilk.cluster(path, method="k-means", k=2, id="number", **tight)
    write_run(found, str(tmp_path / "run"), parquet=True)
    written = pq.read_table(tmp_path / "run" / "assignments.parquet")
    letters = np.array([*found.model.letters, None], dtype=object)
    assert written["row"].to_pylist() == list(range(N_ROWS))
    assert written["group"].to_pylist() == letters[found.labels].tolist()
    table = open_table(path, 1e6)
    write_parts(tmp_path / "new.csv", new_parts(found.model, table), table.n_rows)
    assert len((tmp_path / "new.csv").read_text().splitlines()) == N_ROWS + 1
    whole = found.model.assign(path)
    assert whole["group"].to_pylist() == written["group"].to_pylist()
    with pytest.raises(ilk.errors.DataError, match="rows were read") as caught:
        write_parts(tmp_path / "lost.csv", new_parts(found.model, table), table.n_rows + 1)
    assert caught.value.code == "rows-lost"
    assert not (tmp_path / "lost.csv").exists()


@pytest.mark.parametrize("memory", ["much", "5 apples", -1, True, "1MB"])
def test_bad_sizes_are_refused(path, memory):
    with pytest.raises(UsageError) as caught:
        ilk.cluster(path, memory=memory)
    assert caught.value.code == "bad-memory"


CHILD = """
import json, resource, sys
import numpy as np, ilk
from ilk.table.out_of_core.table import PieceTable

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

path, small = sys.argv[1:]
ilk.cluster(small, method="k-means", k=3, threads=2)  # what is imported and made once is no part of the growth
before = peak()
found = ilk.cluster(path, method="k-means", k=5, scale=None, threads=2, memory="150MB")
growth = peak() - before
np.save(sys.argv[1] + ".npy", found.labels)
print(json.dumps({"growth": growth, "pieces": isinstance(found.table, PieceTable)}))
"""


@pytest.mark.slow
def test_a_file_of_300_mb_takes_no_more_than_150_mb(tmp_path):
    n_rows, draws = 2_350_000, np.random.default_rng(1)
    centres = draws.normal(size=(5, 16)) * 8
    target = str(tmp_path / "large.parquet")
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(16)])
    with pq.ParquetWriter(target, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, n_rows, 100_000):
            n_here = min(100_000, n_rows - first)
            X = draws.normal(size=(n_here, 16)) + centres[draws.integers(0, 5, n_here)]
            writer.write_table(pa.table(list(X.T), schema=schema))
    small = str(tmp_path / "small.parquet")
    pq.write_table(pq.read_table(target).slice(0, 5_000), small)
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, target, small], capture_output=True, text=True, check=True
    )
    told = json.loads(ran.stdout)
    assert told["pieces"]
    assert told["growth"] <= 150e6
    whole = ilk.cluster(target, method="k-means", k=5, scale=None, threads=2)
    assert np.array_equal(np.load(target + ".npy"), whole.labels)
