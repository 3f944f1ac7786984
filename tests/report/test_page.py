"""The page as a document: safe, self-contained, whole, of bounded size; no browser is needed here."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import ilk
from ilk.report import page as page_module
from ilk.report.explanation import without_rows
from ilk.report.html import Html, tag
from ilk.report.notebook import fragment
from ilk.report.page import embedded, page
from tests.report.hostile import FIXED, MARK, strings

SCHEMA = json.loads((Path(page_module.__file__).parent / "summary.schema.json").read_text(encoding="utf-8"))
KNOWN = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "div",
        "span",
        "b",
        "i",
        "p",
        "h1",
        "h2",
        "h3",
        "nav",
        "ol",
        "ul",
        "li",
        "main",
        "section",
        "article",
        "header",
        "footer",
        "figure",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "button",
        "input",
        "label",
        "details",
        "summary",
        "small",
        "code",
        "pre",
        "dl",
        "dt",
        "dd",
        "script",
        "svg",
        "g",
        "rect",
        "path",
        "circle",
        "ellipse",
        "text",
        "wbr",
    ]
)


class Reader(HTMLParser):
    """What a page is made of: elements, attributes, scripts, text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.bodies, self.words, self.open = [], [], {}, [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, name, attributes):
        self.elements.append(name)
        self.attributes += [(name, key, value) for key, value in attributes]
        if name not in ("meta", "input", "wbr"):
            self.open.append(name)
            self.bodies.setdefault(name, []).append("")

    def handle_endtag(self, name):
        assert self.open.pop() == name, f"</{name}> closes nothing"

    def handle_data(self, text):
        if self.open and self.open[-1] in ("script", "style"):
            self.bodies[self.open[-1]][-1] += text
        else:
            self.words.append(text)


def read(text):
    """Read a page and hold it against all that every page keeps."""
    reader = Reader(text)
    assert not reader.open
    assert set(reader.elements) <= KNOWN
    for name, key, value in reader.attributes:
        assert not key.startswith("on"), (name, key)
        assert key not in ("style", "src", "srcset", "action", "formaction", "xlink:href"), (name, key)
        if key == "href":
            assert re.fullmatch(r"#[a-z]\w*", value)
    assert len(reader.bodies["script"]) == 2
    assert len(reader.bodies["style"]) == 1
    assert "http-equiv" in {key for _, key, _ in reader.attributes}
    return reader


