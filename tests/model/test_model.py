"""Models on their own: assigning new rows, saving, reading back, and files that make no sense."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ilk
from ilk import store
from ilk.errors import DataError, IlkWarning, ModelFileError
from ilk.model.model import KIND
from ilk.model.placed import novelty_of
from tests.export.test_sql import correlated_table


@pytest.fixture(scope="module")
def frame():
    draws = np.random.default_rng(0)
    numbers = np.vstack([draws.normal(0, 1, (60, 2)), draws.normal(9, 1, (30, 2))])
    return pd.DataFrame(
        {
            "a": numbers[:, 0],
            "b": numbers[:, 1],
            "sex": np.where(draws.random(90) < 0.5, "f", "m"),
            "town": draws.choice(["x", "y", "z"], 90),
        }
    )


@pytest.fixture(scope="module")
def result(frame):
    return ilk.cluster(frame, method="k-means")


def test_training_rows_get_their_labels_back(result, frame):
    placed = result.assign(frame)
    letters = np.array(["A", "B", "C", "D", "E", "F", "G", "H", "I"])
    assert placed["group"].tolist() == letters[result.labels].tolist()
    assert list(placed.columns) == ["group", "second", "novelty"]
    assert placed["novelty"].between(0, 1).all()
    # Novelty of the training rows themselves is spread evenly over 0..1.
    assert placed["novelty"].mean() == pytest.approx(0.5, abs=0.05)
    pieces = pd.concat([result.assign(frame[:40]), result.assign(frame[40:])])
    pd.testing.assert_frame_equal(pieces, placed)


def test_frame_of_the_callers_kind(result, frame):
    odd = frame.set_index(pd.Index(range(500, 590)))
    assert result.assign(odd).index.equals(odd.index)
    assert isinstance(result.assign(pl.from_pandas(frame)), pl.DataFrame)
    assert isinstance(result.assign(pa.Table.from_pandas(frame)), pa.Table)
    assert isinstance(result.assign(frame.to_dict("records")), pa.Table)


@pytest.mark.badinput("C13")
def test_columns_by_name_not_by_place(result, frame):
    pd.testing.assert_frame_equal(result.assign(frame[["sex", "b", "a"]]), result.assign(frame))


@pytest.mark.badinput("C14")
def test_missing_and_extra_columns(result, frame):
    with pytest.raises(DataError, match="lacks 1 column of the model: 'b'") as caught:
        result.assign(frame.drop(columns="b"))
    assert caught.value.code == "absent-column"
    with pytest.warns(IlkWarning, match="'more'"):
        result.assign(frame.assign(more=1))
    with pytest.warns(IlkWarning, match="absent"):
        placed = result.assign(frame.drop(columns="b"), absent="missing")
    assert len(placed) == 90
    # A column that was only described is not needed.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result.assign(frame.drop(columns="town"))


@pytest.mark.badinput("C15")
def test_changed_types(result, frame):
    whole = frame.assign(a=frame["a"].round().astype(int))
    assert len(result.assign(whole)) == 90
    with pytest.raises(DataError) as caught:
        result.assign(frame.assign(a="text"))
    assert caught.value.code == "type-changed"


@pytest.mark.badinput("A28")
def test_unseen_level_counts_as_missing(result, frame):
    with pytest.warns(IlkWarning, match="'other'"):
        placed = result.assign(frame.head(3).assign(sex="other"))
    assert placed["group"].notna().all()


@pytest.mark.badinput("C12")
def test_our_names_give_way_to_the_tables(frame):
    clash = frame.rename(columns={"a": "group", "b": "novelty"})
    result = ilk.cluster(clash, method="k-means")
    with pytest.warns(IlkWarning, match="group is written as group_ilk") as made:
        placed = result.assign(clash)
    assert list(placed.columns) == ["group_ilk", "second", "novelty_ilk"]
    assert [w.message.code for w in made] == ["column-renamed"]


@pytest.mark.badinput("B18")
def test_no_rows(result, frame):
    for empty in (frame.head(0), pl.from_pandas(frame.head(0)), pa.Table.from_pandas(frame.head(0))):
        placed = result.assign(empty)
        assert list(getattr(placed, "column_names", None) or placed.columns) == ["group", "second", "novelty"]
        assert len(placed) == 0


def test_far_rows_are_novel(result):
    far = pd.DataFrame({"a": [-50.0, 0.0], "b": [-50.0, 0.0], "sex": ["f", "f"]})
    near, middle = result.assign(far)["novelty"]
    assert near == 1.0
    assert middle < 0.9


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.floats(0, 1e6), st.floats(0, 1e6))
def test_novelty_rises_with_cost(quantiles, one, other):
    made = novelty_of(np.array(sorted((one, other))), np.sort(quantiles))
    assert 0 <= made[0] <= made[1] <= 1


def test_round_trip_is_bit_equal(result, frame, tmp_path):
    result.save(tmp_path / "one.ilk")
    again = ilk.load(tmp_path / "one.ilk")
    pd.testing.assert_frame_equal(again.assign(frame), result.assign(frame))
    again.save(tmp_path / "two.ilk")
    assert (tmp_path / "one.ilk").read_bytes() == (tmp_path / "two.ilk").read_bytes()
    assert repr(again) == repr(result.model)
    assert again.names == tuple(g.name for g in result.groups)
    with pytest.raises(ilk.errors.UsageError, match="exists"):
        result.save(tmp_path / "one.ilk")


def test_no_row_and_no_unused_level_is_in_the_file(result, tmp_path):
    assert all(c.levels is None for c in result.model.schema.columns if c.name == "town")
    result.save(tmp_path / "m.ilk")
    packed = store.load(tmp_path / "m.ilk")
    assert all(90 not in array.shape for array in packed.arrays.values())


@pytest.fixture(scope="module")
def tree(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.ilk"
    result.save(path)
    packed = store.load(path)
    return store.restore(packed.document, packed.arrays)


def saved(tree, tmp_path, kind=KIND):
    document, arrays = store.flatten(tree)
    store.save(tmp_path / "bad.ilk", kind, document, arrays, overwrite=True)
    return tmp_path / "bad.ilk"


def set_in(tree, path, value):
    if not path:
        return value(tree) if callable(value) else value
    head, *rest = path
    return {**tree, head: set_in(tree[head], rest, value)}


BAD = [
    (["family"], "gaussian", "family"),
    (["family"], 3, "family"),
    (["letters"], ["A", "A"], "letters"),
    (["letters"], [], "letters"),
    (["names"], ["only one"], "letters"),
    (["parameters", "centre"], lambda a: np.full_like(a, np.nan), "centre"),
    (["parameters", "centre"], lambda a: a[:, :1], "centre"),
    (["parameters", "centre"], lambda a: a.astype(np.float32), "centre"),
    (["parameters", "weight"], lambda a: -a, "weight"),
    (["parameters"], 7, "parameters"),
    (["encoding", "power"], 3.0, "encoding power"),
    (["encoding", "power"], 0.0, "encoding power"),
    (["encoding", "power"], float("inf"), "encoding power"),
    (["encoding", "centre"], lambda a: a[:1], "centre"),
    (["encoding", "factor"], lambda a: -a - 1, "factor"),
    (["sizes"], lambda a: a * 0, "sizes"),
    (["sizes"], lambda a: a[:1], "sizes"),
    (["quantiles"], lambda a: a[:, ::-1].copy(), "quantiles"),
    (["quantiles"], lambda a: a[:, :5], "quantiles"),
    (["training"], None, "training"),
    (["schema", "columns"], lambda c: c[:1], "centre"),
    (["schema", "columns"], lambda c: c[3:], "schema"),
]


@pytest.mark.badinput("H7")
@pytest.mark.parametrize(("path", "value", "field"), BAD)
def test_files_that_make_no_sense_name_the_field(tree, tmp_path, path, value, field):
    with pytest.raises(ModelFileError) as caught:
        ilk.load(saved(set_in(tree, path, value), tmp_path))
    assert caught.value.exit_code == 6
    assert f"entry {field} of the model" in caught.value.what


def test_other_kinds_and_other_schemas_are_refused(tree, tmp_path):
    with pytest.raises(ModelFileError, match="not a clustering model"):
        ilk.load(saved(tree, tmp_path, kind="something else"))
    with pytest.raises(ModelFileError, match="schema"):
        ilk.load(saved(set_in(tree, ["schema"], {"columns": 4}), tmp_path))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_anywhere_is_refused(data, result, tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "m.ilk"
    result.save(path)
    whole = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole)
    with pytest.raises(ModelFileError):
        ilk.load(path)


@pytest.fixture(scope="module")
def mixed(frame):
    blanked = frame.copy()
    blanked.loc[::8, "a"] = np.nan
    return ilk.cluster(blanked), blanked


@pytest.fixture(scope="module")
def blended():
    table = pa.table(correlated_table())
    result = ilk.cluster(table, k=2)
    assert result.model.family == "assorted EEE"
    return result, table


@pytest.mark.filterwarnings("ignore:.*get no group")
def test_a_model_with_a_block_of_numbers_is_saved_and_read_back(blended, tmp_path):
    result, table = blended
    result.save(tmp_path / "m.ilk")
    again = ilk.load(tmp_path / "m.ilk")
    placed = again.assign(table).to_pandas()
    pd.testing.assert_frame_equal(placed, result.assign(table).to_pandas())
    marks = np.append(result.model.letters, "none")[result.labels]
    assert placed["group"].fillna("none").tolist() == marks.tolist()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("treatment", lambda tree: tree["treatment"]["block"].update(structure="cells")),
        ("treatment", lambda tree: tree["treatment"]["block"].update(structure="VVV")),
        ("treatment", lambda tree: tree["treatment"]["block"].update(anchor=[[1.0]])),
        ("parameters", lambda tree: tree["parameters"].pop("levels")),
        ("mixing", lambda tree: tree["parameters"]["numbers"]["mixing"].fill(0.9)),
        ("axes", lambda tree: tree["parameters"]["numbers"]["axes"].fill(0.9)),
        ("log_level", lambda tree: tree["parameters"]["levels"].pop("log_level")),
    ],
)
def test_a_block_that_makes_no_sense_is_refused(blended, tmp_path, name, change):
    tree = copy.deepcopy(blended[0].model._tree())
    change(tree)
    store.save(tmp_path / "m.ilk", KIND, *store.flatten(tree))
    with pytest.raises(ModelFileError, match=name):
        ilk.load(tmp_path / "m.ilk")


def test_an_assorted_model_is_saved_and_read_back(mixed, tmp_path):
    result, table = mixed
    assert result.model.method == "assorted"
    result.save(tmp_path / "m.ilk")
    again = ilk.load(tmp_path / "m.ilk")
    pd.testing.assert_frame_equal(again.assign(table), result.assign(table))
    lost = table.head(1).copy()
    lost[["a", "b", "sex", "town"]] = None
    with pytest.warns(IlkWarning, match="get no group"):
        assert again.assign(lost)["group"].isna().all()
    with pytest.warns(IlkWarning, match="not seen"):
        again.assign(table.assign(town="elsewhere"))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("treatment", lambda tree: tree["treatment"].pop("numbers")),
        ("treatment", lambda tree: tree["treatment"]["numbers"][0].update(source=7)),
        ("treatment", lambda tree: tree["treatment"].update(scales=[99, 0])),
        ("variance", lambda tree: tree["parameters"]["variance"].fill(0.0)),
        ("group", lambda tree: tree["parameters"]["group"].fill(50)),
        ("log_level", lambda tree: tree["parameters"].pop("log_level")),
    ],
)
def test_an_assorted_model_that_makes_no_sense_is_refused(mixed, tmp_path, name, change):
    tree = mixed[0].model._tree()
    tree["treatment"] = copy.deepcopy(tree["treatment"])
    tree["parameters"] = copy.deepcopy(tree["parameters"])
    change(tree)
    store.save(tmp_path / "m.ilk", KIND, *store.flatten(tree))
    with pytest.raises(ModelFileError, match=name):
        ilk.load(tmp_path / "m.ilk")
