"""One sitting in a real browser: every story of the page from dropping a file to taking the groups away."""

from __future__ import annotations

import json

import pytest

from tests.conftest import OWN
from tests.report.hostile import strings

CRM = OWN / "everyday" / "crm.csv"
MINUTE = 60_000
SLOW = 240_000  # a busy machine
# Texts of less contrast than 4.5 to 1 (WCAG AA) with the plain background behind them; 3 to 1 for large ones. What is
# disabled or switched off may be pale.
PALE = """() => {
  const light = (c) => { const v = c.map((x) => x / 255).map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const behind = (e) => { for (let at = e; at; at = at.parentElement) { const c = rgb(getComputedStyle(at).backgroundColor); if (c.length && (c.length < 4 || c[3] === 1)) return c; } return [255, 255, 255]; };
  const faint = (e) => { for (let at = e; at; at = at.parentElement) if (getComputedStyle(at).opacity < 1 || at.disabled || at.tagName === "svg") return true; return false; };
  const bad = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || faint(e)) continue;
    const style = getComputedStyle(e), [one, two] = [light(rgb(style.color).slice(0, 3)), light(behind(e).slice(0, 3))].sort((a, b) => b - a);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if ((one + 0.05) / (two + 0.05) < (large ? 3 : 4.5)) bad.push(`${((one + 0.05) / (two + 0.05)).toFixed(2)} ${e.className} ${e.textContent.trim().slice(0, 40)}`);
  }
  return [...new Set(bad)].slice(0, 10);
}"""  # noqa: E501


@pytest.fixture
def visit(chromium, served):
    """Open the page; the tab, and what it complained of or asked of others."""
    contexts = []

    def go(query="", **options):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(SLOW)
        contexts.append(context)
        tab, trouble = context.new_page(), []
        tab.on("console", lambda message: trouble.append(message.text))
        tab.on("pageerror", lambda error: trouble.append(str(error)))
        tab.on("dialog", lambda dialog: trouble.append(dialog.message))
        tab.on("request", lambda r: r.url.startswith((served.address, "blob:")) or trouble.append(r.url))
        tab.goto(served.address + query)
        return tab, trouble

    yield go
    for context in contexts:
        context.close()


def cards(tab, n):
    """Wait until so many groups are shown."""
    from playwright.sync_api import expect

    expect(tab.locator("article.card")).to_have_count(n, timeout=SLOW)


def idle(tab):
    from playwright.sync_api import expect

    expect(tab.locator(".workbar[aria-busy]")).to_have_count(0, timeout=SLOW)


def button(tab, name, card=None):
    place = tab if card is None else tab.locator("article.card").nth(card)
    return place.get_by_role("button", name=name).first


def saved(tab, act):
    with tab.expect_download() as download:
        act()
    return download.value


def test_a_sitting_from_a_dropped_file_to_exports(visit, served, tmp_path):
    tab, trouble = visit()
    tab.set_input_files("#file", str(CRM))
    tab.wait_for_selector("table.columns tbody tr")
    assert tab.locator("table.columns tbody tr").count() == 13
    tab.get_by_label("Use Rep as", exact=True).select_option("ignore")
    tab.wait_for_selector(".said code:has-text('--ignore Rep')")
    button(tab, "Find the groups").click()
    tab.wait_for_selector(".progress")
    tab.wait_for_selector("article.card")
    assert "run=" in tab.url
    cards(tab, 3)

    button(tab, "Rows", 0).click()  # rows: searched, one of them explained
    tab.wait_for_selector("#drawer tbody tr")
    tab.get_by_label("Search the rows").fill("CUST-100003")
    tab.locator("#drawer .foot").get_by_text("1 row", exact=True).wait_for()
    tab.locator("#drawer tbody tr").first.click()
    tab.wait_for_selector(".why pre:has-text('row 3')")
    tab.keyboard.press("Escape")
    assert tab.locator("#drawer").is_hidden()

    tab.locator("#k").focus()  # slide, merge, name, undo
    tab.keyboard.press("ArrowRight")
    cards(tab, 4)
    idle(tab)
    button(tab, "Merge with", 0).click()
    tab.locator("dialog .line").first.click()
    cards(tab, 3)
    idle(tab)
    button(tab, "Rename", 0).click()
    tab.locator("dialog input").fill("the <i>first</i>")
    tab.locator("dialog .primary").click()
    tab.wait_for_selector("article.card h3:has-text('the <i>first</i>')")
    button(tab, "Undo").click()
    idle(tab)
    button(tab, "Undo").click()
    cards(tab, 4)
    button(tab, "History").click()
    assert tab.locator("dialog .history li").count() == 4
    tab.keyboard.press("Escape")

    tab.locator("#map").scroll_into_view_if_needed()  # a region of the map
    box = tab.locator("#map svg").bounding_box()
    tab.mouse.move(box["x"] + 40, box["y"] + 40)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] - 40, box["y"] + box["height"] - 80, steps=3)
    tab.mouse.up()
    tab.wait_for_selector("#drawer .foot:has-text('drawn on the map')")
    tab.keyboard.press("Escape")

    button(tab, "Export").click()
    made = saved(tab, lambda: tab.locator("dialog a", has_text="Assignments").click())
    assert len(made.path().read_bytes().splitlines()) == 2001
    tab.locator("dialog a", has_text="SQL for DuckDB").click()
    tab.wait_for_selector("dialog .low:has-text('SQL does not do')")
    assert [text for text in trouble if "400" not in text] == []  # the refusal
    trouble.clear()
    tab.keyboard.press("Escape")
    figure = tab.locator("figure.saved").first
    figure.hover()
    picture = saved(tab, lambda: figure.get_by_role("button", name="SVG").click())
    assert picture.path().read_text().startswith("<svg")
    drawn = saved(tab, lambda: figure.get_by_role("button", name="PNG").click())
    assert drawn.path().read_bytes()[:4] == b"\x89PNG"

    button(tab, "Check new rows").click()
    tab.locator("dialog select").select_option("crm.csv")
    tab.wait_for_selector("dialog .pill:has-text('no drift')")
    assert trouble == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_runs_out_of_the_screen(visit, served, run, width, scheme):
    for query in ("", "?table=crm.csv", f"?run={run}"):
        tab, trouble = visit(query, viewport={"width": width, "height": 800}, color_scheme=scheme)
        tab.wait_for_selector(
            {"": "main.home", "?t": "table.columns tbody tr", "?r": "article.card"}[query[:2]]
        )
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert trouble == []


