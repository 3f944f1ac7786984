"""Markup that is safe by construction: text is escaped unless it is `Html`, and only `tag` makes `Html`.

Attributes are escaped too, and none of them can hold a script or a style: the page's policy forbids both, and
`tag` refuses them.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

NAME_CHARACTERS = 40
COLOURS = 6  # of groups that everybody can tell apart
VOID = frozenset({"meta", "input", "br", "wbr", "link"})


class Html(str):
    """Markup. Joining it with plain text by hand gives plain text again, which `tag` escapes."""

    __slots__ = ()


def escape(text: object) -> Html:
    """Text as markup: the five special characters as entities, control and bidi characters shown as escapes.

    >>> escape("<b a='1'>")
    '&lt;b a=&#x27;1&#x27;&gt;'
    """
    safe = str(text)
    if (
        not safe.isprintable()
    ):  # asked of the whole first: character by character takes a third of the time of a page
        safe = "".join(c if _printable(c) else c.encode("unicode_escape").decode() for c in safe)
    return Html(html.escape(safe, quote=True))


def _printable(character: str) -> bool:
    """Whether a character may stand in the page: no control, format, surrogate or private one."""
    return character == "\n" or unicodedata.category(character)[0] != "C"


def tag(element: str, /, *children: Any, **attributes: Any) -> Html:
    """An element. `class_` and `for_` lose their last character, other underscores become hyphens.

    >>> tag("a", "x < y", class_="n", href="#s1", data_sort=None)
    '<a class="n" href="#s1">x &lt; y</a>'
    """
    written = [element]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if key == "style" or key.startswith("on"):
            raise ValueError(f"the policy of the page forbids the attribute {key}")
        if value is not None and value is not False:
            written.append(f'{key}="{escape(value)}"')
    head = f"<{' '.join(written)}>"
    return Html(head if element in VOID else f"{head}{join(children)}</{element}>")


def join(parts: Iterable[Any], between: str = "") -> Html:
    """Parts one after the other; lists are flattened, None is nothing."""
    return Html(escape(between).join(_flat(parts)))


def _flat(parts: Iterable[Any]) -> Iterable[str]:
    for part in parts:
        if part is None:
            continue
        if isinstance(part, Html):
            yield part
        elif isinstance(part, (list, tuple)) or (isinstance(part, Iterable) and not isinstance(part, str)):
            yield from _flat(part)
        else:
            yield escape(part)


def name(text: object, most: int = NAME_CHARACTERS) -> Html:
    """A name from the user's table: cut at `most` with the whole in its title, free to break at _ . - and /."""
    whole = str(text)
    short = whole if len(whole) <= most else whole[: most - 1] + "…"
    parts = re.split(r"(?<=[_.\-/])", short)
    broken = Html("<wbr>".join(escape(part) for part in parts))
    return tag(
        "span", broken if short.strip() else "(no name)", dir="auto", title=whole if short != whole else None
    )


def chip(letter: str, number: int, extra: str = "") -> Html:
    """The mark of a group: its letter on its colour."""
    return tag("span", letter, class_=f"chip {group_class(number)}{extra and ' ' + extra}")


def group_class(number: int) -> str:
    """The class that gives a group its colour; where the colour is there already, with a second border."""
    return f"g{number % COLOURS}" + (" again" if number >= COLOURS else "")


def fold(title: str, *children: Any, class_: str = "nums") -> Html:
    """What opens at a click: the numbers behind a chart."""
    return tag("details", tag("summary", title), children, class_=class_)


def table(
    heads: Iterable[Any],
    lines: Iterable[Iterable[Any]],
    *,
    numeric: Iterable[int] = (),
    label: str,
    sort: bool = False,
    class_: str = "",
    tall: bool = False,
) -> Html:
    """A table in a box that scrolls by itself. A cell may be text, `Html`, or (content, attributes)."""
    right = set(numeric)
    head = [
        tag(
            "th",
            tag("button", h, type="button") if sort else h,
            scope="col",
            class_="n" if j in right else None,
        )
        for j, h in enumerate(heads)
    ]
    body = [tag("tr", [_cell(cell, j in right) for j, cell in enumerate(line)]) for line in lines]
    classes = " ".join(part for part in (class_, "sortable" if sort else "") if part)
    made = tag("table", tag("thead", tag("tr", head)), tag("tbody", body), class_=classes or None)
    box = "box tall" if tall else "box"
    return tag("div", made, class_=box, tabindex="0", role="region", aria_label=label)


def _cell(cell: Any, right: bool) -> Html:
    attributes: dict[str, Any] = {}
    if isinstance(cell, tuple):
        cell, attributes = cell
    classes = " ".join(part for part in ("n" if right else "", attributes.pop("class_", "")) if part)
    return tag("td", cell, class_=classes or None, **attributes)


def section(number: int, title: str, *children: Any) -> Html:
    """A block of the page."""
    head = tag("h2", tag("span", number, class_="no"), title)
    return tag("section", head, children, id=f"s{number}")


def figure(title: Any, caption: Any, *children: Any) -> Html:
    """A chart under its title and one sentence of how to read it."""
    return tag("figure", tag("h3", title), tag("p", caption, class_="cap") if caption else None, children)
