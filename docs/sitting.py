"""Makes docs/sitting/1.png to 8.png anew, one sitting from a dropped file to its groups: `python docs/sitting.py`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import expect, sync_playwright

HERE = Path(__file__).parent
TABLE = HERE.parent / "tests" / "data" / "everyday" / "crm.csv"
SIZE = {"width": 1200, "height": 820}
COLOURS = 64  # keeps the files small
PATIENCE = 240_000


def main() -> None:
    (HERE / "sitting").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as above, sync_playwright() as driver:
        folder = os.path.join(above, "customers")
        os.mkdir(folder)
        server = subprocess.Popen(
            [sys.executable, "-m", "ilk.cli.main", "open", folder, "--no-browser"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stderr is not None
            found = re.search(r"http://\S+", server.stderr.readline())
            assert found is not None
            path = os.environ.get("CHROMIUM") or shutil.which("chromium")
            browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
            page = browser.new_page(viewport=SIZE, color_scheme="light")
            page.set_default_timeout(PATIENCE)
            page.goto(found[0])
            sit(page, shot(page))
            browser.close()
        finally:
            server.terminate()


def shot(page: Any) -> Callable[[int], None]:
    def take(number: int) -> None:
        path = HERE / "sitting" / f"{number}.png"
        page.screenshot(path=path)
        image = Image.open(path).convert("RGB")
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)

    return take


def sit(page: Any, take: Callable[[int], None]) -> None:
    """From dropping crm.csv to exporting the groups of its rows."""
    page.wait_for_selector("main.home")
    take(1)
    page.set_input_files("#file", str(TABLE))
    page.wait_for_selector("table.columns tbody tr")
    page.get_by_label("Use Rep as", exact=True).select_option("ignore")
    page.wait_for_selector(".said code:has-text('--ignore Rep')")
    take(2)
    page.get_by_role("button", name="Find the groups").click()
    page.wait_for_selector(".progress p:has-text('BIC')")
    take(3)
    cards = page.locator("article.card")
    expect(cards).to_have_count(3, timeout=PATIENCE)
    expect(page.locator(".k .cap")).to_have_count(0, timeout=PATIENCE)
    page.mouse.move(0, 0)
    take(4)
    page.locator("#k").focus()
    page.keyboard.press("ArrowRight")
    expect(cards).to_have_count(4, timeout=PATIENCE)
    page.evaluate("document.getElementById('s2').scrollIntoView()")
    take(5)
    cards.nth(0).get_by_role("button", name="Merge with").click()
    page.locator("dialog .line").first.click()
    expect(cards).to_have_count(3, timeout=PATIENCE)
    cards.nth(0).get_by_role("button", name="Rename").click()
    page.locator("dialog input").fill("occasional buyers")
    page.locator("dialog .primary").click()
    page.wait_for_selector("article.card h3:has-text('occasional buyers')")
    page.get_by_role("button", name="History").click()
    take(6)
    page.keyboard.press("Escape")
    cards.nth(0).get_by_role("button", name="Rows").click()
    page.wait_for_selector("#drawer tbody tr")
    page.locator("#drawer tbody tr").nth(2).click()
    page.wait_for_selector(".why pre")
    take(7)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Export").click()
    page.wait_for_selector("dialog")
    take(8)


if __name__ == "__main__":
    main()
