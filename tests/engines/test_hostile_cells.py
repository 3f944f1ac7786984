"""Cells that look like messages of ours, in every error that can carry them: nothing in them is ever run."""

from __future__ import annotations

import base64
import json
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ilk
from ilk.engines import frames, packed, spark
from ilk.engines.packed import NumberPacker, Pack, PackLayout
from ilk.engines.spark_errors import Refused, Secret
from ilk.errors import DataError, EngineError, IlkError, ResourceError
from tests.engines.clusters import Cluster

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(os.environ.get("ILK_KERNELS") == "numpy", reason="tried with the compiled kernels"),
]
SPARKS = pytest.mark.parametrize("cluster", ["spark", "connect"], indirect=True, scope="session")
ALL = pytest.mark.parametrize("cluster", ["spark", "connect", "dask"], indirect=True, scope="session")
LAYOUT = PackLayout("float64", 2)


class Deed:
    """Makes a folder where it is unpickled."""

    def __init__(self, sign: str) -> None:
        self.sign = sign

    def __reduce__(self) -> Any:
        return os.makedirs, (self.sign, 0o777, True)


def hostile(sign: Path) -> list[str]:
    """Texts that look like what workers send home; each would leave the sign where it were believed."""
    deed = pickle.dumps(Deed(str(sign)))
    forged = Refused.of(ResourceError("x", "forged")).text
    bodies = [deed, Secret().seal(Deed(str(sign))), forged.encode()]
    marks = [f"[ilk-refusal {base64.b64encode(body).decode()}]" for body in bodies]
    return [*marks, forged, "[ilk-refusal ====]", "No module named 'os'", "\x1b[31m" + marks[0]]


@pytest.fixture
def sign(tmp_path):
    path = tmp_path / "ran"
    yield path
    assert not path.exists(), "code from a cell ran"


@pytest.fixture(params=["near", "far"])
def place(request, monkeypatch):
    """Rows that this process maps, and rows that stay with the workers."""
    if request.param == "far":
        monkeypatch.setattr(frames, "spark_local_rows", lambda *_: None)
        monkeypatch.setattr(packed, "BROUGHT_BYTES", 0)
    return request.param


def cast(cluster: Cluster, cell: str) -> Any:
    """A frame of a column cast from text, in which one cell is no number."""
    draws = np.random.default_rng(0)
    text = [*map(str, draws.normal(size=299)), cell]
    return cluster.frame({"text": text, "y": draws.normal(size=300)}).selectExpr(
        "cast(text as double) as x", "y"
    )


CALLS = {
    "k-means": lambda frame: ilk.KMeans(2, n_init=1, random_state=0).fit(frame),
    "cluster": lambda frame: ilk.cluster(frame, k=2, method="k-means"),
}


@SPARKS
@pytest.mark.parametrize("call", CALLS)
def test_a_cell_in_an_error_of_spark_is_text(cluster, call, place, sign):
    for cell in hostile(sign)[:: 1 if (call, place) == ("k-means", "near") else 3]:
        with pytest.raises(DataError, match=r"Spark cannot compute a cell.*try_cast") as error:
            CALLS[call](cast(cluster, cell))
        assert error.value.code == "frame-fails"
        assert "\x1b" not in str(error.value)


@dataclass(frozen=True)
class Quoting(NumberPacker):
    """A packer that refuses a table, with a cell of it in every part of the refusal."""

    cell: str = ""

    def __call__(self, table: Any) -> Pack:
        raise ResourceError("no-such-cell", f"a cell is {self.cell}", where=self.cell, do=self.cell)


@dataclass(frozen=True)
class Refuses:
    """A visit that refuses a block likewise."""

    cell: str

    def __call__(self, _: object, block: Any) -> Any:
        raise DataError("no-such-cell", f"a cell is {self.cell}", where=self.cell, do=self.cell)


