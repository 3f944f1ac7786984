"""One error family: what is wrong, where, and what to do, each with a stable code."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
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


def rows_shown(rows: Sequence[int]) -> str:
    """The first few row numbers and how many there are: `rows 3, 7, 9 (3 in all)`."""
    first = ", ".join(str(int(r)) for r in rows[:SHOWN_ROWS])
    more = ", …" if len(rows) > SHOWN_ROWS else ""
    return f"rows {first}{more} ({len(rows)} in all)"


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

    def __init__(self, code: str, what: str, *, where: str = "", do: str = "") -> None:
        self.code, self.what, self.where, self.do = code, what, where, do
        text = what + (f" ({where})" if where else "") + "."
        super().__init__(text + (f" {do}{'' if do.endswith('?') else '.'}" if do else ""))

    def __reduce__(self) -> Any:
        """Errors of workers travel."""
        return partial(type(self), where=self.where, do=self.do), (self.code, self.what)


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

    Attributes
    ----------
    code : str
        Stable and machine-readable name of the caution.
    text : str
        What to beware of.

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

    def __init__(self, code: str, text: str) -> None:
        self.code, self.text = code, text
        super().__init__(text)


def warn(code: str, text: str, *, depth: int = 3) -> None:
    """Issue a coded warning, attributed to the caller of the function that warns."""
    warnings.warn(IlkWarning(code, text), stacklevel=depth)


def recorded(made: Iterable[Any]) -> list[tuple[str, str]]:
    """Coded warnings caught by `warnings.catch_warnings(record=True)`, as plain data."""
    return [(w.message.code, w.message.text) for w in made if isinstance(w.message, IlkWarning)]
