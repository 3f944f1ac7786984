"""Student components on a card against their twin in NumPy: sums, costs and labels to the digits of float64."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from ilk.kernels import plain_student
from ilk.kernels.gpu.mixture_plans import MOST_STUDENTS
from ilk.kernels.gpu.nvrtc import Unavailable
from tests.kernels.gpu.test_mixture_on_card import close, components, table_of

SHAPES = [(8, 5), (32, 32), (2, 3), (20, 40), (7, 96), (100, 6), (1, 1)]


def students(numbers, k, diagonal):
    """Components of several tails, the last Gaussian where there is more than one."""
    mean, whiten, constant = components(numbers, k, diagonal)
    dof = np.linspace(0.7, 60, k)
    dof[-1] = inf if k > 1 else dof[-1]
    return mean, whiten, constant, dof


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("d", "k"), SHAPES)
def test_a_pass_is_that_of_the_twin(device, d, k, diagonal, dtype):
    x, code, numbers, resident = table_of(device, 20_011, d, k, dtype)
    given = None, *students(numbers, k, diagonal)
    nodes = given[-1][:, None] * np.linspace(0.5, 2, 8)
    found = resident._student_tails(*code, *given, nodes)
    close(found, plain_student.student_tails(x, *code, *given, nodes))
    sums = resident._student_step(*code, *given, given[-1] * 1.5)
    close(sums, plain_student.student_step(x, *code, *given, given[-1] * 1.5))
    again = resident._student_tails(*code, *given, nodes)
    for one, two in zip(found, again, strict=True):
        assert np.array_equal(one, two)


@pytest.mark.parametrize(("d", "k", "diagonal"), [(8, 5, False), (32, 40, False), (16, 6, True)])
def test_weights_hard_memberships_and_trimming(device, d, k, diagonal):
    x, code, numbers, resident = table_of(device, 20_011, d, k, np.float64)
    parts = students(numbers, k, diagonal)
    weight = np.random.default_rng(3).integers(0, 4, len(x)) / 2
    middle = float(np.median(plain_student.student_labels(x, *code, *parts)[2]))
    for hard, limit in ((False, inf), (True, inf), (False, middle)):
        given = weight, *parts, parts[-1] * 0.9, hard, limit, 0.5
        close(resident._student_step(*code, *given), plain_student.student_step(x, *code, *given))
        given = weight, *parts, parts[-1][:, None] * np.linspace(0.5, 2, 8), hard, limit, 0.5
        close(resident._student_tails(*code, *given), plain_student.student_tails(x, *code, *given))


@pytest.mark.parametrize(("d", "k", "diagonal"), [(8, 5, False), (32, 40, True), (2, 3, False)])
def test_labels(device, d, k, diagonal):
    x, code, numbers, resident = table_of(device, 20_011, d, k, np.float32)
    parts = students(numbers, k, diagonal)
    for hard in (False, True):
        label, top, cost = resident._student_labels(*code, *parts, hard)
        theirs = plain_student.student_labels(x, *code, *parts, hard)
        assert (label != theirs[0]).mean() < 1e-4
        close((top, cost), theirs[1:])


def test_chunks_change_nothing_but_rounding(device, monkeypatch):
    _, code, numbers, resident = table_of(device, 70_011, 8, 4, np.float64)
    given = None, *students(numbers, 4, False)
    nodes = given[-1][:, None] * np.linspace(0.5, 2, 8)
    tails, sums = (
        resident._student_tails(*code, *given, nodes),
        resident._student_step(*code, *given, given[-1]),
    )
    monkeypatch.setattr("ilk.kernels.gpu.mixture_plans.MixtureLaunch.chunk", lambda self, n: 10_000)
    resident._jobs.clear()
    close(resident._student_tails(*code, *given, nodes), tails)
    close(resident._student_step(*code, *given, given[-1]), sums)


def test_more_components_are_refused(device):
    k = MOST_STUDENTS + 1
    _, code, numbers, resident = table_of(device, 5000, 2, k, np.float64)
    parts = students(numbers, k, True)
    with pytest.raises(Unavailable, match="Student"):
        resident._student_step(*code, None, *parts, parts[-1])
