"""Reading a model back: a file is refused unless every field of it makes sense. Nothing in it is run.

Everything that a file says is checked before anything is built of it: types, lengths, shapes against counts, ranges.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ilk import store
from ilk.errors import ModelFileError, shown
from ilk.model import parameters
from ilk.model.model import KIND, Model
from ilk.model.no_prediction_rule import NO_PREDICTION_RULE
from ilk.model.placed import N_QUANTILES
from ilk.model.registry import SavedFamily, saved, setting_of
from ilk.model.treatment import treatment
from ilk.store.check import (
    Unfit,
    anything,
    array,
    either,
    flag,
    letter,
    listed,
    maybe,
    need,
    number,
    one_of,
    record,
    rises,
    text,
    texts,
    whole,
)
from ilk.table.block import Array, Encoding
from ilk.table.own_transforms import KINDS_OF_TRANSFORM, MOST_KNOTS, OwnTransform, OwnTransforms
from ilk.table.schema import KINDS, Schema

KEPT = "ilk-kept-models"
METHOD = re.compile(r"[A-Za-z0-9 -]{1,60}")
MOST_DECIMALS = 30
LARGEST = float(np.finfo(np.float64).max)

WRITTEN = record(
    {"kind": text(40), "decimal": text(1), "unit": text(40), "order": text(3), "origin": number()},
    {"part": text(10)},
)
COLUMN = record(
    {"name": text(), "kind": one_of(*KINDS)},
    {
        "reason": text(),
        "type": text(1000),
        "note": text(),
        "source": text(),
        "topic": maybe(record({"words": texts(), "idf": listed(number()), "weights": listed(number())})),
        "levels": maybe(texts()),
        "missing": whole(0),
        "distinct": whole(0),
        "missing_codes": listed(number()),
        "written": maybe(WRITTEN),
    },
)
SCHEMA = record(
    {"columns": listed(COLUMN)}, {"weight": maybe(text()), "truth": maybe(text()), "id": maybe(text())}
)
OPTION = either(text(), maybe(flag), whole(), number())
TRAINING = record(
    {},
    {
        "rows": maybe(either(number(0.0, LARGEST), whole(0))),
        "source": maybe(text()),
        "ilk": maybe(text(200)),
        "columns": listed(
            record(
                {"name": text(), "counts": anything},
                {"edges": anything, "mean": maybe(number()), "decimals": whole(0, MOST_DECIMALS)},
            )
        ),
    },
)


def read_model(path: str | os.PathLike[str], *, follow: bool = True) -> Model:
    """The model in a file; where `follow` is False, a symbolic link is refused."""
    return _checked(lambda: store.load(path, follow=follow), shown(os.fspath(path), 200))


def read_kept(path: str | os.PathLike[str], name: str) -> Model | None:
    """One of the models that `write_kept` put into a file; None where it has none of this name."""
    held = store.load(path, follow=False)
    if held.kind != KEPT or name not in held.arrays:
        return None
    return _checked(lambda: store.unpack(held.arrays[name].tobytes()), shown(os.fspath(path), 200))


def kept_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names of the models in a file of `write_kept`."""
    held = store.load(path, follow=False)
    return tuple(held.arrays) if held.kind == KEPT else ()


def write_kept(path: str | os.PathLike[str], models: Mapping[str, Model]) -> None:
    """Several models in one file, each as `Model.save` writes it."""
    packed = {name: store.pack(KIND, *store.flatten(model._tree())) for name, model in models.items()}
    arrays = {name: np.frombuffer(content, np.uint8) for name, content in packed.items()}
    store.save(path, KEPT, {}, arrays, overwrite=True)


def _checked(load: Callable[[], store.Contents], where: str) -> Model:
    try:
        packed = load()
        if packed.kind != KIND:
            raise ModelFileError(
                "model-kind",
                f"the file holds a {shown(packed.kind)}, not a {KIND}",
                where=where,
                do="Give a file that Result.save or ilk fit wrote",
            )
        return _model(store.restore(packed.document, packed.arrays))
    except Unfit as unfit:
        raise ModelFileError(
            "model-damaged",
            f"the entry {unfit.name} of the model is not valid: {unfit.why}",
            where=where,
            do="Fit and save the model again",
        ) from None
    except MemoryError:
        raise ModelFileError(
            "model-too-large",
            "the model is larger than the memory of this machine",
            where=where,
            do="Read it where there is more memory",
        ) from None


def _model(tree: Mapping[str, Any]) -> Model:
    family, kind = _family(tree.get("family"))
    schema = _schema(tree.get("schema"))
    treat = treatment(tree.get("treatment"), schema, family) if kind.takes == "treated" else None
    n_columns = _columns(schema, family, kind)
    letters = texts(each=letter())(tree.get("letters"), "letters")
    names = listed(text())(tree.get("names"), "names")
    k = len(letters)
    need(0 < k == len(names), "letters", "marks and names of the groups do not fit")
    group_of = _groups(tree.get("groups", list(range(k))), k)
    ruled = family != NO_PREDICTION_RULE.name
    params = None
    if ruled:
        need(isinstance(tree.get("parameters"), dict), "parameters", "it is not there")
        params = kind.read(tree["parameters"], len(group_of), setting_of(family, schema, treat))
    sizes = _addable(array((k,), 0.0)(tree.get("sizes"), "sizes"), "sizes")
    need(0 < sizes.sum() < math.inf, "sizes", "no group has a row")
    quantiles = array((k, N_QUANTILES))(tree.get("quantiles"), "quantiles")
    need((quantiles[:, 1:] >= quantiles[:, :-1]).all(), "quantiles", "they do not rise")
    return Model(
        method=text(60, METHOD)(tree.get("method"), "method"),
        family=family,
        options=_options(tree.get("options")),
        schema=schema,
        encoding=_encoding(tree.get("encoding"), n_columns if ruled else None),
        params=params,
        group_of=group_of,
        letters=tuple(letters),
        names=tuple(names),
        sizes=sizes,
        quantiles=quantiles,
        training=_training(tree.get("training"), schema),
        treat=treat,
        transforms=_transforms(tree.get("transforms"), schema),
    )