def tabbed_to(tab, name, most=400):
    """Press Tab until the control of this name has the focus."""
    for _ in range(most):
        tab.keyboard.press("Tab")
        here = "e => (e.getAttribute('aria-label') || e.id || e.textContent).trim()"
        if tab.evaluate(f"({here})(document.activeElement)").startswith(name):
            return
    raise AssertionError(f"no way to {name} by Tab")


def test_the_keyboard_is_enough(visit, served, run):
    """From the list of runs to one row explained, one group more, a name, an undo and the exports."""
    tab, trouble = visit()
    tab.wait_for_selector("main.home")
    tabbed_to(tab, run)
    tab.keyboard.press("Enter")
    tab.wait_for_selector("article.card")
    idle(tab)
    n = tab.locator("article.card").count()
    tab.evaluate("document.body.focus()")
    tabbed_to(tab, "Number of groups")
    tab.keyboard.press("ArrowRight")
    cards(tab, n + 1)
    idle(tab)
    tabbed_to(tab, "Rows (")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#drawer tbody tr")
    tab.locator("#drawer tbody tr").nth(1).focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".why pre")
    tab.keyboard.press("Escape")
    assert tab.evaluate("document.activeElement.textContent").startswith("Rows (")  # back where one was
    tabbed_to(tab, "Rename")
    tab.keyboard.press("Enter")
    tab.keyboard.type("by keys")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("article.card h3:has-text('by keys')")
    idle(tab)
    for left in (n + 1, n):
        tab.keyboard.press("Control+z")
        cards(tab, left)
        idle(tab)
    tabbed_to(tab, "Export")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("dialog a")
    tabbed_to(tab, "Assignments")
    assert trouble == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_control_has_a_name_and_text_can_be_read(visit, served, run, width, scheme):
    from tests.app.stories import CONTROLS, UNNAMED

    for query in ("", "?table=crm.csv", f"?run={run}"):
        tab, _ = visit(query, viewport={"width": width, "height": 800}, color_scheme=scheme)
        tab.wait_for_selector(
            {"": "main.home", "?t": "table.columns tbody tr", "?r": "#s9"}[query[:2]], state="attached"
        )
        assert tab.evaluate(UNNAMED, CONTROLS) == []
        assert tab.evaluate(PALE) == []


def test_a_table_that_cannot_be_read_says_what_to_do(visit, served):
    (served.folder / "empty.csv").write_text("")
    tab, _ = visit("?table=empty.csv")
    tab.locator("#notes", has_text="empty.csv is empty").wait_for()
    assert tab.get_by_role("button", name="Find the groups").is_disabled()
    assert tab.locator("table.columns").is_hidden()
    assert tab.get_by_label("Separator").is_visible()


def test_hostile_names_and_cells_are_text(visit, served):
    texts = [text for text in strings() if text.strip() and "\0" not in text]
    rows = [
        {f"x {texts[0]}": i % 2 * 8 + i % 5 / 10, texts[1]: texts[i % len(texts)], texts[2]: texts[3 + i % 2]}
        for i in range(120)
    ]
    text = "\n".join(json.dumps(row) for row in rows)
    (served.folder / "hostile.jsonl").write_text(text, encoding="utf-8", errors="backslashreplace")
    tab, trouble = visit("?table=hostile.jsonl")
    tab.wait_for_selector("table.columns tbody tr")
    button(tab, "Find the groups").click()
    tab.wait_for_selector("article.card")
    button(tab, "Rows").click()
    tab.wait_for_selector("#drawer tbody tr")
    tab.locator("#drawer tbody tr").nth(1).click()
    tab.wait_for_selector(".why pre")
    assert tab.locator("#work img, #work iframe, #work script, #drawer img, #drawer script").count() == 0
    assert trouble == []


def test_two_browsers_at_once_see_one_run(visit, served, run):
    one, _ = visit(f"?run={run}")
    two, _ = visit(f"?run={run}")
    for tab in (one, two):
        tab.wait_for_selector("article.card")
    for tab, name in ((one, "by the first"), (two, "by the second")):
        button(tab, "Rename", 0).click()
        tab.locator("dialog input").fill(name)
        tab.locator("dialog .primary").click()
        tab.wait_for_selector("article.card h3:has-text('by the first')")
    assert "another window" in two.locator("#notes").inner_text()
    button(one, "Undo").click()


def test_read_only_has_no_way_to_change(chromium, served, run):
    from tests.app.serving import serving

    with serving(served.folder, "--read-only") as fixed:
        tab = chromium.new_page()
        tab.goto(fixed.address + f"?run={run}")
        tab.wait_for_selector("article.card")
        assert tab.get_by_role("button", name="Rename").count() == 0
        assert tab.locator("#k").is_disabled()
        tab.close()
