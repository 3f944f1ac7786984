"""Rows on a GPU keep the protocol; where there is no GPU, the CPU does it and says so."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import ilk
from ilk.engines import devices, gpu
from ilk.engines.gpu import FlowingRows, GpuRows, placed
from ilk.engines.memory import MemoryRows
from ilk.errors import EngineError, IlkWarning, UsageError
from ilk.families.base import KEEP_ALL
from ilk.families.centroid import Means
from ilk.fitting.loop import run_starts
from ilk.kernels.gpu import launch
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.table import DeviceTable
from ilk.table.block import BLOCK_ROWS
from ilk.table.condition import encoding_of, survey


@pytest.fixture(scope="module")
def card():
    try:
        return launch.open_device()
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(5, 6)) * 4
    return centres[generator.integers(0, 5, 5 * BLOCK_ROWS + 17)] + generator.normal(
        size=(5 * BLOCK_ROWS + 17, 6)
    )


def memory_rows(X, weight=None):
    facts = survey(X, weight=weight)
    return MemoryRows(X, encoding_of(X, facts, weight=weight), weight=weight, complete=facts.complete)


# --- without a GPU


def no_card(*_):
    raise Unavailable("no NVIDIA GPU was found")


def test_without_a_gpu_the_cpu_does_it_and_says_so(monkeypatch, table):
    monkeypatch.setattr(gpu, "open_device", no_card)
    rows = memory_rows(table)
    with pytest.warns(
        IlkWarning, match="device='cuda' was asked for, and no NVIDIA GPU was found: the CPU does it"
    ):
        assert placed(rows, "cuda") is rows
    assert placed(rows, "auto") is rows


def test_an_estimator_without_a_gpu_gives_the_same_answer(monkeypatch, table):
    monkeypatch.setattr(gpu, "open_device", no_card)
    usual = ilk.KMeans(5, random_state=0, n_init=1, device="cpu").fit(table)
    with pytest.warns(IlkWarning, match="the CPU does it"):
        asked = ilk.KMeans(5, random_state=0, n_init=1, device="cuda").fit(table)
    assert np.array_equal(usual.cluster_centers_, asked.cluster_centers_)
    assert np.array_equal(usual.labels_, asked.labels_)


def test_a_device_that_there_is_not_is_refused(table):
    with pytest.raises(UsageError, match='device="tpu"'):
        ilk.KMeans(2, device="tpu").fit(table)


def test_missing_values_and_small_tables_stay_on_the_cpu(monkeypatch, table):
    monkeypatch.setattr(gpu, "open_device", lambda: pytest.fail("it need not be opened"))
    gaps = table.copy()
    gaps[3, 2] = np.nan
    for rows, why in ((memory_rows(gaps), "missing values"), (memory_rows(table[:100]), "fewer than")):
        with pytest.warns(IlkWarning, match=why):
            assert placed(rows, "cuda") is rows


def test_auto_goes_by_the_number_of_cells(monkeypatch, table):
    """K-means pays for large tables alone, Student components much earlier; what was asked for is not weighed."""
    gone = []
    monkeypatch.setattr(gpu, "placed", lambda rows, device, **_: gone.append(device) or rows)
    rows = memory_rows(table)
    cells = table.size
    for device, pays_from, goes in (
        ("auto", cells, True),
        ("auto", cells + 1, False),
        ("cuda", cells + 1, True),
        ("cpu", 1, False),
    ):
        devices.asked_rows(rows, device, pays_from=pays_from)
        assert bool(gone) == goes
        gone.clear()
    assert devices.AUTO_CELLS > 1 << 20
    X = table[: 1 << 17]
    monkeypatch.setattr(ilk.StudentMixture, "_pays_from", staticmethod(lambda k: X.size))
    assert devices.mixture_pays_from(8) > devices.mixture_pays_from(32) > devices.AUTO_CELLS
    for model in (ilk.KMeans(2, max_iter=1), ilk.StudentMixture(2, dof=5.0, max_iter=1, init=X[:, 0] > 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        assert gone == (["auto"] if isinstance(model, ilk.StudentMixture) else [])


def test_too_old_a_card_and_no_driver_are_one_sentence(monkeypatch):
    monkeypatch.setattr(launch, "_libraries", [])
    monkeypatch.setitem(launch._DRIVER, sys.platform, "libnothing.so.1")
    with pytest.raises(Unavailable, match="there is no NVIDIA driver on this machine"):
        launch.Device()


class Elsewhere:
    """An array that says it lies on a GPU."""

    shape = (5000, 3)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": "<f4", "data": (0, False), "version": 3}


def test_cells_on_a_gpu_that_cannot_be_reached_are_refused(monkeypatch):
    monkeypatch.setattr(gpu, "open_device", no_card)
    with pytest.raises(EngineError, match="the cells lie on a GPU, and no NVIDIA GPU was found"):
        ilk.KMeans(2).fit(Elsewhere())
    with pytest.raises(EngineError, match="Give them as a NumPy array"):
        ilk.KMeans(2, device="cpu").fit(Elsewhere())


def test_nothing_of_it_is_imported_unless_asked():
    code = (
        "import sys, numpy as np, ilk; ilk.KMeans(2).fit(np.eye(5));"
        "print([name for name in sys.modules if name.startswith('ilk.kernels.gpu') or name == 'ilk.engines.gpu'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


# --- with one


def test_rows_on_a_card_keep_the_protocol(card, table):
    memory = memory_rows(table)
    rows = placed(memory, "cuda")
    assert isinstance(rows, GpuRows)
    assert np.array_equal(rows.sample(500, 7).raw, memory.sample(500, 7).raw)
    some = np.array([3, len(table) - 1, 3, 0])
    assert np.array_equal(rows.take(some).numbers, memory.take(some).numbers)
    rows._host = None
    assert np.array_equal(rows.take(some).numbers, memory.take(some).numbers)
    family = Means()
    params = family.start(memory.sample(4, 0).numbers[:4])
    one, other = family.step(params, memory.whole, KEEP_ALL), family.step(params, rows.whole, KEEP_ALL)
    assert np.array_equal(one.sums["weight"], other.sums["weight"])
    assert np.allclose(one.sums["total"].value, other.sums["total"].value, rtol=0, atol=1e-9)
    assert float(one.cost.value) == pytest.approx(float(other.cost.value), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_runs_end_at_the_same_labels(card, table, dtype, weighted):
    X = table.astype(dtype)
    weight = np.random.default_rng(1).integers(0, 3, len(X)) / 2 if weighted else None
    memory = memory_rows(X, weight)
    rows, family = placed(memory, "cuda"), Means()
    starts = [family.start(memory.sample(5, seed).numbers[:5].astype(np.float64)) for seed in (0, 1)]
    here = run_starts(rows, [family] * 2, starts)
    there = run_starts(memory, [family] * 2, starts)
    for one, other in zip(here, there, strict=True):
        assert one.cost == pytest.approx(other.cost, rel=1e-9)
        assert np.allclose(one.params.centre, other.params.centre, atol=1e-8)


def test_estimators_give_the_answer_of_the_cpu(card, table):
    X = table.astype(np.float32)
    for make in (
        lambda device: ilk.KMeans(5, random_state=0, device=device),
        lambda device: ilk.GaussianMixture(5, random_state=0, device=device),
        lambda device: ilk.GaussianMixture(5, structure="EEI", random_state=0, device=device),
        lambda device: ilk.GaussianMixture(5, structure="EEE", random_state=0, device=device),
        lambda device: ilk.GaussianMixture(4, structure="VEV", noise=True, random_state=0, device=device),
    ):
        cpu, cuda = make("cpu").fit(X), make("cuda").fit(X)
        assert (cpu.labels_ == cuda.labels_).mean() > 0.9999
        centre = "cluster_centers_" if isinstance(cpu, ilk.KMeans) else "means_"
        assert np.allclose(getattr(cpu, centre), getattr(cuda, centre), atol=1e-4)


def test_tensors_on_the_card_come_in_uncopied(card, table):
    torch = pytest.importorskip("torch")
    X = table.astype(np.float32)
    there = torch.from_numpy(X).cuda()
    cpu = ilk.KMeans(5, random_state=0, n_init=1, device="cpu").fit(X)
    for given in (there, there.t().contiguous().t()):
        cuda = ilk.KMeans(5, random_state=0, n_init=1).fit(given)
        assert np.array_equal(cpu.labels_, cuda.labels_)
        assert np.array_equal(cuda.predict(there), cuda.labels_)
    assert ilk.GaussianMixture(3, random_state=0).fit(there.double()).converged_
    assert ilk.KMeans(5, random_state=0).fit(there.half()).converged_


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_samples_of_cells_on_the_card_are_those_of_memory(card, table, dtype, monkeypatch):
    cells = table.astype(dtype)
    cells[::3] = cells[0]  # rows that say the same
    host = memory_rows(cells.astype(np.float32) if dtype == np.float16 else cells)
    there = GpuRows(DeviceTable(card, card.array(cells, dtype)), host.encoding)
    monkeypatch.setattr(GpuRows, "raw", property(lambda _: pytest.fail("the whole table was fetched")))
    for seed in range(3):
        assert np.array_equal(there.sample(1000, seed).raw, host.sample(1000, seed).raw)


def mixed_table(n=70_001, seed=0):
    """Three groups of numbers and categories, some cells missing, as a mapping of columns."""
    draw = np.random.default_rng(seed)
    group = draw.integers(0, 3, n)
    numbers = np.array([[0.0, 4, 8], [5, 0, 9]])[:, group] + draw.normal(size=(2, n))
    numbers[0, draw.random(n) < 0.05] = np.nan
    colour = np.array(["red", "green", "blue"])[(group + (draw.random(n) < 0.1)) % 3]
    shape = np.where((group == 1) ^ (draw.random(n) < 0.05), "round", "flat")
    return {"size": numbers[0], "width": numbers[1], "colour": colour, "shape": shape}


def test_mixed_tables_give_the_answer_of_the_cpu(card):
    table = mixed_table()
    for make in (
        lambda device: ilk.MixedMixture(3, smoothing=1, random_state=0, device=device),
        lambda device: ilk.MixedMixture(3, trim=0.02, random_state=0, device=device),
        lambda device: ilk.AssortedMixture(3, random_state=0, device=device),
        lambda device: ilk.DirichletProcessMixture(5, random_state=0, device=device),
    ):
        cpu, cuda = make("cpu").fit(table), make("cuda").fit(table)
        assert (cpu.labels_ == cuda.labels_).mean() > 0.9999


def with_counts(n=70_001):
    """The mixed table and a count, of which some are missing."""
    draw = np.random.default_rng(3)
    table = mixed_table(n)
    visits = draw.poisson(np.where(table["shape"] == "round", 2.0, 7.0)).astype(float)
    visits[draw.random(n) < 0.05] = np.nan
    return table | {"visits": visits}


def gapped(table, share=0.02):
    X = table.copy()
    X[np.random.default_rng(2).random(X.shape) < share] = np.nan
    return X


@pytest.mark.filterwarnings("error::ilk.errors.IlkWarning")  # all of it has kernels
def test_tails_counts_and_missing_cells_give_the_answer_of_the_cpu(card, table):
    X, gaps, mixed = table, gapped(table), with_counts()
    types = {"types": {"visits": "count"}}
    for data, make in (
        (X, lambda device: ilk.StudentMixture(5, random_state=0, max_iter=15, tol=1e-6, device=device)),
        (X, lambda device: ilk.StudentMixture(5, structure="VVI", dof=4.0, random_state=0, device=device)),
        (X, lambda device: ilk.StudentMixture(3, dof=4.0, trim=0.02, random_state=0, device=device)),
        (gaps, lambda device: ilk.StudentMixture(3, dof=4.0, random_state=0, device=device)),
        (gaps, lambda device: ilk.GaussianMixture(5, structure="VVI", random_state=0, device=device)),
        (
            gaps,
            lambda device: ilk.GaussianMixture(4, structure="EII", trim=0.02, random_state=0, device=device),
        ),
        (gaps, lambda device: ilk.GaussianMixture(5, structure="VVV", random_state=0, device=device)),
        (gaps, lambda device: ilk.GaussianMixture(5, structure="EEE", random_state=0, device=device)),
        (mixed, lambda device: ilk.MixedMixture(3, **types, smoothing=1, random_state=0, device=device)),
        (X, lambda device: ilk.KMeans(5, init="k-means||", random_state=0, device=device)),
    ):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*did not converge|.*max_iter")
            cpu, cuda = make("cpu").fit(data), make("cuda").fit(data)
        assert cuda.fit_.cost == pytest.approx(cpu.fit_.cost, rel=1e-7), cpu
        assert (cpu.labels_ == cuda.labels_).mean() > 0.9999, cpu


def test_mixed_tables_larger_than_the_card_pass_through_it(card, table, monkeypatch):
    types = {"types": {"visits": "count"}}
    for data, make in (
        (
            with_counts(),
            lambda device: ilk.MixedMixture(3, **types, smoothing=1, random_state=0, device=device),
        ),
        (mixed_table(), lambda device: ilk.AssortedMixture(3, random_state=0, device=device)),
        (
            gapped(table),
            lambda device: ilk.GaussianMixture(4, structure="VVI", random_state=0, device=device),
        ),
        (table, lambda device: ilk.StudentMixture(3, dof=4.0, random_state=0, device=device)),
    ):
        cpu = make("cpu").fit(data)
        with monkeypatch.context() as small:
            small.setattr(gpu, "_has_room", lambda *_: False)
            small.setattr("ilk.kernels.gpu.flow.PART_BYTES", 20_000 * 32)
            small.setattr(gpu, "_moved", lambda *_: pytest.fail("there is no room for it"))
            cuda = make("cuda").fit(data)
        assert cuda.fit_.cost == pytest.approx(cpu.fit_.cost, rel=1e-7)
        assert (cpu.labels_ == cuda.labels_).mean() > 0.9999


def test_categories_on_disk_pass_through_the_card(card):
    from ilk.engines.stream import StreamRows
    from ilk.families.covariance import Structure
    from ilk.families.product import Categories, Product

    draw = np.random.default_rng(0)
    codes = draw.integers(0, 4, (50_001, 3)).astype(np.int16)
    raw = np.empty((len(codes), 0))
    held = MemoryRows(raw, encoding_of(raw, survey(raw)), codes=codes.astype(np.int32))
    rows = StreamRows(raw, held.encoding, codes=codes)
    start = np.arange(0, 13, 4)
    family = Product(Structure("VVI"), np.empty(0), categories=Categories(start, np.full(12, 0.25)))
    params = family.start(np.empty((2, 0)))
    params = type(params)(**{**vars(params), "share": draw.dirichlet(np.ones(4), (2, 3)).reshape(2, 12)})
    there = placed(rows, "cuda", cells=True)
    assert isinstance(there, FlowingRows)
    one, other = (run_starts(each, [family], [params])[0] for each in (held, there))
    assert one.cost == pytest.approx(other.cost, rel=1e-9)
    assert np.allclose(one.params.share, other.params.share, atol=1e-6)


@pytest.mark.parametrize("method", ["auto", "assorted", "k-means"])
def test_a_whole_run_gives_the_answer_of_the_cpu(card, method):
    table = mixed_table()
    if method != "assorted":
        table = {name: np.nan_to_num(table[name]) for name in ("size", "width")}
    cpu, cuda = (ilk.cluster(table, method=method, device=device) for device in ("cpu", "cuda"))
    assert cpu.k == cuda.k
    assert (cpu.labels == cuda.labels).mean() > 0.9999
    assert card.name in str(cuda.summary())
    assert card.name not in str(cpu.summary())


def test_other_doors(card, table):
    torch = pytest.importorskip("torch")
    X = table.astype(np.float32)
    cpu = ilk.KMeans(5, random_state=0, n_init=1, device="cpu").fit(X)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # DLPack makes ours wait for what is still under way there
        there = torch.zeros(X.shape, device="cuda")
        there.copy_(torch.from_numpy(X).pin_memory(), non_blocking=True)
        cuda = ilk.KMeans(5, random_state=0, n_init=1).fit(there)
    assert np.array_equal(cpu.labels_, cuda.labels_)
    labels = ilk.as_tensor(cuda.labels_, there)
    assert labels.is_cuda
    assert np.array_equal(labels.cpu().numpy(), cuda.labels_)
    for library, make in (("cupy", "asarray"), ("jax.numpy", "asarray")):
        module = pytest.importorskip(library)
        given = getattr(module, make)(X)
        found = ilk.KMeans(5, random_state=0, n_init=1).fit(given)
        assert np.array_equal(cpu.labels_, found.labels_)
        assert np.array_equal(np.asarray(ilk.as_tensor(found.labels_, given).tolist()), found.labels_)
    assert ilk.cluster(there, k=5, method="k-means").k == 5


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_larger_than_the_card_pass_through_it(card, table, mapped, weighted, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "_has_room", lambda *_: False)
    monkeypatch.setattr("ilk.kernels.gpu.flow.PART_BYTES", 20_000 * 6 * 8)
    X = table
    if mapped:  # its pages cannot be locked: threads fill buffers
        X = np.memmap(tmp_path / "cells", dtype=np.float64, mode="w+", shape=table.shape)
        X[:] = table
    weight = np.random.default_rng(1).integers(0, 3, len(X)) / 2 if weighted else None
    memory = memory_rows(X, weight)
    rows, family = placed(memory, "cuda"), Means()
    assert isinstance(rows, FlowingRows)
    start = family.start(memory.sample(5, 0).numbers[:5].astype(np.float64))
    monkeypatch.undo()
    whole = placed(memory, "cuda")
    assert isinstance(whole, GpuRows)
    one, other = family.step(start, whole.whole, KEEP_ALL), family.step(start, rows.whole, KEEP_ALL)
    assert np.array_equal(
        one.sums["total"].value, other.sums["total"].value
    )  # whole numbers: no cut changes a bit
    assert np.array_equal(one.sums["weight"], other.sums["weight"])
    points = memory.sample(40, 0).numbers.astype(np.float64)
    starts = [start, family.start(points[:3]), family.start(points[5:12])]  # each part serves all of them
    for one, other in zip(*(run_starts(each, [family] * 3, starts) for each in (rows, memory)), strict=True):
        assert np.array_equal(one.params.centre, other.params.centre)
        assert one.cost == pytest.approx(other.cost, rel=1e-12)
    for make in (
        lambda: ilk.KMeans(5, random_state=0, n_init=1),
        lambda: ilk.GaussianMixture(4, random_state=0),
    ):
        cpu = make().set_params(device="cpu").fit(np.asarray(X), sample_weight=weight)
        with monkeypatch.context() as small:
            small.setattr(gpu, "_has_room", lambda *_: False)
            small.setattr("ilk.kernels.gpu.flow.PART_BYTES", 20_000 * 6 * 8)
            cuda = make().set_params(device="cuda").fit(np.asarray(X), sample_weight=weight)
        assert (cpu.labels_ == cuda.labels_).mean() > 0.9999