def policy_of(reader):
    return next(v for _, k, v in reader.attributes if k == "content" and "default-src" in v)


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@pytest.mark.parametrize("which", ["penguins", "wine", "cloud"])
def test_the_policy_allows_our_style_and_script_alone(which, request):
    reader = read(page(request.getfixturevalue(which).summary()))
    data, script = reader.bodies["script"]
    rules = dict(part.strip().split(" ", 1) for part in policy_of(reader).split(";"))
    assert rules == {
        "default-src": "'none'", "script-src": hash_of(script), "style-src": hash_of(reader.bodies["style"][0]),
        "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip
    assert len(script.encode()) <= 25_000
    assert not re.search(
        r"https?:|url\(|@import|fetch|XMLHttp|eval|innerHTML", script + reader.bodies["style"][0]
    )
    assert json.loads(data)["schema"] == "ilk-summary"


@pytest.mark.parametrize("which", ["penguins", "wine", "cloud"])
@pytest.mark.parametrize("rows", [True, False])
def test_the_summary_keeps_its_schema(which, rows, request):
    summary = request.getfixturevalue(which).summary()
    jsonschema.validate(summary if rows else without_rows(summary), SCHEMA)
    assert json.loads(embedded(summary)).keys() == summary.keys()


def test_a_broken_summary_is_noticed(penguins):
    summary = penguins.summary()
    summary["groups"][0]["rule"]["terms"] = []
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(summary, SCHEMA)


@pytest.mark.parametrize("which", ["penguins", "wine", "cloud"])
def test_all_nine_blocks_are_there(which, request):
    reader = read(page(request.getfixturevalue(which).summary()))
    ids = [v for _, k, v in reader.attributes if k == "id"]
    assert [f"s{i}" for i in range(1, 10)] == [i for i in ids if re.fullmatch(r"s\d", i)]
    assert len(ids) == len(set(ids))
    links = {v for _, k, v in reader.attributes if k == "href"}
    assert {link[1:] for link in links} <= set(ids)


def test_every_figure_of_the_cards_is_in_the_summary(penguins):
    """A number changed in the summary changes in the page: nothing is computed elsewhere."""
    summary = penguins.summary()
    summary["groups"][0]["facts"][0]["value"] = 98765.0
    summary["groups"][0]["rule"]["purity"] = 0.4321
    summary["groups"][2]["name"] = "a name of ours"
    words = " ".join(read(page(summary)).words)
    assert "98,765" in words
    assert "43%" in words
    assert "a name of ours" in words


def test_an_answer_of_no_groups(cloud):
    words = " ".join(read(page(cloud.summary())).words)
    assert "No clear groups in 200 rows" in words
    assert "Typical and border rows" not in words


def test_what_an_interrupt_left_unmeasured_is_not_called_unstable(wine):
    summary = wine.summary()
    summary["interrupted"] = True
    summary["verdict"].update(
        word="not tested", stability_min=None, reasons=[{"code": "not-tested", "text": "x"}]
    )
    summary["row_counts"].update(examined=50, uncertain=3)
    for group in summary["groups"]:
        group["stability"] = None
    words = " ".join(read(page(summary)).words)
    assert "Not tested: the run was interrupted" in words
    assert "47 of 50 rows that were examined belong to their group" in words


def test_trust_is_shown_when_it_is_there(wine):
    """Separation, stability and merges come from the summary; without them the page does as well."""
    summary = wine.summary()
    letters = [g["letter"] for g in summary["groups"]]
    k = len(letters)
    summary["verdict"].update(
        word="fair", separation=0.47, icl_k=k, stability_min=0.48, stability_mean=0.8, components=k + 1,
        sentence="fair: A and B are not clearly separated (separation 0.47)",
    )  # fmt: skip
    summary["chosen"]["components"] = k + 1
    summary["merge"] = {
        "threshold": 0.4,
        "path": [{"groups": k + 1, "separation": 0.31}, {"groups": k, "separation": 0.47}],
        "separations": [[None if i == j else 0.3 + 0.2 * (i + j) for j in range(k)] for i in range(k)],
        "weakest": {"pair": [0, 1], "edges": [0, 1, 2, 3], "counts_a": [5, 3, 0], "counts_b": [0, 2, 6]},
    }  # fmt: skip
    for group in summary["groups"]:
        group.update(stability=0.48, nearest={"group": "A", "separation": 0.47})
    words = " ".join(read(page(summary)).words)
    for text in (
        "A and B are not clearly separated",
        "Lowest stability",
        "The two least separated groups",
        "From components to groups",
        "0.48",
        "Dissolves in resamples: do not build on this group",
        f"leaves {k} groups",
    ):
        assert text in words, text


def test_segments_of_one_cloud_are_told_as_such(wine):
    summary = wine.summary()
    k = len(summary["groups"])
    summary["chosen"].update(k=1, components=k)
    summary["verdict"].update(
        word="no clear groups", sentence="the table looks like a single group", separation=None
    )
    summary["merge"] = {
        "threshold": 0.4,
        "path": [{"groups": 2, "separation": 0.21}],
        "separations": None,
        "weakest": None,
    }
    words = " ".join(read(page(summary)).words)
    for text in (
        "No clear groups",
        "The segments, one by one",
        "arbitrary segments, not distinct groups",
        "leaves 1 group",
        "last two components",
    ):
        assert text in words, text


def test_one_group_beside_which_nothing_was_tried_is_not_told_as_found():
    found = ilk.cluster({"x": [0.0, 1.0, 2.0, 9.0, 10.0, 11.0] * 5}, k=1)
    words = " ".join(read(page(found.summary())).words)
    assert "Not tested" in words
    assert "30 rows as one group" in words
    assert "no other number of groups was tried" in words.lower()
    assert "No clear groups in" not in words


def hostile_result():
    texts = strings()
    draws = np.random.default_rng(0)
    n = len(texts)
    group = np.arange(n) % 2
    table = {texts[i] or f"empty {i}": draws.normal(size=n) + 5 * group for i in range(6)}
    table["all " + texts[6]] = texts
    table[texts[7]] = [
        texts[8 + (int(g) + int(r)) % 3] for g, r in zip(group, draws.integers(0, 2, n), strict=True)
    ]
    table[texts[12]] = np.where(group, texts[1], texts[2])
    return ilk.cluster(table, k=2, id="all " + texts[6], truth=texts[12])


@pytest.fixture(scope="session")
def hostile():
    """Hostile names, levels and ids."""
    return hostile_result()


def poisoned(value, texts):
    """The document with every free string replaced by a hostile one."""
    if isinstance(value, dict):
        return {k: v if k in FIXED or k == "options" else poisoned(v, texts) for k, v in value.items()}
    if isinstance(value, list):
        return [poisoned(v, texts) for v in value]
    return next(texts) if isinstance(value, str) else value


def test_hostile_names_levels_and_ids_are_text(hostile):
    reader = read(page(hostile.summary()))
    assert MARK not in "".join(
        v or "" for _, k, v in reader.attributes if k not in ("title", "data-tip", "data-name", "aria-label")
    )
    script = reader.bodies["script"][1]
    assert MARK not in script
    assert MARK not in reader.bodies["style"][0]


@pytest.mark.parametrize("text", strings())
def test_a_hostile_string_is_the_text_it_is(text):
    reader = Reader(tag("p", text, title=text))
    shown = "".join(reader.words)
    printable = "".join(c if c == "\n" or c.isprintable() or c == " " else "" for c in text)
    assert reader.elements == ["p"]
    assert len(shown) >= len(printable)
    assert "<script" not in tag("p", text, title=text)


def test_a_hostile_source_and_hostile_strings_everywhere(hostile):
    """File name, reasons, sentences, commands: every string of the summary that is free."""
    summary = hostile.summary()
    columns = json.dumps(summary["profile"])
    texts = iter(strings() * 1000)
    for key in ("source", "warnings", "truth", "reproduce", "ilk", "rows"):
        summary[key] = poisoned(summary[key], texts)
    summary["reproduce"]["date"] = "</span><script>"
    for group in summary["groups"]:
        group["name"] = next(texts)
    summary["verdict"]["sentence"] = next(texts)
    assert json.dumps(summary["profile"]) == columns
    summary["rows"]["columns"] = hostile.summary()["rows"]["columns"]
    for part, old in zip(summary["rows"]["groups"], hostile.summary()["rows"]["groups"], strict=True):
        part["columns"] = old["columns"]
    read(page(summary))
    assert "<script" not in fragment(summary)


def test_markup_refuses_what_the_policy_forbids():
    for key in ("style", "onclick"):
        with pytest.raises(ValueError, match=key):
            tag("p", **{key: "x"})
    assert tag("p", Html("<b>x</b>"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"


def table_of(n_rows, n_columns, k, seed=0):
    draws = np.random.default_rng(seed)
    label = np.sort(draws.integers(0, k, n_rows))
    centre = draws.normal(scale=6, size=(k, n_columns))
    return {f"column_number_{j}": centre[label, j] + draws.normal(size=n_rows) for j in range(n_columns)}


def test_the_page_of_twenty_columns_and_six_groups_is_small():
    result = ilk.cluster(table_of(6000, 20, 6), k=6, method="k-means")
    assert len(page(result.summary()).encode()) <= 600_000


def test_the_page_of_five_hundred_columns_and_twenty_groups_is_bounded():
    result = ilk.cluster(table_of(2000, 500, 20), k=20, method="k-means")
    text = page(result.summary())
    read(text)
    assert len(text.encode()) <= 2_000_000


def test_the_page_does_not_grow_with_the_rows():
    small, large = (
        len(page(ilk.cluster(table_of(n, 5, 3), k=3, method="k-means").summary()).encode())
        for n in (1_000, 100_000)
    )
    assert large <= 1.05 * small


def test_the_notebook_shows_the_answer(penguins):
    text = penguins._repr_html_()
    assert penguins.groups[0].name.split(",")[0] in text
    assert "<script" not in text
    assert "rows" in text


def test_what_a_notebook_shows_reaches_nothing_beside_it(penguins, wine):
    """Every rule is about its own class, and the widths of two results in one notebook do not meet."""
    marks = set()
    for result in (penguins, wine):
        style, body = re.fullmatch(r"<style>(.*)</style>(<div .*)", result._repr_html_(), re.DOTALL).groups()
        (mark,) = re.findall(r'^<div class="ilk-cell (r[0-9a-f]{8})"', body)
        marks.add(mark)
        plain = re.sub(r"/\*.*?\*/|@media[^{]*\{", "", style)
        selectors = [part.strip() for rule in re.findall(r"([^{}]+)\{", plain) for part in rule.split(",")]
        assert selectors
        assert all(part.startswith((".ilk-cell", f".{mark} ")) for part in selectors)
        assert "prefers-color-scheme" not in style  # a notebook has a theme of its own
        assert "href" not in body
        assert " id=" not in body
    assert len(marks) == 2


def test_names_can_be_given(penguins):
    named = penguins.rename({"B": "the <b>second</b>"})
    assert named.groups[1].name == named.model.names[1] == "the <b>second</b>"
    assert penguins.groups[1].name != named.groups[1].name
    assert "the &lt;b&gt;second&lt;/b&gt;" in page(named.summary())
    with pytest.raises(ilk.errors.UsageError, match="no group 'Q'"):
        penguins.rename({"Q": "x"})


def test_without_rows_the_page_names_no_row(tmp_path):
    draws = np.random.default_rng(0)
    table = {
        "who": [f"person-{i:03d}" for i in range(60)],
        "x": draws.normal(size=60) + np.repeat([0, 9], 30),
        "y": draws.normal(size=60),
    }
    result = ilk.cluster(table, id="who", k=2)
    result.report(tmp_path / "with.html")
    result.report(tmp_path / "without.html", rows=False)
    assert "person-" in (tmp_path / "with.html").read_text(encoding="utf-8")
    assert "person-" not in (tmp_path / "without.html").read_text(encoding="utf-8")
    read((tmp_path / "without.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def many():
    """25 groups on two numbers, and one of them long."""
    draws = np.random.default_rng(0)
    label = np.repeat(np.arange(25), 20)
    places = draws.permutation(100)[:25]
    x = places[label] % 10 * 12.0 + draws.normal(size=500) * np.where(label == 3, 9, 1)
    return ilk.cluster(
        {"x": x, "y": places[label] // 10 * 12.0 + draws.normal(size=500)}, k=25, method="k-means"
    )


def test_twenty_five_groups_have_a_colour_and_a_mark_each(many):
    """Points of two groups differ in colour, or in the way they are drawn; the legend shows the same."""
    text = page(many.summary())
    drawn = re.findall(
        r'<path d="M[\d.]+ [\d.]+(\S*?[^"M]*)[^"]*" class="(points[^"]*)" data-group="([A-Z]+)"', text
    )
    looks = {
        letter: (shape, classes)
        for shape, classes, letter in drawn
        if " s1" not in classes and " s2" not in classes
    }
    assert len(looks) == 25
    assert len(set(looks.values())) == 25
    legend = re.search(r'<ul class="legend">(.*?)</ul>', text).group(1)
    assert re.findall(r"<b>([A-Z]+)</b>", legend) == [group.letter for group in many.groups]


def test_ellipses_stay_within_the_drawing_of_the_map(many):
    text = page(many.summary())
    chart = re.search(r'<div id="map">(.*?)</svg>', text, re.DOTALL).group(1)
    wide, tall = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', chart).groups())
    found = re.findall(
        r'<ellipse rx="([\d.]+)" ry="([\d.]+)" transform="translate\(([\d.-]+) ([\d.-]+)\) rotate\(([\d.-]+)\)"',
        chart,
    )
    assert found
    for ellipse in found:
        long, short, x, y, angle = map(float, ellipse)
        turn = np.radians(angle)
        across = np.hypot(long * np.cos(turn), short * np.sin(turn))
        up = np.hypot(long * np.sin(turn), short * np.cos(turn))
        assert x - across >= -0.5
        assert x + across <= wide + 0.5
        assert y - up >= -0.5
        assert y + up <= tall + 0.5
