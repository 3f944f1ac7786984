"""Every number on the page comes from `summary.json`.

Two things would show one that came by another way. Made in a process that has the file and nothing else, the page
would lack it. And it would stand still while every number of the summary moves: what stands still must be a word of
the page itself ("the middle 80%"), or count the groups.
"""

from __future__ import annotations

import ast
import html
import inspect
import itertools
import json
import re
import subprocess
import sys
from difflib import SequenceMatcher
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pytest

import ilk
from ilk.analysis.run_folder import write_run
from ilk.report import page as page_module
from ilk.report.page import page
from ilk.report.view import WORDS, word
from tests.report.hostile import FIXED

NUMBER = re.compile(rf"\d[\d,.]*\d|\d|\b(?:{'|'.join(WORDS[1:])})\b", re.IGNORECASE)
TOLD = ("title", "aria-label", "data-tip", "placeholder")  # attributes that a reader gets to see
CHANGES = (  # of the i-th number of its kind; the second keeps the order, so that nothing else moves about
    lambda value, i: value + 1 + i % 3 if isinstance(value, int) else value * (1.13 + 0.1 * (i % 5)) + 0.007,
    lambda value, i: 2 * value + 3 if isinstance(value, int) else value * 0.87 + 0.011,
    lambda value, i: max(value - 1, 0) if isinstance(value, int) else value * (0.9 - 0.01 * (i % 3)),
)


HIDDEN = re.compile(r"<(script|style)[ >].*?</\1>", re.DOTALL)
TEXT = re.compile(rf'>([^<]+)|(?:{"|".join(TOLD)})="([^"]*)"')


