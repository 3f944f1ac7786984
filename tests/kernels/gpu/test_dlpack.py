"""Cells of other libraries as they describe them; no GPU is needed."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import ilk
from ilk.kernels.gpu import dlpack
from ilk.kernels.gpu.nvrtc import Unavailable


class Lying:
    """A NumPy array that says it lies on a card: its capsule is NumPy's own."""

    def __init__(self, cells, kind=2):
        self.cells, self.kind, self.streams = cells, kind, []

    def __dlpack_device__(self):
        return self.kind, 3

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return self.cells.__dlpack__()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_capsule_tells_address_type_and_strides(dtype):
    cells = np.arange(24, dtype=dtype).reshape(6, 4)
    for view in (cells, cells.T, cells[::2, 1:]):
        given = Lying(view)
        found = dlpack.foreign(given)
        assert (found.address, found.shape, found.dtype) == (view.ctypes.data, view.shape, dtype)
        if found.strides is not None:
            assert found.strides == tuple(size // view.itemsize for size in view.strides)
        else:
            assert view.flags.c_contiguous
        assert given.streams == [dlpack.LEGACY_STREAM]  # the library makes ours wait for what it has begun
        first = (ctypes.c_char * view.itemsize).from_address(found.address).raw
        assert np.frombuffer(first, dtype)[0] == view[0, 0]


def test_where_cells_lie():
    cells = np.ones((3, 2))
    assert dlpack.device_of(Lying(cells)) == 3
    assert dlpack.device_of(Lying(cells, kind=13)) == 3
    assert dlpack.device_of(Lying(cells, kind=1)) is None
    assert dlpack.device_of(cells) is None
    assert dlpack.device_of("text") is None


class Interface:
    """An array that has the older interface alone."""

    def __init__(self, **told):
        self.__cuda_array_interface__ = told


def test_the_older_interface():
    given = Interface(shape=(5, 2), typestr="<f4", data=(64, False), strides=(16, 4), stream=7)
    found = dlpack.foreign(given)
    assert (found.address, found.shape, found.dtype, found.strides, found.stream) == (
        64,
        (5, 2),
        "float32",
        (4, 1),
        7,
    )
    assert dlpack.device_of(given) == 0


def test_memory_that_is_not_given_away_is_one_sentence():
    class Kept(Lying):
        def __dlpack__(self, *, stream=None):
            raise BufferError("no")

    with pytest.raises(Unavailable, match="does not give its memory away"):
        dlpack.foreign(Kept(np.ones((2, 2))))


def test_whole_numbers_are_named():
    assert dlpack.foreign(Lying(np.ones((2, 2), dtype=np.int32))).dtype == "kind 0 of 32 bits"


def test_labels_as_the_callers_own(monkeypatch):
    labels = np.array([1, 0, 2], dtype=np.int32)
    assert ilk.as_tensor(labels, np.zeros(3)) is labels
    made = SimpleNamespace(from_numpy=lambda values: SimpleNamespace(to=lambda device: (device, values)))
    monkeypatch.setattr(dlpack, "import_module", {"torch": made}.__getitem__)
    like = type("Tensor", (), {"__module__": "torch", "device": "cuda:1"})()
    device, values = ilk.as_tensor(labels, like)
    assert device == "cuda:1"
    assert np.array_equal(values, labels)
