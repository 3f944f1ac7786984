"""Which columns go into a model, and under which names its answers come out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ilk.errors import warn
from ilk.methods import METHODS
from ilk.table.block import Array
from ilk.table.schema import Schema

OUTPUT = ("group", "probability", "second", "novelty")
WHOLE = "A"  # the only group of a table without clear groups, whose model has segments


SUFFIX = "ilk"


def design(numbers: Array, codes: Array | None, schema: Schema, used: Schema | None = None) -> Array:
    """The numbers a method works on: numeric columns, then the binary ones it uses as 0 and 1; NaN where missing."""
    wanted = {column.name for column in (used or schema).used}
    places = [j for j, column in enumerate(schema.coded) if column.kind == "binary" and column.name in wanted]
    if not places or codes is None:
        return numbers
    binary = codes[:, places].astype(numbers.dtype)
    binary[binary < 0] = np.nan
    return np.hstack([numbers, binary])


def numbers_only(schema: Schema, method: str) -> Schema:
    """The schema of a method of numbers: numeric columns, and binary ones where it takes them; the others by
    name only. A method of columns of all types uses them all."""
    known = METHODS[method]
    if known.takes == "types":
        return replace(schema, warnings=())
    others = ("categorical", "ordinal") if known.binary else ("categorical", "ordinal", "binary")
    columns = tuple(
        replace(c, kind="left out", levels=None, reason=f"described, not used by {method}")
        if c.kind in others
        else c
        for c in schema.columns
    )
    return replace(schema, columns=columns, warnings=())


def free_names(taken: tuple[str, ...], wanted: tuple[str, ...] = OUTPUT) -> tuple[str, ...]:
    """Our output columns, renamed where the table has a column of that name.

    >>> free_names(("size",))
    ('group', 'probability', 'second', 'novelty')
    """
    clash = [name for name in wanted if name in taken]
    made = []
    for name in wanted:
        free = name
        while free in taken:
            free = f"{free}_{SUFFIX}"
        made.append(free)
    if clash:
        now = ", ".join(
            f"{old} is written as {new}" for old, new in zip(wanted, made, strict=True) if old != new
        )
        warn("column-renamed", f"the table has columns called {', '.join(clash)}; {now}", depth=5)
    return tuple(made)
