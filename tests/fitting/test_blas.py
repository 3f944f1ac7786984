"""While ilk works the BLAS has one thread, and afterwards what it had before."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import ilk
from ilk.threads import one_blas_thread

BLAS = ThreadpoolController().select(user_api="blas")
pytestmark = pytest.mark.skipif(
    not BLAS.lib_controllers, reason="NumPy has a BLAS whose threads cannot be told"
)


@pytest.fixture(autouse=True)
def _three_threads():
    with BLAS.limit(limits=3):
        yield


def _threads() -> set[int]:
    return {library.num_threads for library in BLAS.lib_controllers}


def test_held_and_given_back():
    with one_blas_thread():
        assert _threads() == {1}
    assert _threads() == {3}


def test_given_back_after_an_error():
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert _threads() == {3}


def test_jobs_of_two_threads_that_overlap():
    entered, leave = threading.Event(), threading.Event()
    seen: list[set[int]] = []

    def other() -> None:
        with one_blas_thread():
            entered.set()
            leave.wait()
        seen.append(_threads())

    job = threading.Thread(target=other)
    with one_blas_thread():
        job.start()
        entered.wait()
        assert _threads() == {1}
    leave.set()
    job.join()
    assert seen == [{3}]
    assert _threads() == {3}


def test_one_job_within_another():
    with one_blas_thread():
        with one_blas_thread():
            assert _threads() == {1}
        assert _threads() == {1}
    assert _threads() == {3}


@pytest.mark.parametrize(
    "call",
    [
        lambda x, seen: ilk.cluster(x, callback=seen),
        lambda x, seen: ilk.select(x, callback=seen),
        lambda x, seen: ilk.GaussianMixture(2, callback=seen).fit(x),
        lambda x, seen: ilk.StudentMixture(2, callback=seen).fit(x),
    ],
    ids=["cluster", "select", "GaussianMixture", "StudentMixture"],
)
def test_held_while_models_are_fitted(call):
    draws = np.random.default_rng(0)
    x = np.vstack([draws.normal(0, 1, (40, 3)), draws.normal(9, 1, (40, 3))])
    seen: list[set[int]] = []
    call(x, lambda _: seen.append(_threads()))
    assert seen
    assert set().union(*seen) == {1}
    assert _threads() == {3}
