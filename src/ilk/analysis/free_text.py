"""Columns of free text, where they are asked for: their topics become columns of numbers."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ilk.errors import Caution, UsageError, names_shown, shown
from ilk.table.read import Table
from ilk.table.schema import TEXT, ColumnInfo, Schema


def with_topics(table: Table, schema: Schema) -> Schema:
    """The schema with the topics of every column that was asked for as text."""
    asked = [column for column in schema.columns if column.reason == TEXT]
    if not asked:
        return schema
    from ilk.paradigms.topics import topics_of  # imports scikit-learn, which takes a second

    made: list[ColumnInfo] = []
    for column in asked:
        texts = pc.drop_null(table.column(column.name).cast(pa.large_string())).to_pylist()
        for name, topic in topics_of(texts, column.name).items():
            info = ColumnInfo(name, "numeric", "topic of a text", "text", topic=topic, source=column.name)
            made.append(replace(info, missing=column.missing, distinct=len(set(texts))))
    told = f"words of texts are used as topics: {names_shown(c.name for c in made)}"
    return replace(
        schema,
        columns=(*schema.columns, *made),
        warnings=(*schema.warnings, Caution("text-topics", told)),
    )


def refuse_topics(schema: Schema) -> None:
    """Of a table that is read in parts no topics are found."""
    asked = [column for column in schema.columns if column.reason == TEXT]
    if asked:
        raise UsageError(
            "text-in-parts",
            f"column {shown(asked[0].name)!r} was asked for as text, and the table is read in parts",
            do="Give more memory, a sample of the rows, or leave the column out",
        )
