"""Docstrings with shared entries: a line `{n_init}` becomes the whole entry of that name, with its default.

Entries that many classes share are written once, in a table of (type, text) by name; `{init/centres}` takes a variant
of the entry `init`. Nothing happens where docstrings are stripped.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from textwrap import fill, indent
from typing import Any, TypeVar

Texts = Mapping[str, tuple[str, str]]
Documented = TypeVar("Documented")

WIDTH = 100
_LINE = re.compile(r"^( *)(\{[\w/]+\}(?: \{[\w/]+\})*)$", flags=re.MULTILINE)


def documented(texts: Texts) -> Callable[[Documented], Documented]:
    """A decorator that fills the docstring of a function, or of a class and its methods."""

    def filled(made: Documented) -> Documented:
        for part in _parts(made):
            if part.__doc__:
                part.__doc__ = _filled(part.__doc__, _defaults(part), texts)
        return made

    return filled


def shown_default(value: object) -> str:
    """A default as numpydoc writes it.

    >>> shown_default("auto"), shown_default(None)
    ('"auto"', 'None')
    """
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _parts(made: Any) -> Iterator[Any]:
    """A class and the functions it defines, or a function."""
    yield made
    if inspect.isclass(made):
        for part in vars(made).values():
            part = getattr(part, "__func__", part)
            if inspect.isfunction(part) or isinstance(part, property):
                yield part


def _defaults(part: Any) -> dict[str, str]:
    if isinstance(part, property):
        return {}
    every = inspect.signature(part).parameters.values()
    return {p.name: shown_default(p.default) for p in every if p.default is not inspect.Parameter.empty}


def _filled(doc: str, defaults: Mapping[str, str], texts: Texts) -> str:
    def entries(found: re.Match[str]) -> str:
        keys = re.findall(r"[\w/]+", found[2])
        return indent("\n".join(_entry(key, defaults, texts) for key in keys), found[1])

    return _LINE.sub(entries, doc)


def _entry(key: str, defaults: Mapping[str, str], texts: Texts) -> str:
    name = key.partition("/")[0]
    kind, text = texts[key]
    default = f", default={defaults[name]}" if name in defaults else ""
    wrapped = fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return f"{name} : {kind}{default}\n{indent(wrapped, '    ')}"
