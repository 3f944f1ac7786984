"""Values as bytes and back: the same to the last bit, in the same order of memory, and nothing that can run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ilk.families.gaussian import Gaussian
from ilk.fitting.loop import Record, Run, Stop
from ilk.fitting.table_moments import TableMoments
from ilk.kernels.plain_mixture import Ending
from ilk.store.objects import Unkept, decoded, encoded, key_of


def test_numbers_texts_lists_and_dictionaries_come_back_as_they_were():
    value = [None, True, 3, -0.0, 0.1, float("inf"), "é\ud800", (1, [2]), {"b": 1, 2: "x"}, np.float32(2.5)]
    again = decoded(encoded(value))
    assert again == value
    assert [type(one) for one in again] == [type(one) for one in value]
    assert np.signbit(again[3])


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "u8", "u1", "?", "c16"])
def test_arrays_come_back_with_their_type_and_the_order_of_their_axes(dtype):
    cells = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for array in (
        cells,
        np.asfortranarray(cells),
        cells.transpose(1, 0, 2),
        cells[:, ::2],
        cells[:0],
        cells[0, 0, 0],
    ):
        again = decoded(encoded([array]))[0]
        assert again.dtype == array.dtype
        assert np.shape(again) == np.shape(array)
        assert (again == array).all()
        if np.ndim(array):
            assert np.argsort(again.strides).tolist() == np.argsort(array.strides).tolist() or array.size == 0


def test_what_was_one_object_is_one_again_and_what_was_given_is_that():
    shared, given = np.arange(3.0), np.ones(2)
    one, other, mine = decoded(encoded((shared, [shared], given), [given]), [given])
    assert one is other[0]
    assert mine is given


def test_what_was_given_is_found_in_dictionaries_and_records_too():
    params, cells = np.arange(3.0), np.ones(2)
    given = {"run": Run(None, params), "cells": [cells]}  # type: ignore[arg-type]
    data = encoded((params, cells, given["run"]), given)
    mine, ours, run = decoded(data, given)
    assert mine is params
    assert ours is cells
    assert run is given["run"]
    assert params.tobytes() not in data, "it is not written"


def test_named_tuples_of_ours_come_back_as_such():
    ending = Ending(*range(len(Ending._fields)))
    again = decoded(encoded([ending]))[0]
    assert type(again) is Ending
    assert again == ending


def test_records_come_back_without_a_call_of_their_class(monkeypatch):
    trace = [Record(1, 5.0, 2), Record(2, 4.0, 2)]
    run = Run(None, np.zeros(2), cost=4.0, trace=trace)  # type: ignore[arg-type]
    data = encoded((run, tuple(trace), trace))
    monkeypatch.setattr(Run, "__init__", lambda *_: pytest.fail("called"))
    again, traced, listed = decoded(data)
    assert (type(again), again.cost, again.trace) == (Run, 4.0, trace)
    assert (traced, listed) == (tuple(trace), trace)


@pytest.mark.parametrize("value", [object(), np.array([object()]), lambda: 1, {1}, 1j, b"x", np.array(["a"])])
def test_what_cannot_be_kept_is_said_to_be_so(value):
    with pytest.raises(Unkept):
        encoded([value])


@pytest.mark.parametrize(
    "tree",
    [
        {"record": "os:system", "fields": []},
        {"record": "ilk.store.objects:_Down", "fields": []},
        {"record": "ilk.fitting.loop:run_starts", "fields": []},
        {"record": "ilk.fitting.loop:Record", "fields": [1]},
        {"record": "ilk.nowhere:Thing", "fields": []},
        {"enum": ["ilk.fitting.loop:Record", "x"]},
        {"named": ["ilk.fitting.loop:Record", []]},
        {"rows": "ilk.fitting.loop:Record", "columns": [[1], [2, 3], [4], [5]]},
        {"array": [0, "f8", [1 << 40], None]},
        {"array": [-8, "f8", [2], None]},
        {"array": [0, "O", [1], None]},
        {"array": [0, "f8", [2], [5]]},
        {"same": 9},
        {"eval": "1"},
        {},
    ],
)
def test_bytes_that_lie_are_refused(tree):
    document = json.dumps(tree).encode()
    with pytest.raises(Unkept):
        decoded(len(document).to_bytes(8, "little") + document + bytes(8))


def test_every_shortened_or_changed_value_is_refused_or_harmless():
    data = encoded([np.arange(4.0), (Record(1, 2.0, 3), "x"), {"a": np.ones((2, 2), order="F")}])
    for place in range(len(data)):
        for broken in (data[:place], data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]):
            try:
                decoded(broken)
            except Unkept:
                continue


def test_a_name_tells_contents_apart_and_nothing_else():
    params = [np.arange(3.0), np.arange(3)]
    assert key_of(params) == key_of([np.arange(3.0), np.arange(3)])
    different = [
        params,
        params[::-1],
        [np.arange(3.0)],
        [np.arange(3, dtype="f4")],
        3,
        3.0,
        "3",
        True,
        None,
        (),
        {},
    ]
    assert len({key_of(one) for one in different}) == len(different)
    assert key_of(Stop(1e-3, 5)) != key_of(Stop(1e-3, 6))
    assert key_of(Stop()) == key_of(Stop()), "the clock is no input"


def test_a_dictionary_is_named_by_its_content_and_not_by_its_order():
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    assert key_of({"a": 1, "b": 2}) != key_of({"a": 2, "b": 1})


def test_a_record_that_is_there_twice_is_named_by_where_it_was_before():
    def listed(*order):
        stops = Stop(1e-3, 5), Stop(1e-3, 6)
        return [stops[number] for number in order]

    assert key_of(listed(0, 1, 0)) == key_of(listed(0, 1, 0))
    assert len({key_of(listed(*order)) for order in ((0, 1, 0), (0, 1, 1), (0, 0, 1), (0, 1))}) == 4


def test_only_contents_are_named():
    for value in (object(), np.array([object()]), lambda: 1):
        with pytest.raises(Unkept):
            key_of(value)
    assert key_of(Gaussian) if isinstance(Gaussian, type) else True
    assert key_of(TableMoments.__add__) == key_of(TableMoments.__add__)
