"""How names, texts and numbers are written in each dialect of SQL, so that nothing in them can act."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ilk.errors import UsageError, acts, escaped, shown


@dataclass(frozen=True)
class SqlDialect:
    """`whole_row` makes one value of all columns of the table `{}`, which `value.*` takes apart again."""

    name: str
    title: str
    mark: str  # around names
    whole_row: str

    def name_of(self, text: str) -> str:
        """A name in the quotes of the dialect.

        >>> DUCKDB.name_of("a b"), SPARK.name_of("a `b`")
        ('"a b"', '`a ``b```')
        """
        if not text or "\x00" in text or (self.name == "spark" and VARIABLE in text):
            raise _unwritable("column", text)
        return self.mark + _unicode(text, "column").replace(self.mark, 2 * self.mark) + self.mark

    def text(self, text: str) -> str:
        """A text as a literal; characters that act by their number.

        >>> DUCKDB.text("it's"), SPARK.text("it's")
        ("'it''s'", "'it\\\\'s'")
        """
        _unicode(text, "text")
        return _spark_text(text) if self.name == "spark" else _standard_text(text)

    def comment(self, text: str) -> str:
        """A line that says `text` and does nothing else.

        Spark goes on with a comment after a backslash at the end of a line, and puts the values of variables into
        comments too.
        """
        line = escaped(text)
        if self.name == "spark":
            line = line.replace(VARIABLE, "$ {")
        return f"-- {line}{' .' * line.endswith(chr(92))}\n"


VARIABLE = "${"  # Spark puts the value of a setting in its place, even inside quotes


def _unicode(text: str, what: str) -> str:
    """The text, unless it holds half of a surrogate pair, which no encoding can write."""
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise _unwritable(what, text)
    return text


def _unwritable(what: str, text: str) -> UsageError:
    return UsageError(
        "not-exportable",
        f"SQL has no way to write the {what} {shown(text)!r}",
        do="Rename it in the table and fit again",
    )


def _standard_text(text: str) -> str:
    """Standard SQL has no escapes: a control character joins as `chr(10)`."""
    parts, plain = [], ""
    for c in text:
        if acts(c):
            parts += [f"'{plain}'"] * bool(plain) + [f"chr({ord(c)})"]
            plain = ""
        else:
            plain += "''" if c == "'" else c
    parts += [f"'{plain}'"] * bool(plain or not parts)
    return parts[0] if len(parts) == 1 else "(" + " || ".join(parts) + ")"


def _spark_text(text: str) -> str:
    return "'" + "".join(_spark_character(c) for c in text) + "'"


def _spark_character(c: str) -> str:
    if c in "\\'":
        return "\\" + c
    if c != "$" and not acts(c):
        return c
    return f"\\u{ord(c):04x}" if ord(c) < 2**16 else f"\\U{ord(c):08x}"


DUCKDB = SqlDialect("duckdb", "DuckDB", '"', "{}")
SPARK = SqlDialect("spark", "Spark SQL", "`", "STRUCT({}.*)")
DIALECTS = {dialect.name: dialect for dialect in (DUCKDB, SPARK)}


def dialect_of(name: str) -> SqlDialect:
    """The dialect of a name."""
    if name.lower() not in DIALECTS:
        raise UsageError(
            "unknown-dialect", f"the dialect {shown(name)!r} is not known", do=f"Use {' or '.join(DIALECTS)}"
        )
    return DIALECTS[name.lower()]


def number(value: float) -> str:
    """A number with all its digits; the exponent says that it is a double and no decimal.

    >>> number(0.1), number(-2.0), number(1e-300), number(float("-inf"))
    ('0.1e0', '-2.0e0', '1e-300', "CAST('-Infinity' AS DOUBLE)")
    """
    value = float(value)
    if not math.isfinite(value):
        text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"CAST('{text}' AS DOUBLE)"
    text = repr(value)
    return text if "e" in text else text + "e0"


def less(expression: str, value: float) -> str:
    """`expression - value`, never two signs in a row.

    >>> less("x", 2.0), less("x", -2.0), less("x", 0.0)
    ('x - 2.0e0', 'x + 2.0e0', 'x')
    """
    if value == 0:
        return expression
    return f"{expression} - {number(value)}" if value > 0 else f"{expression} + {number(-value)}"
