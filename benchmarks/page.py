"""The page of `ilk open` in Chromium: from drop to answer next to the command line, frames while a fit runs, a million
rows, fifty clients. `python -m benchmarks.page [--rows N] [--seconds S]`."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

TABLE = Path(__file__).parents[1] / "tests" / "data" / "everyday" / "crm.csv"
PATIENCE = 600_000
CLIENTS = 50
FRAMES = """() => new Promise((done) => {
  const gaps = []; let last = performance.now();
  const tick = (now) => {
    gaps.push(now - last); last = now; window.counting ? requestAnimationFrame(tick) : done(gaps);
  };
  window.counting = true; requestAnimationFrame(tick); setTimeout(() => { window.counting = false; }, 4000);
})"""

ALL_REQUESTS = "performance.setResourceTimingBufferSize(1e6)"  # a long fit is asked after more than 250 times
FETCHED = """[...new Set(performance.getEntriesByType("resource").map((e) => new URL(e.name))
  .filter((a) => a.pathname.endsWith("/version")).map((a) => Number(a.searchParams.get("version").slice(2))))]"""
SLIDE = """(k) => new Promise((done) => {
  const range = document.getElementById("k"), began = performance.now();
  const look = () => {
    const there = document.querySelectorAll("article.card").length === k && document.querySelector("#map svg");
    if (there) requestAnimationFrame(() => setTimeout(() => done(performance.now() - began))); // it is painted
    else requestAnimationFrame(look);
  };
  range.value = k;
  range.dispatchEvent(new Event("change"));
  look();
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the fifty clients")
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, sync_playwright() as driver:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with opened(folder) as address:
            drop(browser, address, folder)
            large(browser, address, folder, asked.rows)
            crowd(address, asked.seconds)
        browser.close()


@contextmanager
def opened(folder: str) -> Iterator[str]:
    command = [sys.executable, "-m", "ilk.cli.main", "open", folder, "--no-browser"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    found = re.search(r"http://\S+", server.stderr.readline())
    assert found is not None
    time.sleep(5)  # the process that is kept warm
    try:
        yield found[0]
    finally:
        server.terminate()


def told(name: str, value: str) -> None:
    print(f"{name:<52} {value}", flush=True)


def drop(browser: Any, address: str, folder: str) -> tuple[float, float]:
    """Seconds of the command line, and those from dropping crm.csv to its answer."""
    began, to = time.monotonic(), os.path.join(folder, "own.ilk")
    command = [sys.executable, "-m", "ilk.cli.main", "fit", str(TABLE), "-q", "--force", "-o", to]
    subprocess.run(command, check=True)
    own = time.monotonic() - began
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.evaluate(ALL_REQUESTS)
    page.wait_for_selector("#file", state="attached")
    began = time.monotonic()
    page.set_input_files("#file", str(TABLE))
    page.get_by_role("button", name="Find the groups", disabled=False).click()
    page.wait_for_selector("article.card")
    taken = time.monotonic() - began
    told("command line, 2,000 rows", f"{own:.2f} s")
    told("page, from drop to answer", f"{taken:.2f} s")
    slide(page, "2,000 rows")
    page.close()
    return own, taken


def fetched(page: Any) -> list[int]:
    """The numbers of groups whose answers a page has fetched, once there are some."""
    while len(found := page.evaluate(FETCHED)) < 3:  # the policy of the page lets no driver wait within it
        time.sleep(0.1)
    return list(found)


def slide(page: Any, title: str) -> None:
    """Milliseconds from a move of the slider to other groups: of the fits of the search, whose first look is there."""
    began = time.monotonic()
    fetched(page)
    told(f"{title}: first other numbers of groups there after", f"{time.monotonic() - began:.1f} s")
    time.sleep(2)
    start = page.locator("article.card").count()
    ks = [k for k in fetched(page) if k > 1 and k != start]
    took = [page.evaluate(SLIDE, k) for _ in range(3) for k in (*ks, start)]
    told(
        f"{title}: another of {len(ks) + 1} numbers of groups, middle and longest",
        f"{np.median(took):.0f} ms, {max(took):.0f} ms",
    )


def large(browser: Any, address: str, folder: str, n_rows: int) -> tuple[list[float], int]:
    """Frames while a large table is fitted, then its rows by page, order and search; the frames in milliseconds, and
    the bytes of the page."""
    draws = np.random.default_rng(0)
    group = draws.integers(0, 3, n_rows)
    columns = [
        draws.normal(4 * group, 1),
        draws.normal(-3 * group, 1),
        draws.poisson(3 + 4 * group),
        draws.normal(size=n_rows),
    ]
    np.savetxt(
        os.path.join(folder, "large.csv"),
        np.column_stack(columns),
        "%.4f",
        ",",
        header="a,b,c,d",
        comments="",
    )
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address + "?table=large.csv")
    page.evaluate(ALL_REQUESTS)
    page.get_by_role("button", name="Find the groups", disabled=False).click()
    page.wait_for_selector(".progress")
    began, gaps = time.monotonic(), []
    while page.locator("article.card").count() == 0:
        gaps += page.evaluate(FRAMES)
    told(f"{n_rows:,} rows, seconds of the fit", f"{time.monotonic() - began:.0f} s")
    told(
        "frames while it ran, longest and 99th of 100",
        f"{max(gaps):.0f} ms, {np.percentile(gaps, 99):.0f} ms",
    )
    slide(page, f"{n_rows:,} rows")
    page.locator("article.card").first.get_by_role("button", name="Rows").click()
    page.wait_for_selector("#drawer tbody tr")
    run = re.search(r"run=([^&]+)", page.url)
    assert run is not None
    for what in ({}, {"page": n_rows // 100}, {"sort": "a", "down": True}, {"search": "1.5"}):
        began = time.monotonic()
        ask(address, "rows", {"run": run[1], "version": "", **what})
        told(f"rows {what or 'of the first page'}", f"{time.monotonic() - began:.2f} s")
    used = page.evaluate("performance.memory.usedJSHeapSize")
    told("memory of the page: heap of JavaScript", f"{used / 2**20:.0f} MB")
    memory = own_memory(browser)
    told("memory of the page: its process, less what it shares", f"{memory / 2**20:.0f} MB")
    page.close()
    return gaps, memory


def own_memory(browser: Any) -> int:
    """Bytes that the largest process of a page has for itself (Linux)."""
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = []
    for process in (entry for entry in found if entry["type"] == "renderer"):
        text = Path(f"/proc/{process['id']}/smaps_rollup").read_text()
        sizes.append(1024 * sum(int(n) for n in re.findall(r"^Private_\w+: +(\d+) kB", text, re.MULTILINE)))
    return max(sizes)


def ask(address: str, name: str, body: Any = None) -> int:
    """The status of a request."""
    host, _, path = address.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=120)
    connection.request(
        "GET" if body is None else "POST", f"/{path}api/{name}", None if body is None else json.dumps(body)
    )
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def crowd(address: str, seconds: float) -> tuple[int, int]:
    """Fifty clients, each asking again and again; how many requests, and how many errors."""
    end, seen = time.monotonic() + seconds, list[tuple[int, float]]()

    def client() -> None:
        while time.monotonic() < end:
            began = time.monotonic()
            try:
                status = ask(address, "overview")
            except OSError:
                status = 0
            seen.append((status, time.monotonic() - began))

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bad = sum(status != 200 for status, _ in seen)
    slow = float(np.percentile([took for _, took in seen], 95))
    told(
        f"{CLIENTS} clients for {seconds:.0f} s",
        f"{len(seen)} requests, {bad} errors, 95th of 100 in {slow:.2f} s",
    )
    return len(seen), bad


if __name__ == "__main__":
    main()
