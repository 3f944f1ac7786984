"""One error family: what is wrong, where, and what to do, each with a stable code."""

from __future__ import annotations

import shlex
import unicodedata
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SHOWN_CHARACTERS = 40
SHOWN_ROWS = 5


def shown(text: object, limit: int = SHOWN_CHARACTERS) -> str:
    """Text from the user's data made safe for a terminal: control and bidi characters escaped, cut at `limit`.

    >>> shown("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    start = str(text)[: limit + 1]  # the rest would be cut away
    safe = escaped(start)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def acts(character: str) -> bool:
    """Whether a character does something to a terminal or a text rather than stand in it.

    Categories C* are control, format (bidi marks, zero width), surrogate, private use and unassigned; Zl and Zp end
    lines.
    """
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")


def escaped(text: str, but: str = "") -> str:
    """Text without characters that act, `but` some: in their place stands how Python writes them.

    >>> escaped("a\\u2028b")
    'a\\\\u2028b'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in but or not acts(c) else c.encode("unicode_escape").decode() for c in text)


def listed(parts: Sequence[str]) -> str:
    """The first few of several things, and how many more there are.

    >>> listed(list("abcdefg"))
    'a, b, c, d, e and 2 more'
    """
    more = f" and {len(parts) - SHOWN_ROWS} more" if len(parts) > SHOWN_ROWS else ""
    return ", ".join(parts[:SHOWN_ROWS]) + more


def often(number: float) -> str:
    """How many times, in words.

    >>> often(1), often(1200), often(2.5)
    ('once', '1,200 times', '2.5 times')
    """
    return "once" if number == 1 else f"{number:,} times" if isinstance(number, int) else f"{number:g} times"


def names_shown(names: Iterable[object]) -> str:
    """Names from the user's data in quotes: the first few, and how many more there are."""
    return listed([repr(shown(name)) for name in names])


def meant(name: object, known: Iterable[str]) -> list[str]:
    """Of the names that are known, at most three that one may have meant, whatever the case of its letters.

    >>> meant("customer id", ["Customer ID", "Custom", "Zip"])
    ['Customer ID', 'Custom']
    """
    import difflib

    names = list(known)
    low = [one.casefold() for one in names]
    near = difflib.get_close_matches(str(name).casefold(), low, 3)
    return list(
        dict.fromkeys(own for one in near for own, other in zip(names, low, strict=True) if other == one)
    )[:3]


def rows_shown(rows: Sequence[int]) -> str:
    """The first few row numbers and how many there are: `rows 3, 7, 9 (3 in all)`."""
    first = ", ".join(str(int(r)) for r in rows[:SHOWN_ROWS])
    more = ", …" if len(rows) > SHOWN_ROWS else ""
    return f"rows {first}{more} ({len(rows)} in all)"


@dataclass(frozen=True)
class Option:
    """An argument with its value, as a text names it: in Python, and as it is typed on a command line.

    >>> for option in Option("k", range(1, 19)), Option("types", {"year": "categorical"}), Option("max_rejects", 2):
    ...     print(option, "|", option.typed())
    k=range(1, 19) | --k 1..18
    types={"year": "categorical"} | --types year=categorical
    max_rejects=2 | --max-rejects 2
    """

    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.name}={_python(self.value)}"

    def typed(self) -> str:
        """The option of the command line; one that takes one value a time is repeated."""
        flag = f"--{self.name.replace('_', '-')}"
        return " ".join(f"{flag} {quoted(text)}" for text in _typed(self.value))

    def to_dict(self) -> dict[str, str]:
        """Plain data for `summary.json`: both spellings."""
        return {"python": str(self), "command_line": self.typed()}


def _python(value: Any) -> str:
    """A value as Python has it, texts in the quotes that our examples have."""
    if isinstance(value, str):
        return repr(value) if '"' in value or "'" in value else f'"{repr(value)[1:-1]}"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_python(key)}: {_python(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_python, value)) + "]"
    return repr(value)


def _typed(value: Any) -> list[str]:
    """What is typed for a value, once for every time that the option is to be given."""
    if isinstance(value, range) and len(value):
        return [f"{value[0]}..{value[-1]}"]
    if isinstance(value, Mapping):  # an order of categories is given in a file
        return [f"{key}={kind}" if isinstance(kind, str) else "FILE" for key, kind in value.items()]
    if isinstance(value, (list, tuple)) and value:
        return [str(one) for one in value]
    return ["none" if value is None else str(value)]


def quoted(text: str) -> str:
    """A name as it is typed in a shell.

    >>> print(quoted("a.csv"), quoted("it's"))
    a.csv 'it'"'"'s'
    """
    plain = bool(text) and all(c.isalnum() or c in "_./+-=" for c in text)
    return text if plain else shlex.quote(text)


def spelled(text: str, pairs: Iterable[tuple[str, str]]) -> str:
    """The text with one spelling in the place of another, each read once and the longer first.

    >>> spelled("k=18 or k=1", [("k=1", "--k 1"), ("k=18", "--k 18")])
    '--k 18 or --k 1'
    """
    known = sorted((pair for pair in pairs if pair[0]), key=lambda pair: -len(pair[0]))
    parts, at = list[str](), 0
    while at < len(text):
        old, new = next((pair for pair in known if text.startswith(pair[0], at)), (text[at], text[at]))
        parts.append(new)
        at += len(old)
    return "".join(parts)


