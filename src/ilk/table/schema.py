"""The schema: what each column is taken for, why, and how the user changes it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from ilk.errors import Caution, DataError, ModelFileError, Option, UsageError, meant, shown
from ilk.store.plain_file import NotPlain, plain_bytes
from ilk.table.block import Array
from ilk.table.cells import TableColumns
from ilk.table.spelling import Spelling
from ilk.table.words import Topic

Kind = Literal["numeric", "count", "binary", "categorical", "ordinal", "left out"]
KINDS: tuple[str, ...] = get_args(Kind)
ASKED = ("numeric", "count", "binary", "categorical", "ordinal", "text", "ignore")
"""Kinds a user may ask for; "ignore" leaves the column out, "text" takes topics of its words, "count" is a number of
events that methods for counts know and all others take as a number."""
Types = Mapping[str, str | Sequence[str]]
MAX_TYPES_BYTES = 2**20
TEXT = "text: its topics are used"
"""Why a column of free text is not used itself."""


@dataclass(frozen=True)
class ColumnInfo:
    """One column: its kind, the user's levels as text (None for numbers), their type, and the reason."""

    name: str
    kind: str
    reason: str
    type: str = ""
    _: KW_ONLY
    levels: tuple[str, ...] | None = None
    missing: int = 0
    distinct: int = 0
    note: str = ""
    missing_codes: tuple[float, ...] = ()  # numbers that stand for missing cells
    written: Spelling | None = None  # how cells are written that are read as something else than text
    source: str = ""  # the column of the table that this one is made of, where it is not its own
    topic: Topic | None = None  # of a text

    @property
    def origin(self) -> str:
        """The column of the table in which its cells are."""
        return self.source or self.name

    @property
    def used(self) -> bool:
        return self.kind != "left out"

    @property
    def clock(self) -> dict[str, Any] | None:
        """Of dates and times of day, how their numbers are told as such."""
        return None if self.written is None or self.levels is not None else self.written.clock


