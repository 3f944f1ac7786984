"""Docstrings with shared entries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ilk.documented import documented
from ilk.estimators import texts as of_estimators
from ilk.measures import texts as of_measures

TEXTS = {
    "size": ("int", "How many."),
    "size/rows": ("int", "How many rows."),
    "size_": ("int", "How many there were."),
    "words": ("str", "A text. " * 20),
}


@documented(TEXTS)
class Box:
    """A box.

    Parameters
    ----------
    {size}
    own : str, default="x"
        {not an entry}, {"a": 1}
    {words}

    Attributes
    ----------
    {size_}
    """

    def __init__(self, size: int = 3, own: str = "x", *, words: str) -> None: ...

    def open(self, size: float | None = None) -> None:
        """Open it.

        Parameters
        ----------
        {size/rows}
        """

    @property
    def wide(self) -> bool:
        """{size}"""
        return True


def test_entries_are_filled_in_with_their_defaults():
    assert "    size : int, default=3\n        How many.\n    own" in Box.__doc__
    assert '        {not an entry}, {"a": 1}\n    words : str\n        A text. A text.' in Box.__doc__
    assert "    size_ : int\n        How many there were.\n" in Box.__doc__
    assert "        size : int, default=None\n            How many rows.\n" in Box.open.__doc__
    assert max(map(len, Box.__doc__.splitlines())) <= 110


def test_an_entry_that_is_not_there_is_an_error():
    def nothing(size: int) -> None:
        """{weight}"""

    with pytest.raises(KeyError):
        documented(TEXTS)(nothing)


def test_a_function_without_a_docstring_stays_as_it_is():
    def nothing() -> None: ...

    assert documented(TEXTS)(nothing).__doc__ is None


@pytest.mark.parametrize("texts", [of_estimators, of_measures])
def test_every_entry_is_used(texts):
    folder = Path(texts.__file__).parent
    source = "".join(
        path.read_text(encoding="utf-8") for path in folder.glob("*.py") if path.name != "texts.py"
    )
    entries = {k for name in ("PARAMETERS", "ATTRIBUTES", "ARGUMENTS") for k in getattr(texts, name, {})}
    assert sorted(entries - set(re.findall(r"\{([\w/]+)\}", source))) == []
