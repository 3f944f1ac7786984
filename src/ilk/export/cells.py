"""The cells of a table as expressions: columns read, conditioned and treated, just as the model sees them.

Two steps: `read` has the columns the model uses in the types it knows, a NaN as a blank; `cells` has the numbers and
levels that enter the scores. Both keep the user's names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ilk.assorted.problem import ColumnTransform
from ilk.assorted.scales import SCALES, Number
from ilk.assorted.transform import Category
from ilk.errors import UsageError, shown
from ilk.export.dialects import SqlDialect, less, number
from ilk.model.model import Model
from ilk.report.figures import plural
from ilk.table.own_transforms import OwnTransforms
from ilk.table.schema import ColumnInfo

NAN = "CAST('NaN' AS DOUBLE)"
TEMPORAL = ("date", "timestamp", "time", "duration")
TRUTHS = (("f", "t"), ("false", "true"), ("n", "y"), ("no", "yes"))
"""Levels that a database may have read as truth values, where ilk read text."""
NUMBERS = ("int", "uint", "float", "double", "halffloat", "decimal")


@dataclass(frozen=True)
class CellExpression:
    """A column of one step: its name, quoted, and its expression; `keys` are the literals of its levels."""

    name: str
    expression: str
    keys: tuple[str, ...] = ()
    never_blank: bool = False


@dataclass(frozen=True)
class TableExpressions:
    """The columns read, then the numbers and the categories made of them."""

    read: tuple[CellExpression, ...]
    numbers: tuple[CellExpression, ...]
    categories: tuple[CellExpression, ...] = ()

    @property
    def made(self) -> tuple[CellExpression, ...]:
        return self.numbers + self.categories

    @property
    def blank(self) -> str:
        """Whether a row has no cell at all."""
        if any(cell.never_blank for cell in self.made):
            return "FALSE"
        return " AND ".join(f"{cell.name} IS NULL" for cell in self.made)


def cells_of(model: Model, dialect: SqlDialect) -> TableExpressions:
    """The steps from a table to the cells of a model."""
    names = [column.name for column in model.schema.used]
    _tell_apart(names)
    columns = {column.name: column for column in model.schema.used}
    if model.treat is not None:
        refuse_factors(model.treat)
        return _treated(model, model.treat, dialect)
    read = tuple(
        CellExpression(dialect.name_of(name), _read(columns[name], dialect, model.transforms))
        for name in names
    )
    binary = [column for column in model.schema.coded if column.kind == "binary"]
    made = []
    for place, column in enumerate((*model.schema.numeric, *binary)):
        name = dialect.name_of(column.name)
        value = name if column.levels is None else _zero_or_one(column, dialect)
        made.append(CellExpression(name, _conditioned(model, value, place)))
    return TableExpressions(read, tuple(made))


def refuse_factors(treat: ColumnTransform) -> None:
    """A row's factors follow from all of its cells at once, as many sums as columns for each."""
    if treat.factors is not None:
        raise UsageError(
            "not-exportable",
            f"{plural(treat.factors.n_factors, 'factor')} of {len(treat.factors.source)} columns were taken out before "
            "the groups were found, and an export cannot do that",
            do="Place rows with ilk assign, or Model.assign",
        )


def _tell_apart(names: Sequence[str]) -> None:
    """SQL takes A and a for one name, in quotes or not."""
    seen: dict[str, str] = {}
    for name in names:
        if name.casefold() in seen:
            raise UsageError(
                "not-exportable",
                f"the columns {shown(seen[name.casefold()])!r} and {shown(name)!r} have one name in SQL",
                do="Rename one of them and fit again",
            )
        seen[name.casefold()] = name


def _read(column: ColumnInfo, dialect: SqlDialect, own: OwnTransforms) -> str:
    """A column in the type that the model knows."""
    name = dialect.name_of(column.name)
    if column.source:
        raise UsageError(
            "not-exportable",
            f"the column {shown(column.name)!r} is made of {shown(column.source)!r}, which SQL does not do",
            do="Make it a column of the database first, and fit again",
        )
    if column.type.startswith(TEMPORAL):
        raise UsageError(
            "not-exportable",
            f"the column {shown(column.name)!r} holds {shown(column.type)}, which differs between databases",
            do="Make it a number or a text first, and fit again",
        )
    if column.written is not None:
        raise UsageError(
            "not-exportable",
            f"the column {shown(column.name)!r} is read as {column.written.told()}, which SQL does not do",
            do="Make it a column of numbers in the database first, and fit again",
        )
    if column.levels is None:
        text = column.type in ("text", "category")
        value = f"CAST({f'TRIM(CAST({name} AS STRING))' if text else name} AS DOUBLE)"
        return _transformed(_without_codes(f"NULLIF({value}, {NAN})", column), column, own)
    if column.type == "bool":
        return f"CAST({name} AS BOOLEAN)"
    if column.type.startswith(NUMBERS):
        return _without_codes(f"NULLIF(CAST({name} AS DOUBLE), {NAN})", column)
    as_text = f"CAST({name} AS STRING)"
    if tuple(level.lower() for level in column.levels) not in TRUTHS:
        return as_text
    no, yes = (dialect.text(level) for level in column.levels)
    truth = f"CASE CAST({name} AS BOOLEAN) WHEN TRUE THEN {yes} WHEN FALSE THEN {no} END"
    return f"CASE WHEN LOWER(TYPEOF({name})) = 'boolean' THEN {truth} ELSE {as_text} END"