@dataclass(frozen=True)
class Schema:
    """All columns of a table, in the order of the table, with the special ones named."""

    columns: tuple[ColumnInfo, ...]
    weight: str | None = None
    truth: str | None = None
    id: str | None = None
    warnings: tuple[Caution, ...] = field(default=(), compare=False)

    @property
    def numeric(self) -> tuple[ColumnInfo, ...]:
        """Columns that become numbers of a block, counts among them."""
        return tuple(c for c in self.columns if c.kind in ("numeric", "count"))

    @property
    def coded(self) -> tuple[ColumnInfo, ...]:
        """Columns that become level numbers of a block: binary, categorical and ordinal."""
        return tuple(c for c in self.columns if c.kind in ("binary", "categorical", "ordinal"))

    @property
    def level_start(self) -> Array:
        """Where the levels of each coded column begin among all levels, and how many there are."""
        return np.cumsum([0, *(len(c.levels or ()) for c in self.coded)])

    @property
    def used(self) -> tuple[ColumnInfo, ...]:
        return tuple(c for c in self.columns if c.used)

    def __getitem__(self, name: str) -> ColumnInfo:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, ColumnInfo]:
        return {column.name: column for column in self.columns}

    @classmethod
    def numbers(cls, names: Sequence[str]) -> Schema:
        """Every column numeric, nothing looked at: the schema of a plain number array.

        >>> len(Schema.numbers(["x0", "x1"]).numeric)
        2
        """
        return cls(tuple(ColumnInfo(name, "numeric", "number", "float64") for name in names))

    def print_lines(self) -> list[dict[str, str]]:
        """One row of plain text per column, for a terminal: name, type, categories, missing, reason."""
        return [
            {
                "column": shown(c.name),
                "type": c.kind,
                "categories": _listed(c.levels) if c.levels is not None else "",
                "missing": str(c.missing),
                "reason": c.reason + (f"; {c.note}" if c.note else ""),
            }
            for c in self.columns
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the model file.

        >>> schema = Schema.numbers(["a"])
        >>> Schema.from_dict(schema.to_dict()) == schema
        True
        """
        columns = [
            {
                **asdict(c),
                "levels": None if c.levels is None else list(c.levels),
                "missing_codes": list(c.missing_codes),
                "topic": None if c.topic is None else c.topic.to_dict(),
            }
            for c in self.columns
        ]
        return {"columns": columns, "weight": self.weight, "truth": self.truth, "id": self.id}

    @classmethod
    def from_dict(cls, plain: Any) -> Schema:
        """A schema from plain data that may come from anywhere: every field is checked."""
        if not isinstance(plain, dict) or not isinstance(plain.get("columns"), list):
            raise _bad_schema("it has no list of columns")
        columns = tuple(_column_from(entry) for entry in plain["columns"])
        if len({c.name for c in columns}) < len(columns):
            raise _bad_schema("a column name occurs twice")
        roles = [plain.get(role) for role in ("weight", "truth", "id")]
        if any(not (v is None or isinstance(v, str)) for v in roles):
            raise _bad_schema("weight, truth and id must be names")
        weight, truth, id = roles
        return cls(columns, weight, truth, id)


def _listed(levels: Sequence[str], limit: int = 5) -> str:
    first = ", ".join(shown(level, 20) for level in levels[:limit])
    return first + (f", … ({len(levels)})" if len(levels) > limit else "")


def _bad_schema(why: str) -> ModelFileError:
    return ModelFileError(
        "model-damaged", f"the schema in the file is not valid: {why}", do="Save the model again"
    )


def _column_from(entry: Any) -> ColumnInfo:
    if not isinstance(entry, dict):
        raise _bad_schema("a column is not an object")
    texts = {key: entry.get(key, "") for key in ("name", "kind", "reason", "type", "note", "source")}
    counts = {key: entry.get(key, 0) for key in ("missing", "distinct")}
    levels = entry.get("levels")
    if not all(isinstance(v, str) for v in texts.values()) or texts["kind"] not in KINDS:
        raise _bad_schema("a column needs a name and a known type")
    if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in counts.values()):
        raise _bad_schema(f"counts of column {shown(texts['name'])!r}")
    coded = texts["kind"] in ("binary", "categorical", "ordinal")
    good = (
        isinstance(levels, list)
        and all(isinstance(v, str) for v in levels)
        and len(set(levels)) == len(levels)
    )
    if (coded and not good) or (texts["kind"] in ("numeric", "count") and levels is not None):
        raise _bad_schema(f"categories of column {shown(texts['name'])!r}")
    codes = entry.get("missing_codes", [])
    if not isinstance(codes, list) or not all(type(v) in (int, float) and math.isfinite(v) for v in codes):
        raise _bad_schema(f"missing codes of column {shown(texts['name'])!r}")
    written = entry.get("written")
    spelling = None if written is None else Spelling.from_dict(written)
    if written is not None and spelling is None:
        raise _bad_schema(f"how column {shown(texts['name'])!r} is written")
    topic = None if entry.get("topic") is None else Topic.from_dict(entry["topic"])
    if (topic is None) != (entry.get("topic") is None) or (topic and texts["kind"] != "numeric"):
        raise _bad_schema(f"the topic of column {shown(texts['name'])!r}")
    return ColumnInfo(
        **texts,
        **counts,
        written=spelling,
        topic=topic,
        levels=tuple(levels) if isinstance(levels, list) else None,
        missing_codes=tuple(map(float, codes)),
    )


def infer(
    table: TableColumns,
    types: Types | str | os.PathLike[str] | None = None,
    ignore: str | Sequence[str] = (),
    id: str | None = None,
    weight: str | None = None,
    truth: str | None = None,
) -> Schema:
    """What every column is taken for; `types` (a mapping or a types file) and `ignore` overrule the rules.

    >>> from ilk.table.read import read
    >>> schema = infer(read({"size": [1.5, 2.0, 3.5], "kind": ["a", "b", "a"]}))
    >>> [c.kind for c in schema.columns]
    ['numeric', 'binary']
    """
    from ilk.table.kinds import Judge

    asked = asked_kinds(types, ignore)
    for name, kind in asked.items():
        named = Option("ignore", [shown(name)]) if kind == "ignore" else Option("types", {shown(name): kind})
        check_name(table, name, named)
        _check_kind(name, kind)
    roles = {"id": id, "weight": weight, "truth": truth}
    for role, column in roles.items():
        if column is not None:
            check_name(table, column, Option(role, shown(column)))
    judge = Judge(table)
    columns = tuple(
        judge.special(name, next(role for role, column in roles.items() if column == name))
        if name in roles.values()
        else judge.column(name, asked.get(name))
        for name in table.names
    )
    schema = Schema(columns, weight=weight, truth=truth, id=id, warnings=tuple(judge.warnings()))
    if not schema.used and not any(column.reason == TEXT for column in columns):
        raise _nothing_left(schema, table.source)
    return schema


def asked_kinds(
    types: Types | str | os.PathLike[str] | None, ignore: str | Sequence[str] | None = ()
) -> dict[str, str | Sequence[str]]:
    """The kinds that the user gave, by column."""
    asked: dict[str, str | Sequence[str]] = {}
    if types is not None:
        asked.update(types if isinstance(types, Mapping) else read_types(types))
    asked.update(dict.fromkeys([ignore] if isinstance(ignore, str) else ignore or (), "ignore"))
    return asked


def check_name(table: TableColumns, name: str, given: Option) -> None:
    """Refuse a name that no column has, with those that were perhaps meant."""
    if name not in table.names:
        near = meant(name, table.names)
        hint = (
            f"Did you mean {', '.join(repr(shown(n)) for n in near)}?"
            if near
            else "Columns: " + _listed(table.names)
        )
        raise UsageError(
            "unknown-column", f"{given} names a column that {table.source} lacks", do=hint, options=[given]
        )


def kinds_hint(kind: str) -> str:
    """Which types there are, the one first that was perhaps meant."""
    near = meant(kind, ASKED)
    return (f"Did you mean {near[0]!r}? Known are " if near else "Use ") + ", ".join(ASKED)


def _check_kind(name: str, kind: str | Sequence[str]) -> None:
    if isinstance(kind, str):
        if kind not in ASKED:
            raise UsageError(
                "unknown-type",
                f"{shown(kind)!r} is not a column type (column {shown(name)!r})",
                do=kinds_hint(kind),
            )
    elif not kind or not all(isinstance(v, str) for v in kind) or len(set(kind)) < len(kind):
        raise UsageError(
            "unknown-type",
            f"the categories given for column {shown(name)!r} are not a list of different texts",
            do='List them in order: ["low", "middle", "high"]',
        )


def _nothing_left(schema: Schema, source: str) -> DataError:
    if not schema.columns:
        return DataError("no-columns", f"{source} has no columns")
    parts = "; ".join(f"{shown(c.name)!r}: {c.reason}" for c in schema.columns[:10])
    more = f"; and {len(schema.columns) - 10} more" if len(schema.columns) > 10 else ""
    option = Option("types", {"column": "categorical"})
    do, options = f"Name a type for a column that should be used, as in {option}", [option]
    if all(column.reason in ("constant", "all missing") for column in schema.columns):
        do, options = "Give a table with at least one column whose cells differ", []
    return DataError(
        "no-columns",
        f"no column of {source} can be used",
        where=parts + more,
        do=do,
        options=options,
    )


def types_text(schema: Schema) -> str:
    """The text of a types file (TOML).

    >>> print(types_text(Schema.numbers(["age"])).splitlines()[-1])
    "age" = "numeric"  # number
    """
    lines = [
        "# Column types as detected. Change a type and use this file: --types FILE, types=FILE.",
        f"# Types: {', '.join(ASKED)}; a list of categories in order makes an ordinal column.",
        "",
        "[types]",
    ]
    for c in schema.columns:
        if c.name in (schema.weight, schema.truth, schema.id):
            continue
        value = (
            "[" + ", ".join(map(_quoted, c.levels or ())) + "]" if c.kind == "ordinal" else _quoted(_asked(c))
        )
        # A type that is named takes every number as it is: the line waits for whoever wants that.
        aside = "# " if c.missing_codes else ""
        told = shown(c.reason + (f"; {c.note}" if c.note else ""), 120)
        lines.append(f"{aside}{_quoted(c.name)} = {value}  # {told}")
    return "\n".join(lines) + "\n"


def _asked(column: ColumnInfo) -> str:
    return column.kind if column.used else "text" if column.reason == TEXT else "ignore"


def _quoted(text: str) -> str:
    """A TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'


def read_types(path: str | os.PathLike[str]) -> dict[str, str | Sequence[str]]:
    """The kinds asked for in a types file."""
    import tomllib

    name = shown(os.path.basename(os.fspath(path)), 80)
    try:
        plain = tomllib.loads(plain_bytes(path, MAX_TYPES_BYTES).decode("utf-8"))
    except NotPlain as error:
        what = f"is larger than {MAX_TYPES_BYTES:,} bytes" if error.too_large else "is not a plain file"
        raise UsageError("types-file", f"{name} {what}") from None
    except OSError as error:
        raise UsageError("types-file", f"{name} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError("types-file", f"{name} is not TOML: {shown(str(error), 120)}") from None
    types = plain.get("types")
    if not isinstance(types, dict) or not all(isinstance(v, (str, list)) for v in types.values()):
        raise UsageError(
            "types-file",
            f"{name} needs a [types] section of names and types",
            do="ilk columns DATA writes one",
        )
    return types
