"""A real server of the page, and how to ask it as anybody could."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Served:
    """A server at work in a folder."""

    folder: Path
    port: int
    token: str
    process: subprocess.Popen[str]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def raw(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        """A request as it is; `path` begins after the port."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {"Host": f"127.0.0.1:{self.port}", **given})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content, {name.lower(): value for name, value in answer.getheaders()}

    def ask(self, name: str, body: Any = None, **query: Any) -> Any:
        """A document of the page; an error of it as its code."""
        from urllib.parse import urlencode

        path = f"/{self.token}/api/{name}" + ("?" + urlencode(query) if query else "")
        sent = None if body is None else json.dumps(body)
        status, content, _ = self.raw("GET" if body is None else "POST", path, sent)
        made = json.loads(content)
        return made if status < 300 else made["error"]["code"]

    def wait(self, number: int, seconds: float = 90) -> dict[str, Any]:
        """The task once it is over."""
        for _ in range(int(seconds / 0.1)):
            task = next(task for task in self.ask("tasks") if task["number"] == number)
            if task["state"] in ("done", "failed"):
                return task
            time.sleep(0.1)
        raise TimeoutError(task)

    def fit(self, table: str, /, **options: Any) -> str:
        """The name of the run of a fit that is done."""
        task = self.wait(self.ask("fit", {"table": table, "options": options})["number"])
        assert task["state"] == "done", task
        return str(task["run"])


@contextmanager
def serving(folder: Path, *more: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "ilk.cli.main", "open", str(folder), "--no-browser", *more]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r"http://127\.0\.0\.1:(\d+)/([\w-]+)/", process.stderr.readline())
    assert found is not None
    served = Served(folder, int(found[1]), found[2], process)
    for _ in range(200):
        try:
            served.raw("GET", "/")
            break
        except OSError:
            time.sleep(0.05)
    try:
        yield served
    finally:
        process.terminate()
        process.wait(20)
