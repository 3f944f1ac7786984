"""Makes docs/report.png anew, the first block of the report of `ilk demo`: `python docs/screenshot.py`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parent / "report.png"
SIZE = {"width": 1200, "height": 1000}
COLOURS = 64  # keeps the file small


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        subprocess.run([sys.executable, "-m", "ilk.cli.main", "demo", "-q"], cwd=folder, check=True)
        browser = driver.chromium.launch(executable_path=os.environ.get("CHROMIUM"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto((Path(folder) / "penguins.ilk" / "report.html").as_uri())
        page.screenshot(path=PICTURE)
        browser.close()
    Image.open(PICTURE).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        PICTURE, optimize=True
    )


if __name__ == "__main__":
    main()