def texts(summary):
    """The pieces of text with a number that a reader of the page gets to see, labels of charts and tips among them."""
    seen = (html.unescape(text or tip) for text, tip in TEXT.findall(HIDDEN.sub("", page(summary))))
    return [text for text in seen if NUMBER.search(text)]


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def kinds_of(value, wanted, path=()):
    """Where such values stand in the document, the entries of a list at one place."""
    if wanted(value):
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from kinds_of(item, wanted, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from kinds_of(item, wanted, (*path, "*"))


def is_list(value):
    return isinstance(value, list) and bool(value)


def changed(value, kind, change, counter=None):
    """The document with the numbers of one kind changed."""
    counter = counter or itertools.count()
    if not kind:
        return change(value, next(counter)) if is_number(value) else value
    if isinstance(value, dict):
        return {k: changed(v, kind[1:], change, counter) if k == kind[0] else v for k, v in value.items()}
    if isinstance(value, list):
        return [changed(item, kind[1:], change, counter) for item in value]
    return value


def respelt(value, key=None):
    """The document with other digits in all its strings."""
    if isinstance(value, dict):
        return {other_digits(k): respelt(item, k) for k, item in value.items()}
    if isinstance(value, list):
        return [respelt(item, key) for item in value]
    return other_digits(value) if isinstance(value, str) and key not in FIXED else value


def other_digits(text):
    return re.sub(r"[0-9]", lambda digit: str((int(digit[0]) + 3) % 10), text)


def shortened(value, kind):
    """The document without the last entry of the lists of one kind."""
    if not kind:
        return value[:-1] if isinstance(value, list) else value
    if isinstance(value, dict):
        return {k: shortened(v, kind[1:]) if k == kind[0] else v for k, v in value.items()}
    return [shortened(item, kind[1:]) for item in value] if isinstance(value, list) else value


def others(summary):
    """The summary with other strings, with other numbers and with shorter lists: of one kind in each of its parts at
    a time, then kind by kind, since one part that cannot be told hides what else moves."""
    yield respelt(summary)
    ways = [partial(changed, change=change) for change in CHANGES]
    for way, wanted in [*itertools.product(ways, [is_number]), (shortened, is_list)]:
        kinds = [[*dict.fromkeys(kinds_of({key: part}, wanted))] for key, part in summary.items()]
        for together in itertools.zip_longest(*kinds):
            yield reduce(way, filter(None, together), summary)
    for way, wanted in [(shortened, is_list), *itertools.product(ways, [is_number])]:
        for kind in dict.fromkeys(kinds_of(summary, wanted)):
            yield way(summary, kind)


def moved(before, after):
    """The numbers (text, place in it) of `before` that are others in `after`; texts correspond if their
    words do, in the singular or the plural."""
    masks = [[re.sub(r"s\b", "", NUMBER.sub("#", text)) for text in side] for side in (before, after)]
    if masks[0] == masks[1]:
        pairs = [(i, i) for i in range(len(before))]
    else:
        blocks = SequenceMatcher(None, *masks, autojunk=False).get_matching_blocks()
        pairs = [(i + n, j + n) for i, j, size in blocks for n in range(size)]
    return {
        (i, place)
        for i, j in pairs
        if before[i] != after[j]
        for place, (old, new) in enumerate(
            zip(NUMBER.findall(before[i]), NUMBER.findall(after[j]), strict=True)
        )
        if old != new
    }


def unexplained(summary):
    """The numbers of the page that no change of the summary moves and that are not its own."""
    before, words, n_groups = texts(summary), own_words(), len(summary["groups"])
    numbers = [
        (i, place, match)
        for i, text in enumerate(before)
        for place, match in enumerate(NUMBER.finditer(text))
    ]
    assert len(numbers) > 200
    left = {(i, place) for i, place, match in numbers if not is_own(before[i], match, words, n_groups)}
    for other in others(summary):
        if not left:
            break
        try:
            after = texts(other)
        except (IndexError, KeyError, ValueError, TypeError, ZeroDivisionError):
            continue  # it names groups that are not there: no such summary is written
        left -= moved(before, after)
    return [before[i] for i, _ in sorted(left)]


def own_words():
    """The strings with digits in the source of the page: its own words."""
    folder = Path(inspect.getfile(page_module)).parent
    files = [folder / "page.py", folder / "view.py", folder / "html.py", *folder.glob("blocks/*.py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    found = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {text.strip() for text in found if NUMBER.search(text) and re.search("[a-z]{3}", text)}


def is_own(text, number, words, n_groups):
    """Whether a number is one of the page's own words, the mark of a block or an axis, or counts the groups."""
    first = [text.find(own) for own in words]
    if any(at >= 0 and at <= number.start() < at + len(own) for at, own in zip(first, words, strict=True)):
        return True
    return text in MARKS or number[0].lower() in (str(n_groups), word(n_groups))


MARKS = frozenset(  # of the blocks, round numbers along an axis, and how far the best is behind itself
    [*"0123456789", "0.2", "0.4", "0.6", "0.8", "+1", "+10", "0.0"]
)


@pytest.fixture(scope="module")
def small():
    """Three groups in two numbers and a category, with names of the rows, classes and blanks."""
    draws = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], [17, 15, 13])
    x = 8.3 * group + draws.normal(size=45)
    x[5] = np.nan
    table = {
        "who": [f"row {i}" for i in range(45)],
        "x": x,
        "y": 61.7 * (group == 1) + 9.1 * draws.normal(size=45),
        "colour": np.where(draws.random(45) < 0.8, np.array(["red", "blue", "green"])[group], "grey"),
        "class": np.array(["p", "q", "r"])[group],
    }
    return ilk.cluster(table, id="who", truth="class", threads=1)


def test_a_process_that_has_the_summary_alone_makes_the_same_page(small, tmp_path):
    """The page of a run to the byte, from `summary.json` in another folder; it says nothing of its own size."""
    write_run(small, str(tmp_path / "run"))
    (tmp_path / "alone").mkdir()
    (tmp_path / "run" / "summary.json").rename(tmp_path / "alone" / "summary.json")
    source = (
        "import json, sys; from ilk.report.page import page; summary = json.load(open('summary.json'));"
        "del summary['sizes']; sys.stdout.buffer.write(page(summary).encode())"
    )
    made = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path / "alone", capture_output=True, check=True
    )
    assert made.stdout == (tmp_path / "run" / "report.html").read_bytes()


def test_every_number_on_the_page_moves_with_the_summary(small, monkeypatch):
    monkeypatch.setattr(page_module, "embedded", lambda _: "")  # the summary once more, unseen
    summary = json.loads(json.dumps(small.summary()))
    summary["seconds"] = summary["search"]["seconds"] = (
        12.3  # few tenths stay the same tenths when changed a little
    )
    assert unexplained(summary) == []
