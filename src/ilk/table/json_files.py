"""JSON: one object per line, or one document that is a list of objects; objects within are flattened once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from ilk.errors import Caution, DataError, UsageError, names_shown
from ilk.table.columns import from_objects, usable_names
from ilk.table.files import TextOptions
from ilk.table.ledger import Ledger
from ilk.table.read import Table

BOM = b"\xef\xbb\xbf"


def read_json(stream: BinaryIO, name: str, options: TextOptions, *, document: bool) -> Table:
    """A table of objects: one per line, or a list of them in one `document`; a key that one lacks is a missing cell."""
    if options.sep or options.encoding or options.header is not None:
        raise UsageError("bad-option", "sep, header and encoding do not apply to JSON")
    objects = _in_document(stream.read(), name) if document else _in_lines(stream, name)
    cells, count, flat, listed = _gathered(objects)
    if not count:
        raise DataError("no-rows", f"{name} holds no objects", do="Give at least one row")
    names, cautions = usable_names(cells, text=True)
    made = [from_objects(values, key) for key, values in zip(names, cells.values(), strict=True)]
    problems = {key: problem for key, (_, problem) in zip(names, made, strict=True) if problem}
    if flat:
        cautions.append(_said("nested objects are flattened once: {}, as 'outer.inner'", flat))
    if listed:
        cautions.append(_said("lists and deeper objects are kept as text: {}", listed))
    columns = tuple(column for column, _ in made)
    return Table(name, names, Ledger(count, count), columns, warnings=tuple(cautions), problems=problems)


def _said(text: str, names: dict[str, None]) -> Caution:
    return Caution("flattened", text.format(names_shown(names)))


def _gathered(
    objects: Iterable[dict[str, Any]],
) -> tuple[dict[str, list[Any]], int, dict[str, None], dict[str, None]]:
    """Cells by column, the number of rows, the columns that were flattened, and those with lists."""
    cells: dict[str, list[Any]] = {}
    flat: dict[str, None] = {}
    listed: dict[str, None] = {}
    count = 0
    for row in objects:
        for key, value in _flattened(row, flat, listed):
            column = cells.setdefault(key, [])
            column += [None] * (count - len(column))
            column.append(value)
        count += 1
    for column in cells.values():
        column += [None] * (count - len(column))
    return cells, count, flat, listed


def _flattened(
    row: dict[str, Any], flat: dict[str, None], listed: dict[str, None]
) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict):
            flat[key] = None
            for inner, cell in value.items():
                yield f"{key}.{inner}", _plain(cell, f"{key}.{inner}", listed)
        else:
            yield key, _plain(value, key, listed)


def _plain(value: Any, name: str, listed: dict[str, None]) -> Any:
    if not isinstance(value, (list, dict)):
        return value
    listed[name] = None
    return json.dumps(value, ensure_ascii=False)


def _in_lines(stream: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(stream, start=1):
        text = line.removeprefix(BOM) if number == 1 else line
        if text.strip():
            yield _object(_parsed(text, f"{name} line {number}"), f"{name} line {number}")


def _in_document(content: bytes, name: str) -> Iterator[dict[str, Any]]:
    """The objects of the list that a document is, or of the only list that it has."""
    value = _parsed(content.removeprefix(BOM), name)
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list) and inner]
        if len(lists) != 1:
            raise DataError(
                "wrong-format",
                f"{name} looks like one JSON document that is not a list of rows",
                do="Write a list of objects, or one object per line",
            )
        value = lists[0]
    for number, row in enumerate(value):
        yield _object(row, f"{name} row {number}")


def _refused(where: str, why: str) -> DataError:
    return DataError("bad-line", f"{where}: {why}", do="Write JSON objects, one for each row")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _refused(where, "not an object")
    return value


def _parsed(text: bytes, where: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            raise _refused(where, "a key occurs twice")
        return made

    try:
        return json.loads(text, object_pairs_hook=unique)
    except DataError:
        raise
    except UnicodeDecodeError:
        raise _refused(where, "bytes that are not UTF-8") from None
    except RecursionError:
        raise _refused(where, "nested too deeply") from None
    except json.JSONDecodeError as error:
        raise _refused(where, f"not JSON ({error.msg} at character {error.pos + 1})") from None
    except ValueError:
        raise _refused(where, "a number with too many digits") from None