def _transformed(value: str, column: ColumnInfo, own: OwnTransforms) -> str:
    """What the model sees of a number."""
    kind = own.of[column.name].kind if column.name in own.of else "none"
    if kind == "rank":
        raise UsageError(
            "not-exportable",
            f"the column {shown(column.name)!r} is seen by its rank among the rows of the fit",
            do="Use log or none for it, or ilk assign",
        )
    return f"CASE WHEN {value} > 0 THEN LN({value}) END" if kind == "log" else value


def _without_codes(value: str, column: ColumnInfo) -> str:
    for code in column.missing_codes:
        value = f"NULLIF({value}, {number(code)})"
    return value


def _key(level: str, column: ColumnInfo, dialect: SqlDialect) -> str:
    """A level as `_read` gives it."""
    if column.type == "bool":
        return "TRUE" if level == "true" else "FALSE"
    if column.type.startswith(NUMBERS):
        return number(_number(level, column))
    return dialect.text(level)


def _number(level: str, column: ColumnInfo) -> float:
    try:
        return float(level)
    except ValueError:
        raise UsageError(
            "not-exportable",
            f"the category {shown(level)!r} of the column {shown(column.name)!r} is no number",
            do="Fit again",
        ) from None


def _zero_or_one(column: ColumnInfo, dialect: SqlDialect) -> str:
    low, high = (_key(level, column, dialect) for level in column.levels or ())
    return f"CASE {dialect.name_of(column.name)} WHEN {low} THEN 0e0 WHEN {high} THEN 1e0 END"


def _conditioned(model: Model, value: str, place: int) -> str:
    """`(value * power - centre) * factor`, digit for digit as the kernels have it."""
    encoding = model.encoding
    power = "" if encoding.power == 1 else f" * {number(encoding.power)}"
    inner = less(f"{value}{power}", float(encoding.centre[place]))
    if encoding.factor is None:
        return inner
    return f"({inner}) * {number(float(encoding.factor[place]))}"


def _treated(model: Model, treat: ColumnTransform, dialect: SqlDialect) -> TableExpressions:
    plan, numeric, coded = treat.plan, model.schema.numeric, model.schema.coded
    sources = [numeric[n.source] for n in plan.numbers]
    sources += [(coded if c.kind == "levels" else numeric)[c.source] for c in plan.categories]
    wanted = dict.fromkeys(column.name for column in sources)
    columns = {column.name: column for column in sources}
    read = tuple(
        CellExpression(dialect.name_of(name), _read(columns[name], dialect, model.transforms))
        for name in wanted
    )
    named = _numbered(plan.names)
    _tell_apart(named)
    n_numbers = len(plan.numbers)
    numbers = [
        CellExpression(
            dialect.name_of(name), _on_scale(model, n, scale, dialect.name_of(numeric[n.source].name))
        )
        for name, n, scale in zip(named[:n_numbers], plan.numbers, treat.scales, strict=True)
    ]
    found = zip(named[n_numbers:], plan.categories, sources[n_numbers:], strict=True)
    categories = [
        _category(dialect.name_of(name), category, column, dialect) for name, category, column in found
    ]
    return TableExpressions(read, tuple(numbers), tuple(categories))


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, those of a column that counts several times told apart by numbers.

    >>> _numbered(["x", "y", "x"])
    ['x', 'y', 'x (2)']
    """
    met: dict[str, int] = {}
    made = []
    for name in names:
        met[name] = met.get(name, 0) + 1
        made.append(name if met[name] == 1 else f"{name} ({met[name]})")
    return made


def _on_scale(model: Model, made: Number, scale: int, name: str) -> str:
    """A number conditioned, on its scale and standardised; a blank where it is its atom."""
    value = _conditioned(model, name, made.source)
    side, shift = SCALES[scale].side, SCALES[scale].shift
    if side != "plain":
        inside = f"LEAST(GREATEST({value}, {number(made.low)}), {number(made.high)})"
        gap = less(inside, made.low) if side == "low" else f"{number(made.high)} - {inside}"
        room = f"({gap}) / {number(made.deviation)} + {number(shift)}"
        value = f"{'' if side == 'low' else '-'}LN({room})"
    standard = f"({less(value, made.centre[scale])}) / {number(made.spread[scale])}"
    if made.atom is not None:
        return f"CASE WHEN {name} <> {number(made.atom)} THEN {standard} END"
    return standard if side == "plain" else f"CASE WHEN {name} IS NOT NULL THEN {standard} END"


def _category(name: str, category: Category, column: ColumnInfo, dialect: SqlDialect) -> CellExpression:
    """A column of levels; a level that the model does not know is a blank."""
    source = dialect.name_of(column.name)
    if category.kind == "atom":
        atom = number(category.keys[1])
        return CellExpression(
            name, f"CASE WHEN {source} = {atom} THEN 1 WHEN {source} IS NOT NULL THEN 0 END", ("0", "1")
        )
    if category.kind == "values":
        keys = tuple(number(key) for key in category.keys)
    else:
        levels = column.levels or ()
        keys = tuple(_key(levels[int(key)], column, dialect) for key in category.keys)
    known = f"CASE WHEN {source} IN ({', '.join(keys)}) THEN {source} END"
    return CellExpression(name, known, keys, category.missing_level)
