"""What a table is taken for where nobody has looked at it: types, codes for missing cells, columns said twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ilk.table.cells import TableColumns
from ilk.table.columns import number_text
from ilk.table.doubles import counted_once, same_columns
from ilk.table.missing_codes import WithoutCodes, code_cautions, missing_codes
from ilk.table.schema import Schema, asked_kinds, infer


def understand(table: TableColumns, **asked: Any) -> Schema:
    """The schema of a table, as `infer` has it, with codes for "no answer" as missing cells and every column once.

    >>> from ilk.table.read import read
    >>> schema = understand(read({"age": [30 + i % 40 for i in range(97)] + [-99] * 3}))
    >>> schema["age"].missing, schema["age"].missing_codes
    (3, (-99.0,))
    """
    given = asked_kinds(asked.get("types"), asked.get("ignore", ()))
    roles = [asked.get(role) for role in ("id", "weight", "truth")]
    free = [n for n in table.names if n not in given and n not in roles and n not in table.problems]
    codes = missing_codes(table, free)
    seen = WithoutCodes(table, codes)
    schema = infer(seen, **asked)
    columns = tuple(
        _with_codes(c, tuple(codes[c.name])) if c.name in codes and c.used else c for c in schema.columns
    )
    schema = replace(schema, columns=columns, warnings=(*code_cautions(codes), *schema.warnings))
    return counted_once(schema, same_columns(seen, schema, given))


def _with_codes(column: Any, codes: tuple[float, ...]) -> Any:
    told = f"{', '.join(map(number_text, codes))} taken as missing"
    return replace(column, missing_codes=codes, note=told)
