"""The page in a real browser: it opens from disk, asks for nothing, and its controls work."""

from __future__ import annotations

import pytest

from tests.report.test_page import hostile_result

WIDTHS = (1280, 820, 390)


@pytest.fixture
def visit(chromium, tmp_path):
    """Open the report of a result; the page, and what it complained of or asked for."""
    contexts = []

    def go(result, name="report", **options):
        path = tmp_path / f"{name}.html"
        result.report(path)
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        tab = context.new_page()
        trouble = []
        tab.on("console", lambda message: trouble.append(message.text))
        tab.on("pageerror", lambda error: trouble.append(str(error)))
        tab.on(
            "request", lambda request: None if request.url == path.as_uri() else trouble.append(request.url)
        )
        tab.on("dialog", lambda dialog: trouble.append(dialog.message))
        tab.goto(path.as_uri())
        return tab, trouble

    yield go
    for context in contexts:
        context.close()


@pytest.mark.parametrize("which", ["penguins", "wine", "cloud"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_quietly_at_every_width(visit, which, scheme, request):
    for width in WIDTHS:
        tab, trouble = visit(
            request.getfixturevalue(which), viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        assert tab.locator("section").count() == 9
        assert tab.evaluate("document.documentElement.scrollWidth") <= width  # never sideways
        assert trouble == []


def test_dark_is_dark_and_paper_is_light(visit, penguins):
    tab, _ = visit(penguins, color_scheme="dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 24)"
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_tables_sort_both_ways(visit, wine):
    tab, trouble = visit(wine)
    tab.locator("#s5 details summary").first.click()
    table = tab.locator("#s5 table.sortable")
    column = table.locator("thead th").nth(2)

    def values():
        texts = table.locator("tbody tr td:nth-child(3)").all_inner_texts()
        return [float(t.replace(",", "")) for t in texts if t != "–"]

    column.locator("button").click()
    assert column.get_attribute("aria-sort") == "ascending"
    assert values() == sorted(values())
    column.locator("button").click()
    assert column.get_attribute("aria-sort") == "descending"
    assert values() == sorted(values(), reverse=True)
    assert trouble == []


def test_the_profile_is_put_in_order(visit, penguins):
    tab, _ = visit(penguins)

    def names():
        return tab.eval_on_selector_all(
            "#profile .line:not(.head)", "lines => lines.map(l => l.dataset.name)"
        )

    before = names()
    tab.locator('.tools.order button[data-by="name"]').click()
    assert names() == sorted(before)
    tab.locator('.tools.order button[data-by="all"]').click()
    assert names() == before


def test_hover_tells_and_one_group_can_be_shown(visit, penguins):
    tab, _ = visit(penguins)
    assert not tab.locator("#tip").is_visible()
    tab.locator("#profile .cell").first.hover()
    assert tab.locator("#tip").is_visible()
    assert "nats" in tab.locator("#tip").inner_text()
    tab.locator(".tools.show button").first.click()
    groups = tab.eval_on_selector_all(
        "#map [data-group]:not(.dim)", "parts => parts.map(p => p.dataset.group)"
    )
    assert set(groups) == {"A"}
    tab.locator(".tools.show button").first.click()
    assert tab.locator("#map .dim").count() == 0


def test_rows_are_filtered(visit, wine):
    tab, _ = visit(wine)
    lines = tab.locator("#s7 tbody tr:visible")
    before = lines.count()
    tab.locator("input.filter").fill("no such row")
    assert lines.count() == 0
    tab.locator("input.filter").fill("")
    assert lines.count() == before > 0


def test_it_prints(visit, penguins):
    tab, _ = visit(penguins)
    printed = tab.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    assert (
        3
        <= printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") + printed.count(b"/Type/Page/")
        <= 15
    )


def test_it_is_whole_without_scripts(visit, penguins):
    tab, trouble = visit(penguins, java_script_enabled=False)
    text = tab.locator("main").inner_text()
    for group in penguins.groups:
        assert group.name.split(",")[0] in text
    assert "Reproduce this" in text
    assert not tab.locator(".tools.order").is_visible()
    assert trouble == []
    tab.locator("#s3 details summary").first.click()
    assert tab.locator("#s3 details table").is_visible()


def test_nothing_hostile_runs(visit):
    result = hostile_result()
    tab, trouble = visit(result, name="a<img src=x onerror=window.owned=1>b")
    tab.mouse.move(300, 400)
    for head in tab.locator("th button").all()[:5]:
        if head.is_visible():
            head.click()
    assert tab.evaluate("window.owned") is None
    assert trouble == []
    assert tab.locator("img, iframe, object, form, base, link").count() == 0
