"""Ray Datasets: the labels and parameters of memory, through the futures that serve Dask."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import ilk
from ilk.engines import packed
from ilk.engines.ray import RayPool
from ilk.errors import DataError

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]

draws = np.random.default_rng(0)
GROUP = draws.integers(0, 2, size=4000)
COLUMNS = {"row": np.arange(4000), "a": draws.normal(size=4000) + 6 * GROUP, "b": draws.normal(size=4000)}
KIND = np.array(["x", "y"])[GROUP ^ (draws.random(4000) < 0.1)]


@pytest.fixture(scope="module")
def dataset():
    import ray.data

    ray.init(num_cpus=2, object_store_memory=150 << 20, include_dashboard=False, log_to_driver=False)
    whole = pa.table({**COLUMNS, "kind": KIND})
    yield ray.data.from_arrow([whole.slice(first, 1000) for first in range(0, 4000, 1000)])
    ray.shutdown()


@pytest.fixture(autouse=True)
def far(monkeypatch):
    """Few rows stay with the workers, too."""
    monkeypatch.setattr(packed, "BROUGHT_BYTES", 0)


def test_k_means_has_the_bits_of_memory(dataset):
    numbers = np.column_stack([COLUMNS["a"], COLUMNS["b"]])
    model = ilk.KMeans(2, n_init=1, random_state=0)
    here = model.fit(numbers)
    centres, labels = here.cluster_centers_, here.labels_
    there = model.fit(dataset.select_columns(["a", "b"]))
    assert np.array_equal(centres, there.cluster_centers_)
    assert np.array_equal(labels, there.labels_)
    answer = pa.concat_tables(ray.get(there.predict(dataset).to_arrow_refs())).sort_by("row")
    assert np.array_equal(answer["label"], labels)


def test_blocks_of_pandas_are_taken(dataset):
    import pandas as pd

    whole = pd.DataFrame({**COLUMNS, "kind": KIND, "same": pd.Categorical(KIND)})
    found = ray.data.from_pandas([whole[:2000], whole[2000:]])
    assert not isinstance(found.schema().base_schema, pa.Schema)
    model = ilk.KMeans(2, n_init=1, random_state=0)
    here = model.fit(whole[["a", "b"]]).labels_
    there = model.fit(found.select_columns(["a", "b"]))
    assert np.array_equal(here, there.labels_)
    with pytest.raises(DataError, match=r"column 'same' holds dictionary<.*not numbers"):
        model.fit(found.select_columns(["a", "same"]))


def test_a_task_is_made_once(dataset, monkeypatch):
    made = []
    remote = ray.remote
    monkeypatch.setattr(ray, "remote", lambda function: made.append(function) or remote(function))
    pool = RayPool()
    references = [pool.submit(len, pool.put([0] * size)) for size in (1, 2, 3)]
    assert [pool.get(reference) for reference in references] == [1, 2, 3]
    assert len(made) <= 1


def test_mixed_columns_have_the_answer_of_memory(dataset):
    options = {"n_init": 1, "max_iter": 4, "random_state": 0, "types": {"row": "ignore"}}
    here = ilk.MixedMixture(2, **options).fit({**COLUMNS, "kind": KIND})
    there = ilk.MixedMixture(2, **options).fit(dataset)
    assert np.array_equal(here.labels_, there.labels_)
    np.testing.assert_allclose(there.means_, here.means_, rtol=1e-9)
