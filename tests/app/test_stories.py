"""Every story of the page end to end in a real browser: with the 344 penguins, and with a million rows."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from benchmarks.page import ALL_REQUESTS
from tests.app.serving import serving
from tests.app.stories import Sitting, Story, check_exports
from tests.conftest import OWN

ROWS = 1_000_000
PATIENCE = {344: 30, ROWS: 900}  # seconds, on a busy machine


def penguins(folder):
    path = folder / "penguins.csv"
    shutil.copy(OWN / "penguins.csv", path)
    return Story(path, 344, "year", ("flipper_length_mm", "ordinal"), "body_mass_g", "target", "Dream")


def million(folder):
    draws = np.random.default_rng(0)
    group = draws.integers(0, 3, ROWS)
    columns = [draws.normal(4 * group, 1), draws.normal(-3 * group, 1), draws.normal(20, 1, ROWS), group]
    path = folder / "million.csv"
    line = "%.4f,%.4f,%.4f,%d"
    np.savetxt(path, np.column_stack(columns), line, header="a,b,noise,known", comments="")
    return Story(path, ROWS, "noise", ("b", "numeric"), "a", "known", "8.52")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(penguins, id="344"),
        pytest.param(million, id="1000000", marks=pytest.mark.slow),
    ],
)
def told(request, tmp_path_factory, chromium):
    """A story, a server in an empty folder, and a tab with what it complains of."""
    from playwright.sync_api import expect

    story = request.param(tmp_path_factory.mktemp("given"))
    with serving(tmp_path_factory.mktemp("place")) as served:
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
        context.set_default_timeout(1000 * PATIENCE[story.rows])
        expect.set_options(timeout=1000 * PATIENCE[story.rows])
        tab, trouble = context.new_page(), []
        tab.on("console", lambda message: trouble.append(message.text))
        tab.on("pageerror", lambda error: trouble.append(str(error)))
        tab.on("request", lambda r: r.url.startswith((served.address, "blob:")) or trouble.append(r.url))
        tab.goto(served.address)
        tab.evaluate(ALL_REQUESTS)
        yield Sitting(tab, story), served, trouble
        context.close()
        expect.set_options(timeout=5000)


def test_a_sitting(told, tmp_path):
    """From a dropped file to what is taken away, in one tab."""
    sitting, served, trouble = told
    sitting.drop()
    sitting.columns()
    first = sitting.fit()
    sitting.rows()
    sitting.region()
    sitting.slide()
    sitting.change()
    sitting.leave_out()
    second = sitting.fit()
    assert second != first
    sitting.compare(first)
    sitting.check(sitting.story.path)
    check_exports(sitting.export(tmp_path), sitting.story.rows)
    assert trouble == []
    summary = served.ask("answer", run=second)
    assert summary["brief"]["rows"] == sitting.story.rows
    heap = sitting.tab.evaluate("performance.memory.usedJSHeapSize")
    assert heap < 300 * 2**20


def test_a_second_fit_is_begun_beside_the_first(told):
    sitting, served, trouble = told
    shutil.copy(sitting.story.path, served.folder / "again.csv")
    sitting.tab.goto(served.address + "?table=again.csv")
    sitting.tab.wait_for_selector("table.columns tbody tr")
    sitting.tab.get_by_label("Number of groups").fill("2..4")
    sitting.tab.keyboard.press("Tab")
    sitting.said("--k 2..4")
    sitting.button("Find the groups").click()
    sitting.tab.wait_for_selector(".progress")
    sitting.tab.get_by_label("Number of groups").fill("3")
    sitting.tab.keyboard.press("Tab")
    sitting.said("--k 3")
    sitting.button("Find the groups").click()
    sitting.tab.wait_for_selector("article.card")
    sitting.has(3)
    runs = [task["run"] for task in served.ask("tasks") if task["what"] == "fit"][-2:]
    assert len(set(runs)) == 2
    for task in served.ask("tasks"):
        assert served.wait(task["number"], PATIENCE[sitting.story.rows])["state"] == "done"
    sitting.tab.goto(served.address)
    for run in runs:  # side by side, with their words
        line = sitting.tab.locator("main.home ul.list li", has_text=run).first
        assert line.locator(".pill").inner_text() in (
            "solid",
            "fair",
            "weak",
            "no clear groups",
            "not tested",
        )
    for box in sitting.tab.get_by_role("checkbox").all()[:2]:
        box.check()
    sitting.button("Compare the two").click()
    sitting.tab.locator("dialog pre", has_text="ARI").wait_for()
    sitting.tab.keyboard.press("Escape")
    assert trouble == []


def test_cancelled_at_once(told):
    sitting, served, trouble = told
    rows = "\n".join(f"{i % 7},{(i * i) % 11},{(i * 37) % 101},{'abcd'[i % 4]}" for i in range(60_000))
    (served.folder / "long.csv").write_text("p,q,r,s\n" + rows + "\n")
    sitting.tab.goto(served.address + "?table=long.csv")
    sitting.tab.wait_for_selector("table.columns tbody tr")
    run = sitting.stopped()
    assert served.ask("answer", run=run)["brief"]["interrupted"] is True
    assert trouble == []
