"""Model files that lie: well formed, well digested, and with something in them that no fit would write."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import pickle
import random
import warnings
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pandas as pd

import ilk
from ilk import store
from ilk.errors import IlkError
from ilk.model.model import KIND
from ilk.table.read import Table, read

NUMBERS = [0, -1, 1, 2, 3, 7, 64, 10**6, 2**31, 2**53, 2**63, 2**64, 10**30, -(10**30), 10**400, 0.5, -0.0, 1.0, 1e-12,
           1e16, 1e150, -1e150, 1e308, -1e308, 1.7e308, 5e-324, 1e-300, 2.0**1000, 2.0**-1000,
           2.0**-1074, 2.0**1023, math.nan, math.inf, -math.inf]  # fmt: skip
TEXTS = ["", "A", "a", "AA", "x" * 300, "\x00", "\x1b[31mred", "\u202e", "\u2028", "\ud800", "'; DROP TABLE data; --",
         "A' END FROM ranked; CREATE TABLE owned AS SELECT 1; --", "A\nCREATE TABLE owned AS SELECT 1;\n--", "`", '"',
         "${spark.app.name}", "\\", "gaussian VVV", "gaussian EEE", "gaussian EII", "gaussian E", "means", "medians",
         "none", "assorted", "assorted EEE", "assorted VVV", "dirichlet process", "information bottleneck", "bool",
         "numeric", "count", "binary", "categorical", "ordinal", "left out", "levels", "values", "atom", "cells",
         "EEE", "double", "int64", "date32", "text", "true", "false", "nan", "1", "a", "b"]  # fmt: skip
OTHERS = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    {"a": 1},
    ["A", "A", "A"],
    ["A", "B", "C"],
    [0, 0, 0],
    [0, 1, 5],
    [1, 2, 3],
]
MARKS = [{"$array": "a0"}, {"$numbers": "a1"}, {"$texts": ["a0", "a1"]}, {"$flags": "a0"}, {"$array": "none"},
         {"$float": "nan"}, {"$float": "x"}, {"$x": 1}, {"$array": 3}, {"$texts": "a0"}]  # fmt: skip
NAMES = ("EEE", "VVV", "assorted", "binary", "cells", "gaussian", "hard", "means", "medians", "pieces", "process",
         "soft", "unruled")  # fmt: skip


@dataclass(frozen=True)
class Base:
    """A model file that is right, and rows for it."""

    data: bytes
    rows: pd.DataFrame

    @cached_property
    def table(self) -> Table:
        """The rows as `assign` reads them, which takes longer than all that a model does with them; what it says of
        them comes back as Arrow, since a frame of pandas takes longer still."""
        return replace(read(self.rows), native=None)


@cache
def bases() -> dict[str, Base]:
    """A model of every kind that can be saved."""
    draws = np.random.default_rng(0)
    n = 240
    group = draws.integers(0, 3, n)
    mixing = np.array([[1, 0.5, 0], [0.2, 1, 0.4], [0, 0.3, 1]])
    numbers = pd.DataFrame(
        draws.normal(size=(n, 3)) @ mixing + group[:, None] * [5, -3, 0], columns=list("abc")
    )
    mixed = numbers.assign(
        col=np.array(["red", "gr'een", 'bl"ue'])[group],
        flag=draws.random(n) < 0.2 + 0.3 * group,
        few=draws.integers(0, 3, n),
        zero=np.where(draws.random(n) < 0.5, 0.0, draws.exponential(size=n)),
    )
    blank = mixed.assign(
        a=mixed["a"].mask(np.arange(n) % 9 == 0), col=mixed["col"].mask(np.arange(n) % 7 == 0)
    )
    wanted = {
        "means": (numbers, {"method": "k-means", "k": 3}),
        "medians": (numbers, {"method": "k-medians", "k": 3}),
        "binary": (mixed[["a", "b", "flag"]], {"method": "k-means", "k": 3}),
        "gaussian": (numbers, {"method": "gaussian", "k": 3}),
        "pieces": (numbers, {"method": "gaussian", "k": 5}),
        "assorted": (blank, {"method": "assorted", "k": 3}),
        "cells": (blank.drop(columns=["b", "c"]), {"method": "assorted", "k": 2}),
        "process": (blank, {"method": "dirichlet-process"}),
        "soft": (blank, {"method": "information-bottleneck", "k": 3}),
        "hard": (blank, {"method": "deterministic-bottleneck", "k": 3}),
        "unruled": (numbers, {"method": "spectral", "k": 3}),
    }
    made = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (table, asked) in wanted.items():
            model = ilk.cluster(table, **asked).model
            made[name] = Base(store.pack(KIND, *store.flatten(model._tree())), table.head(12))
        for structure in ("EEE", "VVV"):
            model = _gaussian(structure)
            made[structure] = Base(store.pack(KIND, *store.flatten(model._tree())), _numbers(model))
    assert sorted(made) == sorted(NAMES)
    return made


def _gaussian(structure):
    from tests.export.conftest import gaussian_model

    return gaussian_model(structure, (0, 1, 0))[0]


def _numbers(model):
    from tests.export.conftest import gaussian_model

    made = pd.DataFrame(gaussian_model("EII")[1]).head(12)
    made.iloc[0, 0] = np.nan
    return made[[column.name for column in model.schema.used]]


def edited(data: bytes, change) -> bytes:
    """The file with `change` made to its header, and a digest that fits."""
    length = int.from_bytes(data[8:16], "little")
    header = json.loads(data[16 : 16 + length])
    return signed(change(header) or header, data[16 + length : -32])


def signed(header, blob: bytes) -> bytes:
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-(16 + len(text)) % 64)
    body = store.container.MAGIC + len(text).to_bytes(8, "little") + text + blob
    return body + hashlib.sha256(body).digest()


def paths(value, here=()):
    """Every place in a tree."""
    yield here
    if isinstance(value, dict):
        for key in value:
            yield from paths(value[key], (*here, key))
    elif isinstance(value, list):
        for place in range(len(value)):
            yield from paths(value[place], (*here, place))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def hostile_value(value, draw: random.Random):
    """Something else in place of a value: most often of its kind."""
    if draw.random() < 0.15:
        return copy.deepcopy(draw.choice([*NUMBERS, *TEXTS, *OTHERS]))
    if isinstance(value, np.ndarray):
        return hostile_array(value, draw)
    if isinstance(value, bool) or value is None:
        return copy.deepcopy(draw.choice([*OTHERS, *NUMBERS]))
    if isinstance(value, int | float):
        return draw.choice([*NUMBERS, value * 2, -value, value + 1, float(value), value * 1e-9, value * 1e9])
    if isinstance(value, str):
        return draw.choice([*TEXTS, value + draw.choice(TEXTS), value.upper()])
    if isinstance(value, list):
        return hostile_list(value, draw)
    return copy.deepcopy(draw.choice(OTHERS))


def hostile_list(value: list, draw: random.Random) -> list:
    made = copy.deepcopy(value)
    choice = draw.randrange(6)
    if choice == 0 and made:
        made.pop(draw.randrange(len(made)))
    elif choice == 1 and made:
        made.append(copy.deepcopy(draw.choice(made)))
    elif choice == 2:
        draw.shuffle(made)
    elif choice == 3:
        made = made * draw.choice([0, 2, 30])
    elif choice == 4:
        made.append(copy.deepcopy(draw.choice([*OTHERS, *TEXTS, *NUMBERS])))
    else:
        made = [hostile_value(item, draw) if draw.random() < 0.5 else item for item in made]
    return made


def hostile_array(value: np.ndarray, draw: random.Random) -> np.ndarray:
    made, choice = value.copy(), draw.randrange(12)
    if made.size and choice < 8:
        for _ in range(draw.choice([1, 1, 1, 3, made.size])):
            place = draw.randrange(made.size)
            if made.dtype.kind == "f":
                made.flat[place] = draw.choice(
                    [n for n in NUMBERS if abs(n) < 1e300 or n != n or isinstance(n, float)]
                )
            else:
                made.flat[place] = draw.choice([-1, 0, 1, 2, 3, 7, 100])
        return made
    if choice == 8:
        return made * np.asarray(draw.choice([0, -1, 1e-200, 1e9, 1e150, 1e300]), dtype=made.dtype)
    if choice == 9:
        return made.ravel() if draw.random() < 0.5 else made.T.copy()
    if choice == 10:
        return made[:-1] if draw.random() < 0.5 and len(made) else np.concatenate([made, made])
    return made.astype(draw.choice(["f4", "i8", "u1", "f8"]))


@cache
def _opened(data: bytes) -> tuple[bytes, list]:
    """The tree of a file, pickled since copies of that are quick, and the places in it."""
    packed = store.unpack(data)
    tree = store.restore(packed.document, packed.arrays)
    return pickle.dumps(tree), [p for p in paths(tree) if p]


def hostile_tree(data: bytes, draw: random.Random) -> bytes:
    """Fields of the model changed, the file otherwise as ilk writes it."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept, places = _opened(data)
        tree = pickle.loads(kept)
        for number in range(draw.choice([1, 1, 1, 2, 3])):
            path = draw.choice([p for p in paths(tree) if p] if number else places)
            parent = at(tree, path[:-1])
            if draw.random() < 0.1 and isinstance(parent, dict):
                del parent[path[-1]]
            else:
                parent[path[-1]] = hostile_value(parent[path[-1]], draw)
        if draw.random() < 0.1:
            more_groups(tree, draw.choice([2, 10, 60]))
        return store.pack(KIND, *store.flatten(tree))


