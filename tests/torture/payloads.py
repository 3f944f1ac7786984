"""Texts that would run if a page took them for markup, in every slot of a report, opened and driven in Chromium."""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import ilk
from ilk.errors import IlkError
from tests.report.hostile import MARK, strings
from tests.torture.tally import Clock, Tally

WRAPPED = ("{}", "a {}", "{} z", '"{}', "'{}'", "<b>{}")
DRIVEN = """() => {
  for (const one of document.querySelectorAll('details')) one.open = true;
  for (const one of document.querySelectorAll('*'))
    for (const kind of ['mouseover', 'mouseenter', 'focus', 'click', 'mousemove'])
      if (one.tagName != 'A' || kind != 'click') one.dispatchEvent(new MouseEvent(kind, {bubbles: true}));
}"""
FOREIGN = """() => {
  const found = [];
  for (const one of document.querySelectorAll('*'))
    for (const name of one.getAttributeNames())
      if (name.startsWith('on') || /^\\s*javascript:/i.test(one.getAttribute(name)) && name != 'title'
          && ['href', 'src', 'action', 'formaction', 'data'].includes(name)) found.push(one.tagName + ' ' + name);
  for (const one of document.querySelectorAll('iframe,object,embed,base,link,img,meta[http-equiv=refresh]'))
    found.push(one.tagName);
  return found;
}"""


def run(clock: Clock, seed: int = 0) -> Tally | None:
    """Reports and notebook pages, each with other payloads in its slots; None where there is no browser."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        return None
    tally, draw = Tally("payloads in slots of the report, driven in Chromium"), random.Random(seed)
    texts = [wrap.replace("{}", text) for wrap in WRAPPED for text in strings()]
    draw.shuffle(texts)
    endless = itertools.cycle(texts)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as home, sync_playwright() as play:
        warnings.simplefilter("ignore")
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        while clock.more():
            pages, used = hostile_pages(Path(home), endless, draw.randrange(1 << 30))
            for page in pages:
                wrong = opened(browser, page)
                tally.ended["pages"] += 1
                if wrong:
                    tally.failed(str(wrong[0])[:120], f"{page.name}, seed {seed}, {tally.tried}")
            tally.ended["payloads in slots"] += used
        browser.close()
    tally.seconds = clock.spent
    return tally


def hostile_pages(home: Path, texts: Any, seed: int) -> tuple[list[Path], int]:
    """A report and a notebook page with payloads as names, levels, ids, classes, groups and file; how many."""
    used = 0

    def text() -> str:
        nonlocal used
        used += 1
        return str(next(texts))

    draws = np.random.default_rng(seed)
    n = 90
    group = draws.integers(0, 3, n)
    columns: dict[str, Any] = {f"{text()}#{j}": draws.normal(5 * group, 1) for j in range(2)}
    for j in range(2):
        levels = [text() for _ in range(3)]
        columns[f"{text()}#c{j}"] = [levels[g] if draws.random() < 0.8 else levels[0] for g in group]
    names = [f"{text()}#{what}" for what in ("id", "truth", "constant")]
    classes = [text() for _ in range(3)]
    columns[names[0]] = [f"{text()}{row}" for row in range(n)]
    columns[names[1]] = [classes[g] for g in group]
    columns[names[2]] = [text()] * n
    try:
        found = ilk.cluster(columns, k=3, id=names[0], truth=names[1], seed=seed)
        found = found.rename({letter: text() for letter in found.model.letters})
    except IlkError:
        return [], 0
    report, notebook = home / f"{seed}.html", home / f"{seed}n.html"
    found.report(report)
    notebook.write_text("<!doctype html><meta charset=utf-8><body>" + found._repr_html_(), errors="replace")
    return [report, notebook], used


def opened(browser: Any, path: Path) -> list[str]:
    """What a page did that it should not, opened and driven."""
    context = browser.new_context()
    tab, wrong = context.new_page(), list[str]()
    tab.on("console", lambda message: wrong.append(message.text))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda request: None if request.url == path.as_uri() else wrong.append(request.url))
    tab.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    tab.goto(path.as_uri())
    tab.evaluate(DRIVEN)
    tab.wait_for_timeout(30)
    if tab.evaluate(f"window.{MARK} || document.{MARK}"):
        wrong.append("a payload has run")
    wrong += tab.evaluate(FOREIGN)
    context.close()
    path.unlink()
    return wrong
