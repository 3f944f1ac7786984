"""What every family promises, checked on each: halves add to the whole, an integer weight is a repeated row, the order
of rows changes nothing, the cost never rises.

A family of the loop has its entry in `FAMILIES`: how a table, the family and first parameters are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from threadpoolctl import threadpool_limits

from ilk.assorted.state import from_labels as clusters_from_labels
from ilk.engines.memory import MemoryRows
from ilk.errors import NoModelError
from ilk.families.base import KEEP_ALL
from ilk.families.bernoulli import Bernoulli
from ilk.families.centroid import Means, Medians
from ilk.families.covariance import STRUCTURES, Structure
from ilk.families.craft import Choice, Paper
from ilk.families.gaussian import Gaussian
from ilk.families.laplace import LAPLACE_STRUCTURES, Laplace
from ilk.families.opening import Dear, OpenMeans
from ilk.families.prior import Prior
from ilk.families.student import Student
from ilk.fitting.craft import background_shares
from ilk.fitting.dirichlet import make_process
from ilk.fitting.loop import Run, Stop, run_starts
from ilk.fitting.product import make_product
from ilk.fitting.restarts import from_labels
from ilk.fitting.table_moments import bounding_noise, broad_noise, table_moments
from ilk.table.block import Array, Block, Encoding
from ilk.table.condition import encoding_of, survey
from tests.assorted.test_family import mixed_table, scene_of

CENTROIDS = [Means(), Medians(), OpenMeans(open_cost=0.01)]
SIZE = {"means": np.square, "medians": np.abs, "open means": np.square}
every_centroid = pytest.mark.parametrize("family", CENTROIDS, ids=lambda f: f.name)


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def block_of(X: Array, weight: Array | None = None) -> Block:
    facts = survey(X, weight=weight)
    return Block(X, encoding_of(X, facts, weight=weight), weight=weight, complete=facts.complete)


def part(block: Block, which: Array) -> Block:
    weight, codes = (None if a is None else a[which] for a in (block.weight, block.codes))
    return Block(block.raw[which], block.encoding, weight=weight, codes=codes, complete=block.complete)


def identity(n_columns: int) -> Encoding:
    return Encoding(1.0, np.zeros(n_columns))


def tables(least: int = 6, missing: bool = False) -> st.SearchStrategy[Array]:
    """Small tables with ties, repeats and outliers."""
    cell = st.one_of(
        st.integers(-3, 3).map(float), st.floats(-10, 10, width=32), st.sampled_from([1e3, -1e3, 0.5])
    )
    if missing:
        cell = st.one_of(cell, st.just(np.nan))
    shape = st.tuples(st.integers(least, 24), st.integers(1, 4))
    found = shape.flatmap(lambda s: arrays(np.float64, s, elements=cell))
    return found.filter(lambda X: (~np.isnan(X)).any(axis=1).all())


def value(total: Any) -> Array:
    if isinstance(total, Dear):
        return np.column_stack([total.donor, total.cost, total.weight.value, np.nan_to_num(total.cells)])
    return np.asarray(total.value if hasattr(total, "value") else total)


# --- the families, each with a table to stand on -------------------------------------------------------------


@dataclass(frozen=True)
class Begun:
    """Rows, a family, and parameters that a fit might have on its way."""

    rows: MemoryRows
    family: Any
    params: Any
    trim: float = 0.0

    @property
    def block(self) -> Block:
        return replace(self.rows.take(np.arange(self.rows.n_rows)), memo=None)


@dataclass(frozen=True)
class Promise:
    """How a family is drawn, and what it promises less or more than others.

    `exact`: sums have the same bits in any order of their terms. `settles`: it comes to an end. `rounding`: by how much
    of itself a cost may rise; `lost_cost`: by how much where a component is lost. `steady`: components are reopened or
    lost only where memberships are hard. `examples`: how many fits are watched for that.
    """

    begin: Callable[[st.DataObject], Begun]
    exact: bool = False
    settles: bool = False
    rounding: float = 1e-9
    lost_cost: float = np.inf
    steady: bool = False
    examples: int = 8


def rows_of(X: Array, weight: Array | None = None, codes: Array | None = None) -> MemoryRows:
    facts = survey(X, weight=weight)
    encoding = encoding_of(X, facts, weight=weight)
    return MemoryRows(X, encoding, weight=weight, codes=codes, complete=facts.complete, threads=1)


def weights_for(data: st.DataObject, n_rows: int) -> Array | None:
    """None, or quarters, whose sums are exact."""
    return 0.25 + np.arange(n_rows) % 11 / 4 if data.draw(st.booleans(), "weighted") else None


def centroids(family: Any) -> Callable[[st.DataObject], Begun]:
    def begin(data: st.DataObject) -> Begun:
        X, k = data.draw(tables(missing=True)), data.draw(st.integers(1, 5))
        rows = rows_of(X, weights_for(data, len(X)))
        return Begun(rows, family, family.start(np.nan_to_num(rows.take(np.arange(k)).numbers)))

    return begin


def binary(data: st.DataObject) -> Begun:
    shape = data.draw(st.tuples(st.integers(4, 20), st.integers(1, 6)))
    X = data.draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, np.nan])))
    share = np.nanmean(np.vstack([X, np.full((1, X.shape[1]), 0.5)]), axis=0)
    family = Bernoulli(share, open_cost=0.7, smoothing=data.draw(st.sampled_from([0.1, 1.0, 5.0])))
    block = Block(X, identity(X.shape[1]))
    rows = MemoryRows(X, block.encoding, weight=weights_for(data, len(X)), complete=not np.isnan(X).any())
    return Begun(rows, family, family.start(X[:3]))


def correlated(data: st.DataObject, k: int, tails: bool = False) -> tuple[Array, Array]:
    """Correlated clusters that overlap, with ties or holes or neither, and their labels."""
    draws, d = np.random.default_rng(data.draw(st.integers(0, 999), "seed")), data.draw(st.integers(1, 3))
    label = (np.arange(48) % k).astype(np.int32)
    mix = draws.normal(size=(k, d, d)) * 0.5 + np.eye(d)
    X = np.einsum("nij,nj->ni", mix[label], draws.normal(size=(48, d))) + draws.normal(size=(k, d))[label]
    if tails:
        X /= np.sqrt(draws.chisquare(3.0, 48) / 3.0)[:, None]
    if data.draw(st.booleans(), "ties"):
        X = np.round(X, 1)
    if data.draw(st.booleans(), "holes"):
        X[draws.random(X.shape) < 0.2] = np.nan
        X[-1] = np.nan
    assume((np.nanstd(X, axis=0) > 0.2).all())  # a constant column has no spread
    return X, label


def settings_of(rows: MemoryRows, kind: str, k: int) -> dict[str, Any]:
    moments = table_moments(rows)
    made: dict[str, Callable[[], dict[str, Any]]] = {
        "prior": lambda: {"prior": Prior.from_table(moments.mean, moments.covariance, k)},
        "uniform": lambda: {"noise": bounding_noise(rows, moments)},
        "broad": lambda: {"noise": broad_noise(moments)},
        "hard": lambda: {"membership": "hard"},
    }
    return made[kind]() if kind in made else {}


def spread(
    kind: type, structure: str, dofs: tuple[Any, ...] = (), prior: bool = True
) -> Callable[[st.DataObject], Begun]:
    """Mixtures of numbers: plain, with a prior, with noise, hard, trimmed; with ties, holes and weights."""
    kinds = ["", "uniform", "broad", "hard", "trim", *(["prior"] if prior else [])]

    def begin(data: st.DataObject) -> Begun:
        k, option = data.draw(st.integers(1, 3), "k"), data.draw(st.sampled_from(kinds), "option")
        X, label = correlated(data, k, tails=bool(dofs))
        rows = rows_of(X, weights_for(data, len(X)))
        more = {"dof": data.draw(st.sampled_from(dofs))} if dofs else {}
        own = Structure.parse(structure).for_columns(rows.n_columns)
        family = kind(own, table_moments(rows).variance, **more, **settings_of(rows, option, k))
        return Begun(rows, family, from_labels(rows, family, label, k), 0.1 if option == "trim" else 0.0)

    return begin


def mixed(data: st.DataObject) -> tuple[Array, Array, Array, Array | None]:
    """Numbers, codes, labels and weights of a table with blanks."""
    seed, k = data.draw(st.integers(0, 10**6), "seed"), data.draw(st.sampled_from([1, 2, 3, 8]), "k")
    n_rows, blank = (
        data.draw(st.integers(16, 80), "rows"),
        data.draw(st.sampled_from([0.0, 0.1, 0.6]), "blank"),
    )
    raw, codes, _ = mixed_table(seed, n_rows, blank)
    label = np.append(np.arange(k), np.random.default_rng(seed).integers(0, k, len(raw) - k)).astype(np.int32)
    return raw, codes, label, weights_for(data, len(raw))


def assorted(**options: Any) -> Callable[[st.DataObject], Begun]:
    def begin(data: st.DataObject) -> Begun:
        raw, codes, label, weight = mixed(data)
        more = dict(options)
        if "numbers" not in options:
            more["variance"] = data.draw(st.sampled_from(["own", "shared"]))
        if options.get("sharing") == "background":
            more["budget"] = data.draw(st.sampled_from([None, 1, 3]))
        scene = scene_of(raw, codes, weight, **more)
        try:
            start = clusters_from_labels(scene.rows, scene.family, label, int(label.max()) + 1)
        except NoModelError:  # so few cells are left that some numbers follow from others
            reject()
        return Begun(scene.rows, scene.family, start)

    return begin


def product(data: st.DataObject) -> Begun:
    raw, codes, label, weight = mixed(data)
    raw, codes = np.delete(raw, 3, axis=1), np.delete(codes, 3, axis=1)  # without what is constant
    is_count = np.array([False, False, data.draw(st.booleans(), "counts")])
    raw[:, is_count] = np.abs(np.round(raw[:, is_count]))
    assume(all(len(np.unique(column[~np.isnan(column)])) > 1 for column in raw.T))
    rows = rows_of(raw, weight, codes)
    family, _ = make_product(
        rows,
        np.array([0, 3, 6, 9]),
        is_count,
        structure=Structure(data.draw(st.sampled_from(["EII", "VEI", "EVI", "VVI", "EEE", "VVV"]))),
        membership=data.draw(st.sampled_from(["soft", "hard"])),
        smoothing=data.draw(st.sampled_from([0.5, 2.0])),
    )
    return Begun(rows, family, from_labels(rows, family, label, int(label.max()) + 1))


def process(data: st.DataObject) -> Begun:
    raw, codes, label, weight = mixed(data)
    rows = rows_of(raw, weight, codes)
    family = make_process(rows, np.array([0, 3, 6, 9, 12]), data.draw(st.sampled_from([0.01, 1.0, 30.0])))
    return Begun(rows, family, from_labels(rows, family, label, int(label.max()) + 1))


FAMILIES: Mapping[str, Promise] = {
    **{
        f.name: Promise(centroids(f), exact=True, settles=True, rounding=1e-12, examples=60)
        for f in CENTROIDS
    },
    "bernoulli": Promise(binary, exact=True, examples=60),
    **{f"gaussian {s.name}": Promise(spread(Gaussian, s.name), steady=True) for s in STRUCTURES},
    **{
        f"student {s.name}": Promise(spread(Student, s.name, ("own", "shared", 4.0)), steady=True)
        for s in STRUCTURES
    },
    **{
        f"laplace {name}": Promise(spread(Laplace, name, prior=False), steady=True)
        for name in LAPLACE_STRUCTURES
    },
    "product": Promise(product, steady=True, examples=60),
    "dirichlet process": Promise(process, examples=30),
    **{
        f"assorted {sharing} {membership}": Promise(
            assorted(sharing=sharing, membership=membership),
            rounding=1e-11,
            lost_cost=1e-2,  # a cluster that vanished held less than a thousandth of a row
            examples=25,
        )
        for sharing in ("background", "groups", "global", "none")
        for membership in ("soft", "hard")
    },
    **{
        f"assorted {numbers} {membership}": Promise(assorted(numbers=numbers, membership=membership))
        for numbers in ("EEE", "VVV")
        for membership in ("soft", "hard")
    },
}
every_family = pytest.mark.parametrize("promise", FAMILIES.values(), ids=FAMILIES)


# --- what each of them promises ------------------------------------------------------------------------------


def agree(one: Any, other: Any, promise: Promise, name: str = "") -> None:
    one, other = value(one), value(other)
    if promise.exact:
        assert np.array_equal(one, other), name
    else:
        scale = float(np.abs(one).max(initial=1.0))  # rows are near 1, and shifts about a mean cancel
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11 * scale, err_msg=name)


def agree_all(one: Any, other: Any, promise: Promise) -> None:
    """Two partial results, sum by sum."""
    assert one.sums.keys() == other.sums.keys()
    for name, total in one.sums.items():
        agree(total, other.sums[name], promise, name)
    agree(one.cost, other.cost, promise, "cost")


@every_family
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_halves_add_to_the_whole(promise, data):
    begun = promise.begin(data)
    family, block, params, rows = begun.family, begun.block, begun.params, np.arange(begun.rows.n_rows)
    split = data.draw(st.integers(1, len(rows) - 1), "split")
    for _ in range(min(family.n_phases, 3)):
        whole = family.step(params, block, KEEP_ALL)
        first, last = (family.step(params, part(block, which), KEEP_ALL) for which in np.split(rows, [split]))
        agree_all(whole, first + last, promise)
        params = family.update(params, whole.sums)


@every_family
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_an_integer_weight_is_a_repeated_row(promise, data):
    begun = promise.begin(data)
    family, params, n_rows = begun.family, begun.params, begun.rows.n_rows
    times = np.random.default_rng(data.draw(st.integers(0, 999), "times")).integers(0, 4, n_rows)
    times[: 2 if n_rows < 10 else 0] = 1
    block = replace(begun.block, weight=None)
    weighted = replace(block, weight=times.astype(float))
    repeated = part(block, np.repeat(np.arange(n_rows), times))
    for _ in range(family.n_phases):
        one, two = (family.step(params, rows, KEEP_ALL) for rows in (weighted, repeated))
        agree_all(one, two, promise)
        params, other = family.update(params, one.sums), family.update(params, two.sums)
    agree(*(family.step(made, weighted, KEEP_ALL).cost for made in (params, other)), promise, "next cost")


@every_family
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_the_order_of_rows_changes_nothing(promise, data):
    begun = promise.begin(data)
    family, params, block = begun.family, begun.params, begun.block
    order = np.random.default_rng(data.draw(st.integers(0, 99), "order")).permutation(block.n_rows)
    shuffled = part(block, order)
    agree_all(family.step(params, block, KEEP_ALL), family.step(params, shuffled, KEEP_ALL), promise)
    one, two = family.assign(params, block), family.assign(params, shuffled)
    np.testing.assert_allclose(two[1], one[1][order], rtol=1e-12, atol=1e-12)
    assert np.array_equal(two[0], one[0][order])


@every_family
def test_cost_never_rises(promise):
    @settings(max_examples=promise.examples, deadline=None)
    @given(data=st.data())
    def holds(data: st.DataObject) -> None:
        begun = promise.begin(data)
        stop = Stop(max_passes=50 if promise.settles else 25)
        (run,) = run_starts(begun.rows, [begun.family], [begun.params], trim=begun.trim, stop=stop)
        assert_never_rises(run, promise.rounding, steady=promise.steady, lost_cost=promise.lost_cost)
        assert not promise.settles or run.reason != "pass limit"
        assert np.isfinite(run.cost)
        assert np.isfinite(begun.family.centres(run.params)).all()

    holds()


def assert_never_rises(
    run: Run, rounding: float = 1e-9, *, steady: bool = True, lost_cost: float = np.inf
) -> None:
    """The cost (minus log-likelihood, or posterior) never rises, but where a component was reopened or lost, and by
    reopening at most once a component; a mixture does either only where its memberships are hard."""
    cost = np.array([record.cost for record in run.trace])
    anew = np.array([record.n_reopened > 0 for record in run.trace[1:]], dtype=bool)
    lost = np.diff([record.n_components for record in run.trace]) < 0
    rises = (
        np.diff(cost) > rounding * np.abs(cost[1:]) + 1e-30
    )  # numbers are near 1, their rounding near 1e-32
    assert not (rises & ~anew & ~lost).any()
    assert not steady or run.family.hard or not (anew | lost).any()
    assert (np.diff(cost)[lost] <= lost_cost).all()
    assert (rises & anew).sum() <= run.trace[0].n_components


# --- CRAFT as printed walks rows one by one: no sums, no monotone cost ----------------------------------------


def craft() -> tuple[Paper, Block, Array]:
    raw, codes, label = mixed_table(3)
    start = np.array([0, 3, 6, 9, 12])
    block = Block(raw, identity(raw.shape[1]), codes=codes, complete=False)
    share = background_shares(codes, block.weights, start)
    family = Paper(choice=Choice(0.5, 0.2), background=share, level_start=start, n_numbers=raw.shape[1])
    return family, block, label


def test_craft_costs_a_row_the_same_wherever_it_stands():
    family, block, label = craft()
    params = family.update(block, label, 2)
    order = np.random.default_rng(0).permutation(block.n_rows)
    whole = family.cost(params, block)
    assert np.array_equal(family.cost(params, part(block, order)), whole[order])
    assert np.array_equal(family.cost(params, part(block, np.arange(20))), whole[:20])


def test_craft_takes_an_integer_weight_for_a_repeated_row_in_any_order():
    family, block, label = craft()
    times = np.random.default_rng(1).integers(1, 4, block.n_rows)
    again = np.random.default_rng(2).permutation(np.repeat(np.arange(block.n_rows), times))
    one = family.update(replace(block, weight=times.astype(float)), label, 2)
    two = family.update(part(block, again), label[again], 2)
    assert np.array_equal(one.chosen, two.chosen)
    for name in ("mean", "variance", "level_share", "weight"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-11, atol=1e-13)


# --- centroids: what their distances are ---------------------------------------------------------------------


@every_centroid
@settings(max_examples=40, deadline=None)
@given(X=tables())
def test_cost_agrees_with_its_definition(family, X):
    block = block_of(X)
    params = family.start(block.numbers[:3])
    difference = block.numbers[:, None, :] - params.centre
    size = SIZE[family.name](difference).sum(axis=2)
    assert np.allclose(family.cost(params, block), size, rtol=1e-13, atol=1e-300)
    label, cost = family.assign(params, block)
    assert np.allclose(cost, size.min(axis=1), rtol=1e-13, atol=1e-300)
    assert np.allclose(size[np.arange(len(X)), label], size.min(axis=1), rtol=1e-12, atol=1e-300)


@every_centroid
def test_components_can_be_permuted(family):
    block = block_of(np.random.default_rng(0).normal(size=(50, 3)))
    params = family.start(block.numbers[:4])
    order = np.array([2, 0, 3, 1])
    one, two = family.assign(params, block)[0], family.assign(family.select(params, order), block)[0]
    assert np.array_equal(order[two], one)


@every_centroid
def test_missing_cells_scale_the_distance_up(family):
    X = np.array([[1.0, np.nan], [3.0, 4.0], [0.0, 0.0]])
    block = block_of(X)
    params = family.start(np.zeros((1, 2)))
    cost = family.cost(params, block)[:, 0]
    size = SIZE[family.name]
    assert cost[0] == pytest.approx(2 * size(block.numbers[0, 0]))
    assert cost[1] == pytest.approx(size(block.numbers[1]).sum())


def test_medians_are_lower_weighted_medians():
    X = np.random.default_rng(2).normal(size=(41, 3))
    block = block_of(X)
    family = Medians()
    params = family.start(np.zeros((1, 3)))
    for _ in range(family.n_phases):
        params = family.update(params, family.step(params, block, KEEP_ALL).sums)
    assert np.array_equal(params.centre[0], np.median(block.numbers, axis=0))
