"""The stories of the page as steps for a table of any size: each does one thing as a person would, and looks."""

from __future__ import annotations

import base64
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from benchmarks.page import SLIDE, fetched

DOWNLOAD = 120_000  # milliseconds: a busy machine packs a run folder slowly

LARGEST_SCRIPT = 1_000_000  # bytes of a file that is dropped by a script
DROP = """([zone, name, content]) => {
  const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0)), data = new DataTransfer();
  data.items.add(new File([bytes], name));
  const event = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  document.querySelector(zone).dispatchEvent(event);
}"""
CONTROLS = "button,input,select,textarea,a[href],summary,[role=button],[role=region],dialog,progress"
UNNAMED = """(controls) => [...document.querySelectorAll(controls)].filter((e) => {
  if (!e.getClientRects().length) return false;
  const by = (e.getAttribute("aria-labelledby") || "").split(" ").map((id) => document.getElementById(id));
  const own = e.matches("input,select,textarea,progress") ? "" : e.textContent;
  const others = [...by, ...(e.labels || [])].map((one) => (one ? one.textContent : "")).join("");
  return !((e.getAttribute("aria-label") || "") + others + own + (e.title || "")).trim();
}).map((e) => e.outerHTML.slice(0, 200))"""

AT_ONCE = 100  # milliseconds from a move of the slider until other groups are painted
BUSY = 3  # by how much a machine with other work may be slower


@dataclass(frozen=True)
class Story:
    """A table, and what is done with its columns."""

    path: Path
    rows: int
    off: str  # switched off
    kind: tuple[str, str]  # a column, and the type it is given
    number: str  # a column that is weighed, put on another scale and sorted by
    known: str  # a known class
    word: str  # searched for in the rows


