"""Every source compiles for every class of shapes, without spills where registers were counted; no GPU is needed."""

from __future__ import annotations

import pytest

from ilk.kernels.gpu import nvrtc, plans
from ilk.kernels.gpu.class_plans import ClassPlan
from ilk.kernels.gpu.launch import AMPERE_SHARED, ARCHITECTURES, HOPPER
from ilk.kernels.gpu.mixture_plans import MixtureLaunch
from ilk.kernels.gpu.product_plans import ProductPlan
from tests.kernels.gpu.spills import spilled_bytes

if nvrtc.find_nvrtc() is None:
    pytest.skip("NVRTC is not installed (ilk[gpu])", allow_module_level=True)

PLAIN = {"factor": False}
CLASSES = [
    (2, 100),
    (3, 9),
    (16, 10),
    (32, 10),
    (12, 9),
    (32, 100),
    (16, 240),
    (64, 50),
    (128, 20),
    (128, 1000),
    (64, 300),
    (784, 100),
]


def compiled(build, monkeypatch, architecture=HOPPER):
    """Spilled bytes of all kernels of a source."""
    return spilled_bytes(build, architecture, monkeypatch)


@pytest.mark.parametrize(("d", "k"), CLASSES)
def test_k_means(d, k, monkeypatch):
    plan = plans.kmeans_plan(d, k)
    for build in (
        plan.screen(True),
        plan.settle(False),
        plans.exact(plan, "float32", factor=False, labels=True),
    ):
        if build is not None:
            assert compiled(build, monkeypatch) <= (64 if build.macros.get("GATHER") else 0), build


@pytest.mark.parametrize(("d", "k"), [(128, 1000), (64, 300)])
def test_k_means_of_halves(d, k, monkeypatch):
    plan = plans.kmeans_plan(d, k, True)
    assert compiled(plan.screen(True), monkeypatch) == 0
    assert compiled(plan.settle(True), monkeypatch) <= 64  # of the few rows on the list


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_is_asked_of_tables(dtype, monkeypatch):
    for name in ("encode", "pack", "gather", "squares", "survey", "row_cost"):
        compiled(plans.table(name, 20, dtype, factor=dtype == "float64"), monkeypatch)
        break  # one source holds them all
    compiled(plans.sums_any(20, 100, dtype, factor=True, weighted=True), monkeypatch)


def test_small_ones(monkeypatch):
    for build in (
        plans.reduction(True),
        plans.seeding(32, "float32", 8, factor=False),
        plans.sums(128, 1000, False),
        plans.sums(128, 1000, True),
        plans.rests("find_rests", 20, False, plans.Digits(12)),
    ):
        assert compiled(build, monkeypatch) == 0


OTHER_CARDS = [name for name in ARCHITECTURES.values() if name != HOPPER]


def builds_elsewhere():
    """K-means by `mma.sync` and in plain float, mixtures, classes, products, and what is asked of tables."""
    for d, k in ((2, 100), (16, 10), (48, 70), (128, 1000), (300, 100)):
        plan = plans.plan_elsewhere(d, k, AMPERE_SHARED)
        yield from (plan.screen(True), plan.settle(True), plans.exact(plan, "float32", **PLAIN, labels=True))
    yield plans.sums(128, 1000, False, AMPERE_SHARED)
    yield plans.sums_any(20, 100, "float64", factor=True, weighted=True, room=AMPERE_SHARED)
    for shape in ((32, 32, False), (20, 9, True)):
        mixture = MixtureLaunch(*shape, "float64", AMPERE_SHARED)
        yield from (mixture.scores(fused=mixture.fused), mixture.memberships(), mixture.sums())
        yield mixture.whole() if mixture.at_once else None
        yield from (mixture.student(0), mixture.student(8))
    product = ProductPlan(3, (5, 300), 7, "float32", True, AMPERE_SHARED, counts=True)
    yield from (product.build("product_memberships"), product.sums())
    yield ClassPlan((2, 4, 6, 8, 10, 12, 14, 16, 18, 20), 16).build("latent_classes")
    yield from (
        plans.table("survey", 20, "float64", **PLAIN),
        plans.reduction(True),
        plans.seeding(32, "float32", 8, factor=False),
    )


@pytest.mark.parametrize("architecture", OTHER_CARDS)
def test_what_runs_on_other_cards(architecture, monkeypatch):
    for build in filter(None, builds_elsewhere()):
        assert build.fits_in(AMPERE_SHARED), build
        assert compiled(build, monkeypatch, architecture) == 0 or build.name != "kmeans_mma", build


@pytest.mark.parametrize("k", [1, 5, 32, 96])
@pytest.mark.parametrize("nodes", [0, 8])
def test_students(k, nodes, monkeypatch):
    build = MixtureLaunch(9, k, False, "float64").student(nodes)
    assert compiled(build, monkeypatch) <= 32
    assert build.macros["LANES"] * build.macros["PARTS"] >= k


def test_products_with_counts(monkeypatch):
    plan = ProductPlan(4, (5, 3), 6, "float32", True, counts=True)
    assert compiled(plan.build("product_memberships"), monkeypatch) <= 32
    assert compiled(plan.sums(), monkeypatch) <= 32


@pytest.mark.parametrize("shape", [(0, (11,) * 10, 16), (10, (5, 3, 300), 40), (3, (), 1), (0, (70_000,), 5)])
def test_products(shape, monkeypatch):
    plan = ProductPlan(*shape, "float64")
    assert compiled(plan.build("product_memberships"), monkeypatch) <= 32
    assert compiled(plan.sums(), monkeypatch) <= 32


@pytest.mark.parametrize(
    ("levels", "gaps"), [((2, 4, 6, 8, 10, 12, 14, 16, 18, 20), False), ((3, 32, 5), True)]
)
def test_latent_classes(levels, gaps, monkeypatch):
    assert (
        compiled(ClassPlan(levels, 16, gaps).build("latent_classes"), monkeypatch) <= 16
    )  # outside the inner loop


def test_an_error_of_the_compiler_is_one_sentence():
    with pytest.raises(nvrtc.Unavailable, match="did not compile"):
        nvrtc.compile_now("this is no code", {}, "sm_90a")


def test_what_was_compiled_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("ILK_CACHE", str(tmp_path))
    build = plans.reduction(True)
    first = nvrtc.compiled(build.source(), {}, "sm_90a")
    (held,) = tmp_path.iterdir()
    monkeypatch.setattr(nvrtc, "compile_now", lambda *_: pytest.fail("it is there already"))
    assert nvrtc.compiled(build.source(), {}, "sm_90a") == first == held.read_bytes()
    held.write_bytes(b"damaged")
    monkeypatch.undo()
    monkeypatch.setenv("ILK_CACHE", str(tmp_path))
    assert nvrtc.compiled(build.source(), {}, "sm_90a")[:4] == b"\x7fELF"
