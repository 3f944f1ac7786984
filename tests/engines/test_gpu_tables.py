"""On a card: every table of the repository, repeated until it has rows enough, is fitted as on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

import ilk
from ilk.engines.gpu import GpuRows
from ilk.kernels.gpu import launch
from ilk.kernels.gpu.nvrtc import Unavailable

TABLES = sorted((Path(__file__).parent.parent / "data").glob("*.csv"))
ROWS = 6000  # kernels take tables of 4,096 rows and more


@pytest.fixture(scope="module", autouse=True)
def card():
    try:
        return launch.open_device()
    except Unavailable as why:
        pytest.skip(str(why))


def repeated(path: Path) -> pa.Table:
    table = arrow_csv.read_csv(path)
    return pa.concat_tables([table] * -(-ROWS // table.num_rows))


def numbers_of(table: pa.Table) -> np.ndarray:
    kept = [
        column
        for column in table.columns
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    ]
    made = [np.asarray(column.to_numpy(), dtype=np.float64) for column in kept]
    return np.column_stack(made) if made else np.empty((table.num_rows, 0))


def agree(cpu, cuda):
    """The same cost, and the same labels unless several starts of the CPU end at that cost, any of which may win."""
    assert cuda.fit_.cost == pytest.approx(cpu.fit_.cost, rel=1e-7), (cpu.fit_.starts, cuda.fit_.starts)
    best = [start for start in cpu.fit_.starts if start.cost <= cpu.fit_.cost + 1e-9 * abs(cpu.fit_.cost)]
    alike = (cpu.labels_ == cuda.labels_).mean()
    assert alike > 0.999 or len(best) > 1, (cpu, alike, cpu.fit_.starts, cuda.fit_.starts)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_mixed_columns(path):
    table = repeated(path)
    for make in (
        lambda device: ilk.MixedMixture(3, smoothing=1, n_init=2, random_state=0, device=device),
        lambda device: ilk.AssortedMixture(3, random_state=0, device=device),
    ):
        agree(make("cpu").fit(table), make("cuda").fit(table))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_numbers(path):
    X = numbers_of(repeated(path))
    X = X[:, ~np.isnan(X).any(axis=0)]
    X = X[:, X.std(axis=0) > 0] if X.size else X
    if not X.shape[1]:
        pytest.skip("no column of numbers without blanks")
    k_means = {"scale": "standard", "n_init": 3, "random_state": 0}
    cpu, cuda = (ilk.KMeans(3, device=device, **k_means).fit(X) for device in ("cpu", "cuda"))
    agree(cpu, cuda)
    k_means["n_init"] = 1
    one, other = (ilk.KMeans(4, device=device, **k_means).fit(X) for device in ("cpu", "cuda"))
    assert np.array_equal(one.labels_, other.labels_)
    assert np.array_equal(one.cluster_centers_, other.cluster_centers_)
    for structure in ("VVI", "EEE", "VVV"):  # from one start, and from many
        options = {"structure": structure, "prior": "default"}
        first = options | {"init": cpu.labels_, "max_iter": 5}
        agree(*(ilk.GaussianMixture(3, device=device, **first).fit(X) for device in ("cpu", "cuda")))
        many = options | {"random_state": 0}
        agree(*(ilk.GaussianMixture(2, device=device, **many).fit(X) for device in ("cpu", "cuda")))


def test_they_do_lie_there(card):
    from ilk.engines.devices import asked_rows
    from tests.engines.test_gpu import memory_rows

    assert isinstance(
        asked_rows(memory_rows(np.random.default_rng(0).normal(size=(5000, 2))), "cuda"), GpuRows
    )
