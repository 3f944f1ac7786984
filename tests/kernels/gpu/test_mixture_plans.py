"""How mixtures are cut for the GPU, against plain arithmetic; no GPU is needed but for the compiler's tests."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from ilk.kernels.gpu import nvrtc
from ilk.kernels.gpu.mixture import fragments
from ilk.kernels.gpu.mixture_plans import MixtureLaunch, tiles
from ilk.kernels.gpu.moments import MomentPlan
from ilk.kernels.gpu.wide_mixture_plans import WideMixtureLaunch, mixture_launch
from tests.kernels.gpu.spills import spilled_bytes

SHAPES = [
    (d, k) for d in (1, 2, 7, 8, 16, 20, 32, 33, 64, 100, 128) for k in (1, 2, 3, 8, 20, 32, 40, 64, 200)
]


@pytest.mark.parametrize("blocks", range(1, 17))
def test_tiles_hold_every_pair_of_blocks_once(blocks):
    found = [(row, c) for a, b, c in tiles(blocks, False) for row in (a, b) if row >= 0]
    pairs = [tuple(sorted(pair)) for pair in found]
    assert sorted(pairs) == sorted(combinations_with_replacement(range(blocks), 2))
    assert len(tiles(blocks, False)) == -(
        -len(pairs) // 2
    )  # no product is wasted, but for one of an odd number


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("d", "k"), SHAPES)
def test_every_plan_fits_the_card(d, k, diagonal):
    plan = MixtureLaunch(d, k, diagonal, "float64")
    assert plan.fits
    assert plan.pitch >= k
    assert (
        plan.pitch % plan.group
        == plan.pitch % plan.score_group
        == plan.score_group % 4
        == plan.group % 2
        == 0
    )
    assert plan.sums().shared <= 232_448
    assert plan.scores(fused=plan.fused).shared <= 232_448
    assert len(plan.tiles) <= plan.sets * plan.tiles_of_set
    assert not plan.at_once or plan.whole().shared <= 232_448


@pytest.mark.parametrize(("d", "dtype"), [(129, "float64"), (500, "float32"), (1700, "float64")])
def test_wider_tables_have_a_plan_of_their_own(d, dtype):
    plan = mixture_launch(d, 3, False, dtype)
    assert isinstance(plan, WideMixtureLaunch)
    assert plan.fits
    assert plan.scores(fused=False).shared <= 232_448
    assert plan.sum_blocks * plan.sums().shared <= 232_448


def test_the_widest_tables_are_the_cpus():
    assert not mixture_launch(4000, 3, False, "float64").fits
    assert not mixture_launch(1000, 500, False, "float64").fits


@pytest.mark.parametrize("diagonal", [False, True])
def test_tiles_of_slabs_add_up_to_scatters(diagonal):
    generator = np.random.default_rng(1)
    plan = WideMixtureLaunch(150, 2, diagonal, "float64")
    y = np.zeros((50, 64 * 3))
    y[:, :150] = generator.normal(size=(50, 150))
    exact = y.T @ y
    tiles = [exact[64 * i : 64 * i + 64, 64 * j : 64 * j + 64] for i, j in plan.pairs]
    scatter = plan.matrices(np.stack([np.ravel(tiles)] * 2))[:, :150, :150]
    assert np.allclose(
        np.einsum("kii->ki", scatter), np.diag(exact)[:150]
    )  # all that is read of a diagonal one
    assert diagonal or np.allclose(scatter, exact[:150, :150])


@pytest.mark.parametrize(("d", "diagonal"), [(8, False), (32, False), (24, True)])
def test_fragments_are_what_lanes_multiply(d, diagonal):
    """m16n8k8: lane 4g + q holds B[q][g] and B[q + 4][g]; y[row][n] adds x[row][k] * B[k][n]."""
    generator = np.random.default_rng(0)
    matrix = np.tril(generator.normal(size=(3, d, d)))
    if diagonal:
        matrix = matrix * np.eye(d)
    x = generator.normal(size=(16, d))
    blocks = d // 8
    found = fragments(matrix, diagonal)
    chosen = [(b, t) for b in range(blocks) for t in range(b + 1) if not diagonal or t == b]
    for k in range(3):
        y = np.zeros((16, d))
        for number, (b, t) in enumerate(chosen):
            lanes = found[k, number].reshape(8, 4, 2)  # g, q, half
            operand = np.concatenate([lanes[:, :, 0].T, lanes[:, :, 1].T])  # k, n
            y[:, 8 * b : 8 * b + 8] += x[:, 8 * t : 8 * t + 8] @ operand
        assert np.allclose(y, x @ matrix[k].T)


@pytest.mark.parametrize(("d", "diagonal"), [(8, False), (20, False), (32, False), (100, False), (40, True)])
def test_tiles_add_up_to_scatters(d, diagonal):
    generator = np.random.default_rng(1)
    plan = MixtureLaunch(d, 2, diagonal, "float64")
    y = np.zeros((50, plan.wide))
    y[:, :d] = generator.normal(size=(50, d))
    r = generator.random(50)
    z = y * r[:, None]
    packed = np.zeros((2, plan.sets * plan.tiles_of_set, 16, 8))
    for number, (a, b, c) in enumerate(plan.tiles):
        columns = y[:, 8 * c : 8 * c + 8]
        packed[:, number, :8] = z[:, 8 * a : 8 * a + 8].T @ columns
        packed[:, number, 8:] = 0 if b < 0 else z[:, 8 * b : 8 * b + 8].T @ columns
    scatter = plan.matrices(packed.reshape(2, -1))
    exact = z.T @ y
    blocks = np.kron(np.eye(plan.blocks), np.ones((8, 8))) if diagonal else 1.0
    assert np.allclose(scatter, exact * blocks)


@pytest.mark.skipif(nvrtc.find_nvrtc() is None, reason="NVRTC is not installed (ilk[gpu])")
@pytest.mark.parametrize(
    ("d", "k", "diagonal", "dtype"),
    [
        (32, 32, False, "float64"),
        (2, 3, False, "float32"),
        (64, 64, False, "float64"),
        (128, 5, False, "float32"),
        (40, 100, True, "float64"),
        (32, 32, True, "float32"),
        (130, 3, False, "float64"),
        (500, 9, False, "float32"),
        (1500, 2, True, "float64"),
    ],
)
def test_every_class_compiles(d, k, diagonal, dtype, monkeypatch):
    plan = mixture_launch(d, k, diagonal, dtype)
    builds = [plan.sums(), plan.scores(fused=plan.fused), plan.memberships()] + [plan.whole()] * plan.at_once
    for build in builds:
        spilled = spilled_bytes(build, "sm_90a", monkeypatch)
        assert spilled <= (256 if build.name == "gmm_scores" else 0), (
            build
        )  # exp in the loop takes some there


@pytest.mark.skipif(nvrtc.find_nvrtc() is None, reason="NVRTC is not installed (ilk[gpu])")
@pytest.mark.parametrize(("d", "k", "dtype"), [(8, 128, "float64"), (5, 70, "float32"), (1, 17, "float64")])
def test_moments_compile(d, k, dtype, monkeypatch):
    assert spilled_bytes(MomentPlan(d, k, dtype).build(), "sm_90a", monkeypatch) == 0