@dataclass(frozen=True)
class Sitting:
    """A tab, and the story told in it."""

    tab: Any
    story: Story

    @property
    def cards(self) -> Any:
        return self.tab.locator("article.card")

    def button(self, name: str, card: int | None = None) -> Any:
        place = self.tab if card is None else self.cards.nth(card)
        return place.get_by_role("button", name=name).first

    def has(self, n: int) -> None:
        """Wait until so many groups are shown, and nothing is under way."""
        expect(self.cards).to_have_count(n)
        self.idle()

    def idle(self) -> None:
        expect(self.tab.locator(".workbar[aria-busy]")).to_have_count(0)

    def line(self, *words: str) -> None:
        """The lines of the last step hold these words."""
        for word in words:
            expect(self.tab.locator(".told")).to_contain_text(word)

    def named(self) -> None:
        """Every control that is seen has a name for who does not see it."""
        assert self.tab.evaluate(UNNAMED, CONTROLS) == []

    # --- the table

    def drop(self) -> None:
        self.tab.wait_for_selector("#file", state="attached")
        if self.story.path.stat().st_size < LARGEST_SCRIPT:
            content = base64.b64encode(self.story.path.read_bytes()).decode()
            self.tab.evaluate(DROP, ["label.drop", self.story.path.name, content])
        else:
            self.tab.set_input_files("#file", str(self.story.path))
        self.tab.wait_for_selector("table.columns tbody tr")
        expect(self.tab.locator("main.table .sub")).to_contain_text(f"{self.story.rows:,} rows")
        self.named()

    def said(self, *words: str) -> None:
        for word in words:
            expect(self.tab.locator(".lines")).to_contain_text(word)

    def columns(self) -> None:
        """Switch one off, change a type, mark weight, id and class, weigh one, put one on another scale; and back."""
        tab, story = self.tab, self.story
        use = lambda name: tab.get_by_label(f"Use {name} as", exact=True)  # noqa: E731
        use(story.off).select_option("ignore")
        self.said(f"--ignore {story.off}", f"ignore=['{story.off}']")
        tab.get_by_label(f"Type of {story.kind[0]}", exact=True).select_option(story.kind[1])
        self.said(f"--types {'='.join(story.kind)}", f"types={{'{story.kind[0]}': '{story.kind[1]}'}}")
        for role in ("weight", "id", "truth"):
            use(story.known).select_option(role)
            self.said(f"--{role} {story.known}", f"{role}='{story.known}'")
        tab.get_by_label(f"Weight of {story.number}", exact=True).fill("2")
        tab.keyboard.press("Tab")
        self.said(f"--column-weight {story.number}=2", f"column_weights={{'{story.number}': 2}}")
        tab.get_by_label(f"Weight of {story.number}", exact=True).fill("")
        tab.get_by_label(f"Scale of {story.number}", exact=True).select_option("log")
        self.said(f"--transform {story.number}=log")
        expect(tab.locator(".lines")).not_to_contain_text("--column-weight")
        tab.get_by_label(f"Scale of {story.number}", exact=True).select_option("")
        expect(tab.locator(".lines")).not_to_contain_text("--transform")
        tab.get_by_label(f"Type of {story.kind[0]}", exact=True).select_option("")
        expect(tab.locator(".lines")).not_to_contain_text("--types")

    # --- the fit

    def fit(self) -> str:
        """With progress that is seen to move; the name of the run."""
        self.button("Find the groups").click()
        self.tab.wait_for_selector(".progress")
        expect(self.tab.locator(".progress .cap").first).to_contain_text("spent")
        self.tab.wait_for_selector("article.card")
        self.idle()
        self.named()
        return str(self.tab.evaluate("new URLSearchParams(location.search).get('run')"))

    def stopped(self) -> str:
        """A fit that is stopped at once keeps the best so far."""
        self.button("Find the groups").click()
        self.tab.wait_for_selector(".progress b:text-matches('Trying|Testing|Describing')")
        self.button("Stop and keep the best so far").click()
        self.tab.wait_for_selector(".workbar")
        self.idle()
        expect(self.tab.locator("main")).to_contain_text("interrupted")
        return str(self.tab.evaluate("new URLSearchParams(location.search).get('run')"))

    # --- the groups

    def slide(self) -> None:
        """One group more, and one less; then over all that the search kept, each there at once."""
        before = self.cards.count()
        self.tab.locator("#k").focus()  # and it keeps the focus
        for key, n in (("ArrowRight", before + 1), ("ArrowLeft", before), ("ArrowRight", before + 1)):
            self.tab.keyboard.press(key)
            self.has(n)
        self.line(f"--k {before + 1}", f"k={before + 1}")
        self.passed(before + 1)

    def passed(self, end: int) -> None:
        """Every number of groups that the page has, and back to `end`: the groups change at once."""
        took = {}
        for k in fetched(self.tab):
            if k > 1 and k != end:
                took[k] = min(self.tab.evaluate(SLIDE, to) for to in (k, end) * 5)
        assert min(took.values()) < AT_ONCE, took
        assert max(took.values()) < BUSY * AT_ONCE, took
        self.has(end)

    def change(self) -> None:
        """Merge, split, rename, recolour; all of it undone by Ctrl+Z and by the button."""
        n = self.cards.count()
        self.button("Merge with", 0).click()
        self.named()
        self.tab.locator("dialog .line").first.click()
        self.has(n - 1)
        self.line("ilk regroup", "--merge", "merge=[")
        self.button("Split", 0).click()
        self.has(n)
        self.line("--split", "split=")
        self.button("Rename", 0).click()
        self.named()
        self.tab.locator("dialog input").fill("the first")
        self.tab.keyboard.press("Enter")
        self.tab.wait_for_selector("article.card h3:has-text('the first')")
        self.line("=the first", "names=")
        self.button("Colour", 0).click()
        self.named()
        self.tab.get_by_role("button", name="Colour 6").click()
        self.line("--colour", "colours=")
        self.button("History").click()
        self.named()
        assert self.tab.locator("dialog .history li").count() == 6
        self.tab.keyboard.press("Escape")
        self.idle()
        self.tab.evaluate("document.activeElement.blur()")
        self.tab.keyboard.press("Control+z")
        self.line("--name")
        self.idle()
        for what in ("--split", "--merge", "--k"):
            self.button("Undo").click()
            self.line(what)
            self.idle()
        self.has(n)

    # --- the rows

    def rows(self) -> None:
        """Of a group: by page, sorted, searched; one of them explained."""
        tab, foot = self.tab, self.tab.locator("#drawer .foot")
        self.button("Rows", 0).click()
        tab.wait_for_selector("#drawer tbody tr")
        self.named()
        first = tab.locator("#drawer tbody tr").first.inner_text()
        tab.get_by_role("button", name="Next page").click()
        expect(foot).to_contain_text("page 2")
        assert tab.locator("#drawer tbody tr").first.inner_text() != first
        for way in ("ascending", "descending"):
            place = tab.locator("#drawer thead th span").all_text_contents().index(self.story.number)
            head = tab.locator("#drawer thead th").nth(place)
            head.get_by_role("button").click()
            expect(head).to_have_attribute("aria-sort", way)
            cells = [tr.locator("td").nth(place).inner_text() for tr in tab.locator("#drawer tbody tr").all()]
            seen = [float(cell) for cell in cells if cell != "–"]
            assert seen == sorted(seen, reverse=way == "descending")
        tab.locator("#drawer select").select_option("")
        tab.get_by_label("Search the rows").fill(self.story.word)
        expect(tab.locator("#drawer tbody tr").first).to_contain_text(self.story.word)
        tab.locator("#drawer tbody tr").first.click()
        expect(tab.locator(".why pre")).to_contain_text("is in")
        tab.keyboard.press("Escape")
        assert tab.locator("#drawer").is_hidden()

    def region(self) -> None:
        """Of a box on the map."""
        self.tab.locator("#map").scroll_into_view_if_needed()
        box = self.tab.locator("#map svg").bounding_box()
        self.tab.mouse.move(box["x"] + 30, box["y"] + 30)
        self.tab.mouse.down()
        self.tab.mouse.move(box["x"] + box["width"] - 40, box["y"] + box["height"] - 60, steps=3)
        self.tab.mouse.up()
        expect(self.tab.locator("#drawer .foot")).to_contain_text("drawn on the map")
        self.tab.keyboard.press("Escape")

    # --- what is done with it

    def leave_out(self) -> None:
        """A column left out from within the answer, and the table fitted again without it."""
        self.tab.get_by_title(f"Leave {self.story.number} out and fit again").click()
        self.said(f"--ignore {self.story.off} --ignore {self.story.number}")

    def compare(self, other: str) -> None:
        self.button("Compare").click()
        self.tab.get_by_label("The other run").select_option(other)
        expect(self.tab.locator("dialog pre")).to_contain_text("ARI")
        expect(self.tab.locator("dialog .lines")).to_contain_text("ilk compare")
        self.named()
        self.tab.keyboard.press("Escape")

    def check(self, new: Path) -> None:
        """New rows that come as a file."""
        self.button("Check new rows").click()
        self.named()
        self.tab.get_by_label("File with new rows").set_input_files(str(new))
        expect(self.tab.locator("dialog .pill")).to_be_visible()
        self.tab.keyboard.press("Escape")

    def export(self, folder: Path) -> dict[str, Path]:
        """Everything, and every picture in both forms."""
        made = {}
        self.button("Export").click()
        self.named()
        for title in self.tab.locator("dialog ul.list a").all_inner_texts():
            with self.tab.expect_download(timeout=DOWNLOAD) as download:
                self.tab.locator("dialog ul.list a", has_text=title).first.click()
            made[title] = folder / download.value.suggested_filename
            download.value.save_as(made[title])
        self.tab.keyboard.press("Escape")
        figures = self.tab.locator("figure.saved")
        for i in range(figures.count()):
            figures.nth(i).scroll_into_view_if_needed()
            figures.nth(i).hover()
            for kind in ("SVG", "PNG"):
                with self.tab.expect_download(timeout=DOWNLOAD) as download:
                    figures.nth(i).get_by_role("button", name=f"as {kind}").click()
                made[f"{kind} {i}"] = folder / download.value.suggested_filename
                download.value.save_as(made[f"{kind} {i}"])
        return made


def check_exports(made: dict[str, Path], rows: int) -> None:
    """That what was saved is what it says."""
    with open(made["Assignments"], "rb") as file:
        assert sum(1 for _ in file) == rows + 1
    assert made["Report"].read_bytes().startswith(b"<!doctype html>")
    assert b"SELECT" in made["SQL for DuckDB"].read_bytes().upper()
    assert json.loads(made["Parameters"].read_text())
    names = zipfile.ZipFile(made["Everything"]).namelist()
    assert sorted(names) == ["assignments.csv", "fits.ilk", "model.ilk", "report.html", "summary.json"]
    pictures = [name for name in made if name.startswith(("SVG", "PNG"))]
    assert len(pictures) >= 6
    for name in pictures:
        start = made[name].read_bytes()[:5]
        assert start.startswith(b"<svg" if name.startswith("SVG") else b"\x89PNG"), name