def typed(text: str, options: Iterable[Option]) -> str:
    """The text with its options as they are typed on a command line."""
    return spelled(text, [(str(option), option.typed()) for option in options])


class Caution(tuple[str, str]):
    """A warning as plain data: a stable code and a text, with the options that the text names.

    >>> code, text = Caution("k-at-limit", "try k=9", [Option("k", 9)])
    """

    options: tuple[Option, ...]

    def __new__(cls, code: str, text: str, options: Sequence[Option] = ()) -> Caution:
        made = super().__new__(cls, (code, text))
        made.options = tuple(options)
        return made

    def __getnewargs__(self) -> Any:
        """Cautions of workers travel."""
        return (*self, self.options)

    def warn(self, depth: int = 3) -> None:
        """Issue it as a warning, attributed to the caller of the function that warns."""
        warnings.warn(IlkWarning(*self, options=self.options), stacklevel=depth)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `summary.json`."""
        code, text = self
        return {"code": code, "text": text, "options": [option.to_dict() for option in self.options]}


class IlkError(Exception):
    """A refusal: what is wrong, where, and how to fix it.

    Parameters
    ----------
    code : str
        Stable and machine-readable name of the refusal.
    what : str
        What is wrong.
    where : str, default=""
        File, column or rows.
    do : str, default=""
        What to do about it.
    options : sequence of Option, default=()
        The arguments that the texts name.

    Attributes
    ----------
    code : str
        Stable and machine-readable name of the refusal.
    what : str
        What is wrong.
    where : str
        File, column or rows; empty where there is nothing to point at.
    do : str
        What to do about it.
    options : tuple of Option
        The arguments that the texts name; `typed()` of each is its spelling on a command line.
    exit_code : int
        What the command line returns.

    See Also
    --------
    IlkWarning : A result with a caution.

    Examples
    --------
    >>> import ilk
    >>> try:
    ...     ilk.KMeans(0).fit([[1.0]])
    ... except ilk.errors.IlkError as error:
    ...     print(error.code)
    bad-n_clusters
    """

    exit_code = 1

    def __init__(
        self, code: str, what: str, *, where: str = "", do: str = "", options: Sequence[Option] = ()
    ) -> None:
        self.code, self.what, self.where, self.do = code, what, where, do
        self.options = tuple(options)
        text = what + (f" ({where})" if where else "") + "."
        super().__init__(text + (f" {do}{'' if do.endswith('?') else '.'}" if do else ""))

    def __reduce__(self) -> Any:
        """Errors of workers travel."""
        return _arrived, (type(self), (self.code, self.what), self.where, self.do, self.options)


def _arrived(
    kind: type[IlkError], texts: tuple[str, str], where: str, do: str, options: Sequence[Option]
) -> IlkError:
    """An error as it was raised elsewhere, whatever its class is made of."""
    error = kind.__new__(kind)
    IlkError.__init__(error, *texts, where=where, do=do, options=options)
    return error


class UsageError(IlkError, ValueError):
    """An argument that is not valid."""

    exit_code = 2


class DataError(IlkError, ValueError):
    """A table that cannot be clustered as it is."""

    exit_code = 3


class NoModelError(IlkError, ValueError):
    """No model could be fitted, or a requested condition failed."""

    exit_code = 4


class ResourceError(IlkError, RuntimeError):
    """Memory, time or disk ran out."""

    exit_code = 5


class ModelFileError(IlkError, ValueError):
    """A file that is not a model of ours, or a damaged one."""

    exit_code = 6


class EngineError(IlkError, RuntimeError):
    """Workers of Spark, Dask or Ray were lost."""

    exit_code = 7


class IlkWarning(UserWarning):
    """A result with a caution.

    Parameters
    ----------
    code : str
        Stable and machine-readable name of the caution.
    text : str
        What to beware of.
    options : sequence of Option, default=()
        The arguments that the text names.

    Attributes
    ----------
    code : str
        Stable and machine-readable name of the caution.
    text : str
        What to beware of.
    options : tuple of Option
        The arguments that the text names.

    See Also
    --------
    IlkError : A refusal.

    Examples
    --------
    >>> import ilk, warnings
    >>> with warnings.catch_warnings(record=True) as made:
    ...     warnings.simplefilter("always")
    ...     model = ilk.KMeans(2, max_iter=0, init="random", random_state=0).fit([[1.0, 2], [3, 5], [6, 1]])
    >>> made[0].message.code
    'not-converged'
    """

    def __init__(self, code: str, text: str, options: Sequence[Option] = ()) -> None:
        self.code, self.text, self.options = code, text, tuple(options)
        super().__init__(text)

    def __reduce__(self) -> Any:
        """Warnings of workers travel."""
        return type(self), (self.code, self.text, self.options)


def warn(code: str, text: str, *, depth: int = 3) -> None:
    """Issue a coded warning, attributed to the caller of the function that warns."""
    warnings.warn(IlkWarning(code, text), stacklevel=depth)


def recorded(made: Iterable[Any]) -> list[Caution]:
    """Coded warnings caught by `warnings.catch_warnings(record=True)`, as plain data."""
    return [
        Caution(w.message.code, w.message.text, w.message.options)
        for w in made
        if isinstance(w.message, IlkWarning)
    ]