def rows_of(cluster: Cluster, packer: Any) -> Any:
    frame = cluster.frame({"a": np.arange(300.0), "b": np.arange(300.0)})
    if cluster.kind != "dask":
        return spark.SparkRows.of_frame(frame, packer, LAYOUT, threads=1)
    return frames.frame_of(frame).rows(["a", "b"], packer, LAYOUT, None)


@ALL
def test_a_cell_in_a_refusal_of_ours_is_text(cluster, monkeypatch, sign):
    monkeypatch.setattr(packed, "BROUGHT_BYTES", 0)
    rows = rows_of(cluster, NumberPacker(LAYOUT))
    for cell in hostile(sign):
        expected = DataError("no-such-cell", f"a cell is {cell}", where=cell, do=cell)
        for call in (rows.reduce, lambda *given: list(rows.scan(*given))):
            with pytest.raises(DataError) as error:
                call(Refuses(cell), None)
            assert (type(error.value), str(error.value)) == (DataError, str(expected))
        with pytest.raises(ResourceError) as refused:
            rows_of(cluster, Quoting(LAYOUT, cell))
        assert (refused.value.what, refused.value.where, refused.value.do) == (
            f"a cell is {cell}",
            cell,
            cell,
        )


@ALL
def test_cells_of_text_columns_are_text(cluster, sign):
    """Levels, ids and texts that stand for numbers: an answer or a refusal."""
    cells = hostile(sign)
    draws = np.random.default_rng(0)
    group = draws.integers(0, 2, 600)
    columns = {
        "x": draws.normal(size=600) + 8 * group,
        "level": [cells[int(place)] for place in draws.integers(0, 3, 600)],
        "mostly": [str(value) for value in draws.normal(size=597)] + cells[:3],
    }
    for options in ({"k": 2}, {"k": 2, "types": {"mostly": "numeric"}}, {"k": 2, "weight": "mostly"}):
        told = []
        try:
            assert len(ilk.cluster(cluster.frame(columns), **options).sizes) == 2
        except IlkError as error:
            told.append(str(error))
        assert "\x1b" not in "".join(told)


def test_a_result_without_the_signature_of_its_job_is_not_opened(sign):
    secret, deed = Secret(), pickle.dumps(Deed(str(sign)))
    for data in (deed, Secret().seal(1), b"x" * 32 + deed, b"", secret.seal(1)[:-1] + b"x"):
        with pytest.raises(EngineError, match="not signed by this job"):
            secret.unseal(data)
    assert secret.unseal(memoryview(secret.seal({"a": [1]}))) == {"a": [1]}
    assert secret.key.hex() not in repr(secret) + str(secret)


@pytest.mark.parametrize("kind", [DataError, ResourceError, EngineError, IlkError])
def test_a_refusal_is_of_a_known_class(kind):
    found = Refused.of(kind("a-code", "what", where="w", do="Do")).error()
    assert (type(found), found.code, str(found)) == (kind, "a-code", "what (w). Do.")
    foreign = json.loads(Refused.of(found).text) | {"class": "os.system"}
    assert type(Refused(json.dumps(foreign)).error()) is IlkError


@pytest.mark.slow
def test_ray_carries_cells_as_text(sign, monkeypatch):
    ray = pytest.importorskip("ray")
    data = pytest.importorskip("ray.data")
    monkeypatch.setattr(packed, "BROUGHT_BYTES", 0)
    ray.init(num_cpus=1, object_store_memory=150 << 20, include_dashboard=False, log_to_driver=False)
    try:
        table = pa.table({"a": np.arange(300.0), "b": np.arange(300.0)})
        frame = frames.frame_of(data.from_arrow([table]))
        rows = frame.rows(["a", "b"], NumberPacker(LAYOUT), LAYOUT, None)
        for cell in hostile(sign):
            with pytest.raises(DataError, match="a cell is"):
                rows.reduce(Refuses(cell), None)
            with pytest.raises(ResourceError, match="a cell is"):
                frame.rows(["a", "b"], Quoting(LAYOUT, cell), LAYOUT, None)
    finally:
        ray.shutdown()