def more_groups(tree: dict, times: int) -> None:
    """Every component so many times over: all counts fit."""
    from ilk.report.figures import letter

    k, pieces = len(tree["letters"]), len(tree["groups"])
    tree["letters"] = [letter(number) for number in range(k * times)]
    tree["names"] = list(tree["names"]) * times
    tree["groups"] = [g + k * t for t in range(times) for g in tree["groups"]]
    for place in (tree, tree["parameters"], *(v for v in tree["parameters"].values() if isinstance(v, dict))):
        for name, value in place.items():
            if isinstance(value, np.ndarray) and len(value) in (k, pieces) and name != "axes":
                value = np.concatenate([value] * times)
                place[name] = value / times if name in ("mixing", "share") else value


def hostile_header(data: bytes, draw: random.Random) -> bytes:
    """The header changed: marks, shapes, types and names of arrays, bytes of the arrays."""
    length = int.from_bytes(data[8:16], "little")
    header, blob = json.loads(data[16 : 16 + length]), bytearray(data[16 + length : -32])
    for _ in range(draw.choice([1, 1, 2])):
        choice = draw.random()
        entry = draw.choice(header["arrays"])
        if choice < 0.4:
            path = draw.choice([p for p in paths(header["document"]) if p])
            new = copy.deepcopy(draw.choice([*MARKS, *OTHERS, *TEXTS, *NUMBERS]))
            at(header["document"], path[:-1])[path[-1]] = (
                None if new != new or new in (math.inf, -math.inf) else new
            )
        elif choice < 0.7:
            for _ in range(draw.choice([1, 4])):
                blob[draw.randrange(len(blob))] ^= 1 << draw.randrange(8)
        elif choice < 0.8:
            entry["shape"] = draw.choice(
                [
                    [0],
                    [-1],
                    [2**40, 2**40],
                    [],
                    [1] * 9,
                    entry["shape"][::-1],
                    [math.prod(entry["shape"])],
                    None,
                    [True],
                ]
            )
        elif choice < 0.9:
            entry["dtype"] = draw.choice(["f4", "i8", "i4", "u1", "O", "f8", "c16", 1])
        else:
            key = draw.choice(["kind", "version", "document", "arrays", "extra"])
            header[key] = copy.deepcopy(draw.choice([*OTHERS, [1, 0], [1, 1], [2, 0], [0, 9], "model"]))
            break
    return signed(header, bytes(blob))


def hostile_file(data: bytes, draw: random.Random) -> bytes | None:
    """A file that differs from `data`; None where a change could not be written."""
    make = hostile_tree if draw.random() < 0.75 else hostile_header
    try:
        made = make(data, draw)
    except (IlkError, TypeError, ValueError, OverflowError, AttributeError, KeyError, IndexError):
        return None
    return None if made == data else made