def _transforms(value: Any, schema: Schema) -> OwnTransforms:
    """What the user asked to make of single columns; files from before that have none."""
    if value is None:
        return OwnTransforms()
    need(isinstance(value, dict), "transforms", "they are not by column")
    numbers = {column.name for column in schema.numeric}
    made = {}
    for name, entry in value.items():
        plain = OWN_TRANSFORM(entry, "transforms")
        need(name in numbers, "transforms", "one is of no number of the table")
        values, ranks = (tuple(float(v) for v in plain[key]) for key in ("values", "ranks"))
        known = len(values) == len(ranks) and (plain["kind"] == "rank") == (len(values) > 0)
        need(known, "transforms", "ranks do not fit their values")
        rises(values, "transforms values")
        rises(ranks, "transforms ranks")
        made[name] = OwnTransform(plain["kind"], values, ranks)
    return OwnTransforms(made)


OWN_TRANSFORM = record(
    {
        "kind": one_of(*KINDS_OF_TRANSFORM),
        "values": listed(number(), most=MOST_KNOTS),
        "ranks": listed(number(0.0, 1.0), most=MOST_KNOTS),
    }
)


def _family(value: Any) -> tuple[str, SavedFamily]:
    family = str(text(60)(value, "family"))
    kind = saved(family)
    need(kind is not None, "family", f"{shown(family)} is not known to this version")
    assert kind is not None
    return family, kind


def _schema(value: Any) -> Schema:
    plain = SCHEMA(value, "schema")
    for column in plain["columns"]:
        coded = column["kind"] in ("binary", "categorical", "ordinal")
        need(not coded or column.get("levels"), "schema", "a column lacks its categories")
        if coded and column.get("type") == "bool":
            known = set(column["levels"]) <= {"false", "true"}
            need(known, "schema", "the categories of a truth value are others than false and true")
    schema = Schema.from_dict(plain)
    need(len(schema.used) > 0, "schema", "its columns do not fit the method")
    return schema


def _columns(schema: Schema, family: str, kind: SavedFamily) -> int:
    """How many numbers the family has; refused where the columns are of kinds that it does not take."""
    any_kind = kind.takes != "numbers"
    n_columns = len(schema.numeric) if any_kind else setting_of(family, schema).n_numbers
    fits = family == NO_PREDICTION_RULE.name or any_kind or n_columns == len(schema.used)
    need(fits, "schema", "its columns do not fit the method")
    return n_columns


def _groups(value: Any, k: int) -> tuple[int, ...]:
    """The group of each component; files from before components were merged have one group each."""
    groups = listed(whole(0, k - 1), least=k)(value, "groups")
    need(len(set(groups)) == k, "groups", "components and groups do not fit")
    return tuple(groups)


def _encoding(value: Any, n_columns: int | None) -> Encoding:
    """The conditioning of the numbers; how many there are is told by no parameters where there is no rule."""
    plain = record({"power": anything, "centre": anything}, {"factor": anything})(value, "encoding")
    power = number(above=0.0)(plain["power"], "encoding power")
    need(math.frexp(power)[0] == 0.5, "encoding power", "it is not a power of two")
    if n_columns is None:
        n_columns = len(plain["centre"]) if np.ndim(plain["centre"]) == 1 else 0
    centre = array((n_columns,), -parameters.FAR, parameters.FAR)(plain["centre"], "centre")
    factor = maybe(array((n_columns,), 0.0))(plain.get("factor"), "factor")  # of a column beside one of 1e308
    return Encoding(power, centre, factor)


def _options(value: Any) -> dict[str, Any]:
    need(isinstance(value, dict), "options", "it is not there")
    return {text(200)(key, "options"): OPTION(item, "options") for key, item in value.items()}


def _training(value: Any, schema: Schema) -> dict[str, Any]:
    """What the model remembers of the rows it was fitted on."""
    plain = TRAINING(value, "training")
    columns = {column.name: column for column in schema.columns}
    names = [entry["name"] for entry in plain.get("columns", ())]
    need(len(set(names)) == len(names), "training columns", "one is there twice")
    for entry in plain.get("columns", ()):
        column = columns.get(entry["name"])
        need(column is not None, "training columns", "one is not in the schema")
        assert column is not None
        n_bins = len(column.levels or ()) + 2
        if column.levels is None:
            edges = _row(entry.get("edges"), "training edges")
            need(len({"mean", "decimals"} & entry.keys()) == 2, "training columns", "a mean is missing")
            rises(edges.tolist(), "training edges")
            n_bins = len(edges) + 2
        counts = array((n_bins,), 0.0)(_row(entry["counts"], "training counts"), "training counts")
        _addable(counts, "training counts")
    return dict(plain)


def _addable(value: Array, name: str) -> Array:
    """Weights, whose sum has to be a number."""
    with np.errstate(over="ignore"):
        need(np.isfinite(value.sum()), name, "it adds up to infinity")
    return value


def _row(value: Any, name: str) -> Array:
    """A row of numbers, as an array or as a list."""
    if isinstance(value, list):
        value = np.array(listed(number())(value, name), dtype=np.float64)
    need(isinstance(value, np.ndarray) and value.ndim == 1, name, "it is not a row of numbers")
    return np.asarray(array(value.shape)(value, name))
