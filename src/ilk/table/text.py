"""Delimited text: DuckDB cuts the lines and keeps the rejects, and every column is typed over all rows."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from ilk.errors import SHOWN_ROWS, Caution, DataError, Option, UsageError, shown
from ilk.table.clean import MAX_LINE_BYTES, TextFacts, any_length, plain_text
from ilk.table.columns import NUMBER, Column, usable_names
from ilk.table.files import TextOptions
from ilk.table.ledger import Ledger, SetAside
from ilk.table.read import Table
from ilk.table.scratch import scratch
from ilk.table.text_cells import (
    as_text,
    as_typed,
    looked_and_typed,
    mark_cautions,
    marks_of,
    marks_taken,
    settled,
    total_row,
)
from ilk.threads import database_config

SEPARATORS = (",", ";", "\t", "|")
SEMICOLON = Option("sep", ";")
SAMPLE_BYTES, SAMPLE_LINES = 256 * 1024, 3
USUAL_LINE_BYTES = 8 * 2**20
MAX_REJECTS_KEPT = 10_000
CUT_ROWS = 1 << 16  # that are cut at a time


@dataclass(frozen=True, kw_only=True)
class CsvDialect:
    """How the file is cut: separator, escape of a quote, lines above and with the header, fields per row.

    `breaks` counts the line ends inside quoted cells of the lines skipped: DuckDB skips records, not lines.
    """

    sep: str
    escape: str
    above: int
    skip: int
    breaks: int
    n_fields: int
    names: tuple[str, ...] | None


def read_text(path: str, name: str, options: TextOptions) -> Table:
    """A table from a delimited text file; every line ends in a row or in the ledger."""
    with scratch() as folder:
        plain, facts, told = plain_text(path, folder, name, options.encoding)
        dialect, cautions = dialect_of(plain, name, options)
        cautions += told
        with cutting(plain, dialect, facts.longest) as (reader, rejected):
            columns = list(reader.read_all().columns)
            rejects = rejected()
    inside = sum(line_ends(column) for column in columns)
    ledger = account(len(columns[0]), inside, rejects, dialect, facts, name, options)
    names, found = usable_names(dialect.names or [f"x{j}" for j in range(dialect.n_fields)], text=True)
    cautions += found
    columns, ledger = _without_headers(columns, dialect, ledger, cautions)
    if ledger.used == 0:
        raise DataError("no-rows", f"{name} has a header and no rows", do="Give at least one row")
    marks = marks_of(options)
    seen = [looked_and_typed(column, marks, options.decimal, sep=dialect.sep) for column in columns]
    looks = settled([look for look, _ in seen])
    looks = [
        as_text(look) if own in options.as_text else look for own, look in zip(names, looks, strict=True)
    ]
    typed = [
        cells if look == first else as_typed(column, marks, options.decimal, look)
        for column, look, (first, cells) in zip(columns, looks, seen, strict=True)
    ]
    table = Table(name, names, ledger, tuple(typed))
    taken: Counter[tuple[str, str]] = Counter()
    for own, column, result in zip(names, columns, typed, strict=True):
        if result.null_count > column.null_count:
            taken += marks_taken(own, column, marks)
    cautions += mark_cautions(taken)
    if dialect.n_fields > 1 and ledger.used > 1:
        cautions += total_row(columns[0][-1].as_py())
    return replace(table, warnings=tuple(cautions), decimal=file_decimal(dialect, options))


def file_decimal(dialect: CsvDialect, options: TextOptions) -> str:
    """The decimal mark that a file speaks for: the one named, or the comma where semicolons separate fields."""
    return options.decimal if options.decimal != "." else "," if dialect.sep == ";" else ""


def dialect_of(path: str, name: str, options: TextOptions) -> tuple[CsvDialect, list[Caution]]:
    """Separator, escape, header and lines above it, from the first records of the file."""
    raw, more = _sample(path)
    text = raw.decode("utf-8", errors="ignore")
    escape = '"'
    sep = options.sep or _separator(text, escape, more, name)
    if '\\"' in text and not _fits(text, sep, escape, more) and _fits(text, sep, "\\", more):
        escape = "\\"
    if not 1 <= len(sep.encode()) <= 4 or sep in ('"', "\n", "\r"):
        given = Option("sep", shown(sep))
        raise UsageError(
            "bad-separator", f"{given} cannot separate fields", do='Use "," or ";" or "\\t"', options=[given]
        )
    records = _records(text, sep, escape, more)
    if not any(fields != [""] for _, fields in records):
        raise DataError("no-rows", f"{name} holds blank lines only")
    width = _usual_width(records)
    above, body, cautions = _above_header(records, width, name)
    names, width = _header(body, width, options, name, cautions)
    skip = above if names is None else body[0][0]
    breaks = sum(cell.count("\n") for line, fields in records if line <= skip for cell in fields)
    if escape == "\\":
        cautions.append(Caution("dialect", "quotes inside fields are escaped by a backslash"))
    if sep != ",":
        cautions.append(Caution("dialect", f"fields are separated by {_escaped(sep)!r}"))
    return CsvDialect(
        sep=sep, escape=escape, above=above, skip=skip, breaks=breaks, n_fields=width, names=names
    ), cautions


def _sample(path: str) -> tuple[bytes, bool]:
    """The start of a file with a few whole lines at least, and whether it goes on."""
    with open(path, "rb") as stream:
        raw = stream.read(SAMPLE_BYTES)
        while raw.count(b"\n") < SAMPLE_LINES and (more := stream.read(len(raw))):
            raw += more
        return raw, bool(stream.read(1))


def _records(
    text: str, sep: str, escape: str, more: bool, strict: bool = False
) -> list[tuple[int, list[str]]]:
    """First records with the number of their last line; an incomplete last one is left out."""
    lines = text.splitlines(keepends=True) if "\n" not in text else text.split("\n")
    if len(sep) > 1:
        return [(i, line.split(sep)) for i, line in enumerate(lines, start=1) if line]
    lines = [line + "\n" for line in lines]
    quoting: dict[str, Any] = (
        {"doublequote": True} if escape == '"' else {"doublequote": False, "escapechar": "\\"}
    )
    reader = csv.reader(lines, delimiter=sep, quotechar='"', strict=strict, **quoting)
    records: list[tuple[int, list[str]]] = []
    with any_length():
        for fields in reader:
            if fields:
                records.append((reader.line_num, fields))
    return records[:-1] if more and len(records) > 1 else records


def _fits(text: str, sep: str, escape: str, more: bool) -> bool:
    """Whether the first records can be cut without a fault into equally many fields."""
    if len(sep) > 1:
        return True
    try:
        records = _records(text, sep, escape, more, strict=True)
    except csv.Error:
        return False
    return len({len(fields) for _, fields in records}) == 1


def _usual_width(records: list[tuple[int, list[str]]]) -> int:
    counts = Counter(len(fields) for _, fields in records)
    return max(counts, key=lambda width: (counts[width], width))


def _separator(text: str, escape: str, more: bool, name: str) -> str:
    """The separator that gives most records the same number (above one) of fields."""
    found: list[tuple[float, str]] = []
    for sep in SEPARATORS:
        records = _records(text, sep, escape, more)
        width = _usual_width(records) if records else 1
        if width > 1:
            found.append((sum(len(fields) == width for _, fields in records) / len(records), sep))
    if not found:
        return _spaces(_records(text, " ", escape, more))
    share = max(s for s, _ in found)
    best = [sep for s, sep in found if s == share]
    if len(best) > 1:
        option = Option("sep", best[0])
        raise DataError(
            "ambiguous-separator",
            f"{name} can be cut at {' or at '.join(map(_escaped, best))}",
            do=f"Say which: {option}",
            options=[option],
        )
    return best[0]


def _spaces(records: list[tuple[int, list[str]]]) -> str:
    """Blanks separate fields only where all records have as many and all but the first are numbers."""
    widths = {len(fields) for _, fields in records}
    cells = [cell for _, fields in records[1:] for cell in fields]
    return " " if len(widths) == 1 and widths != {1} and cells and all(map(_is_number, cells)) else ","


def _escaped(sep: str) -> str:
    return sep.encode("unicode_escape").decode()


def _is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell.strip()) is not None


def _above_header(
    records: list[tuple[int, list[str]]], width: int, name: str
) -> tuple[int, list[tuple[int, list[str]]], list[Caution]]:
    """Set apart the lines above the header: comments, and lines with at most half of the usual fields."""
    first = 0
    while first < len(records) - 1:
        fields = records[first][1]
        if not (fields[0].lstrip().startswith("#") or (width > 1 and len(fields) <= width / 2)):
            break
        first += 1
    if first == 0:
        return 0, records, []
    skip = records[first - 1][0]
    text = f"{skip} lines above the header of {name} were skipped (lines 1 to {skip})"
    return skip, records[first:], [Caution("lines-skipped", text)]


def _header(
    records: list[tuple[int, list[str]]], width: int, options: TextOptions, name: str, cautions: list[Caution]
) -> tuple[tuple[str, ...] | None, int]:
    """Column names, None where the first line is data already."""
    line, fields = records[0]
    header = options.header
    if header is None:
        numbers = any(_is_number(cell.replace(options.decimal, ".")) for cell in fields)
        header = any(cell.strip() for cell in fields) and not numbers
        if not header:
            cautions.append(Caution("no-header", f"{name} has no header line: its first line holds numbers"))
    if not header:
        return None, width
    if len(fields) == width - 1 and len(records) > 1:
        cautions.append(
            Caution(
                "column-names", "the header names one column less than the rows have; the first is row_names"
            )
        )
        return ("row_names", *(cell.strip() for cell in fields)), width
    if len(fields) != width and len(records) > 1:
        raise DataError(
            "header-mismatch",
            f"the header has {len(fields)} names and most rows have {width} fields",
            where=f"{name} line {line}",
            do=f"Correct the header, or give the separator: {SEMICOLON}",
            options=[SEMICOLON],
        )
    return tuple(cell.strip() for cell in fields), len(fields)


@contextmanager
def cutting(
    path: str, dialect: CsvDialect, longest: int
) -> Iterator[tuple[Any, Callable[[], list[tuple[int, str, int]]]]]:
    """All fields as text, by DuckDB, as an Arrow reader; once that is read its rejects: line, reason, lines taken."""
    import duckdb

    columns = ", ".join(f"'c{j}': 'VARCHAR'" for j in range(dialect.n_fields))
    # A cell in quotes may have many lines: only what a small file has in all is known to be no more.
    most = MAX_LINE_BYTES if os.path.getsize(path) <= 2 * MAX_LINE_BYTES else max(USUAL_LINE_BYTES, longest)
    question = (
        "select * from read_csv(?, auto_detect=false, delim=?, quote='\"', escape=?, header=false, "  # noqa: S608
        f"columns={{{columns}}}, skip={dialect.skip - dialect.breaks}, new_line='\\n', nullstr='', "
        f"store_rejects=true, rejects_limit=0, "
        f"max_line_size={most + 2}, strict_mode=true, null_padding=false)"
    )
    con = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            **database_config(),
        }
    )

    def rejected() -> list[tuple[int, str, int]]:
        found = con.sql(
            "select line, any_value(error_type), any_value(csv_line) from reject_errors "
            "group by line order by line"
        ).fetchall()
        return [
            (int(line), str(kind).lower(), str(text or "").rstrip("\n").count("\n") + 1)
            for line, kind, text in found
        ]

    try:
        cells = con.sql(question, params=[path, dialect.sep, dialect.escape])
        yield cells.to_arrow_reader(CUT_ROWS), rejected
    finally:
        con.close()


def line_ends(column: Column) -> int:
    """Line ends inside the cells."""
    return int(pc.sum(pc.count_substring(column, "\n")).as_py() or 0)


def account(
    rows: int,
    inside: int,
    rejects: list[tuple[int, str, int]],
    dialect: CsvDialect,
    facts: TextFacts,
    name: str,
    options: TextOptions,
) -> Ledger:
    """The ledger, balanced against the lines of the file: nothing may vanish. `inside` line ends are within cells."""
    swallowed = any("unquoted" in kind and count > 1 for _, kind, count in rejects)
    if len(rejects) > options.max_rejects or swallowed:
        raise _rejected(rejects, name, dialect.n_fields)
    lost = facts.lines - (dialect.skip + rows + inside + sum(count for _, _, count in rejects))
    if not -len(rejects) <= lost <= facts.blank:
        raise DataError(
            "rows-lost",
            f"{lost} lines of {name} are in no row",
            where=f"first suspect line {rejects[0][0]}" if rejects else f"{facts.lines} lines, {rows} rows",
            do="Look for an unclosed quote there",
        )
    by_reason: dict[str, list[int]] = {}
    for line, kind, _ in rejects[:MAX_REJECTS_KEPT]:
        by_reason.setdefault(kind, []).append(line)
    aside = tuple(SetAside(k, len(v), tuple(v), "line") for k, v in by_reason.items())
    skipped: tuple[SetAside, ...] = (
        (SetAside("above the header", dialect.above, (1,), "line"),) if dialect.above else ()
    )
    if lost > 0:
        skipped += (SetAside("blank lines", lost, (), "line"),)
    return Ledger(rows + len(rejects), rows, aside, skipped)


def _rejected(rejects: list[tuple[int, str, int]], name: str, width: int) -> DataError:
    parts = ", ".join(f"line {line}: {kind}" for line, kind, _ in rejects[:SHOWN_ROWS])
    quote = any("unquoted" in kind for _, kind, _ in rejects)
    allowed = Option("max_rejects", len(rejects))
    return DataError(
        "unclosed-quote" if quote else "rows-rejected",
        f"{len(rejects)} line{'s' * (len(rejects) > 1)} of {name} cannot be cut into {width} fields",
        where=parts + (", …" if len(rejects) > SHOWN_ROWS else ""),
        do=(
            "Close the quote in that line"
            if quote
            else f"Correct the lines, give the separator ({SEMICOLON}), or allow them: {allowed}"
        ),
        options=() if quote else (SEMICOLON, allowed),
    )


def _without_headers(
    columns: list[Column], dialect: CsvDialect, ledger: Ledger, cautions: list[Caution]
) -> tuple[list[Column], Ledger]:
    """Rows that repeat the header (files glued together) are set aside, and said."""
    repeats = header_rows(columns, dialect)
    if repeats is None:
        return columns, ledger
    rows = pc.indices_nonzero(repeats).to_pylist()
    cautions.append(repeated_header(rows))
    keep = pc.invert(repeats)
    return [column.filter(keep) for column in columns], ledger.without("repeated header", rows)


def repeated_header(rows: Sequence[int]) -> Caution:
    text = f"{len(rows)} rows repeat the header and were skipped (row {rows[0]} first)"
    return Caution("repeated-header", text)


def header_rows(columns: Sequence[Column], dialect: CsvDialect) -> Column | None:
    """Which rows repeat the header, None where none does."""
    names = dialect.names
    if names is None or len(columns) == 1 or any(_is_number(cell) for cell in names):
        return None
    same = pc.equal(pc.utf8_trim_whitespace(columns[0]), names[0])
    if not pc.any(same).as_py():
        return None
    for column, cell in zip(columns[1:], names[1:], strict=True):
        same = pc.and_(same, pc.equal(pc.fill_null(pc.utf8_trim_whitespace(column), ""), cell))
    repeats = pc.fill_null(same, False)
    return repeats if pc.any(repeats).as_py() else None
