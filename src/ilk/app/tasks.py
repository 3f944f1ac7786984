"""Fits and changes that are under way: a process each, what they have said so far, and one process kept warm."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

AT_ONCE = 2  # fits; more wait
KEPT = 50  # tasks that are over and still told of
WARM_AFTER = 15.0  # seconds of a fit after which the next process is started, unless the fit ends before
SETTLED = 1.0  # seconds after its end, when the answer is on the screen
Process = subprocess.Popen[str]
COMMAND = [sys.executable, "-m", "ilk.app.worker"]


@dataclass
class Task:
    """What is known of a process at work."""

    number: int
    order: dict[str, Any]
    run: str
    about: dict[str, Any]
    state: str = "waiting"  # running, stopping, done, failed
    progress: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] | None = None
    result: dict[str, Any] = field(default_factory=dict)
    making: int | None = None
    made: list[int] = field(default_factory=list)  # other K that can be shown
    tested: list[int] = field(default_factory=list)  # those whose answers are whole
    unmade: dict[int, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    seconds: float | None = None

    @property
    def over(self) -> bool:
        return self.state in ("done", "failed")

    def to_dict(self) -> dict[str, Any]:
        spent = time.monotonic() - self.began if self.seconds is None else self.seconds
        told = {"number": self.number, "run": self.run, "state": self.state, "progress": self.progress}
        told |= {"failed": self.failed, "result": self.result, "seconds": spent, **self.about}
        return {
            **told,
            "making": self.making,
            "made": self.made,
            "tested": self.tested,
            "unmade": {**self.unmade},
        }


class Tasks:
    """All tasks of a server."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._tasks: dict[int, Task] = {}
        self._processes: dict[int, Process] = {}
        self._ends: dict[int, Callable[[Task], None]] = {}
        self._spare: Process | None = None
        self._closed = False

    def warm(self) -> None:
        """Start the process that the next task is given to, so that nobody waits for its imports."""
        with self._lock:
            if not self._closed and (self._spare is None or self._spare.poll() is not None):
                self._spare = _process()

    def start(
        self, order: dict[str, Any], run: str, about: dict[str, Any], end: Callable[[Task], None]
    ) -> Task:
        """Begin, or wait for another to end; `end` is called once there is something to keep."""
        with self._lock:
            task = Task(next(self._numbers), order, run, about)
            self._tasks[task.number], self._ends[task.number] = task, end
            for old in [t.number for t in self._tasks.values() if t.over][:-KEPT]:
                del self._tasks[old]
            self._next()
            return task

    def all(self) -> list[Task]:
        with self._lock:
            return [*self._tasks.values()]

    def get(self, number: int) -> Task | None:
        with self._lock:
            return self._tasks.get(number)

    def busy_runs(self) -> set[str]:
        with self._lock:
            return {task.run for task in self._tasks.values() if not task.over}

    def stop(self, number: int) -> None:
        """End a task; what it has found so far is kept."""
        with self._lock:
            task = self._tasks.get(number)
            if task is None:
                return
            if task.state == "waiting":
                task.state, task.failed = "failed", {"code": "stopped", "text": "stopped before it began"}
            elif task.state == "running":
                task.state = "stopping"
                self._say(number, "stop")

    def works(self, run: str) -> bool:
        """Whether something is under way for a run, or waits."""
        with self._lock:
            mine = [task for task in self._tasks.values() if task.run == run]
            alive = {number for number, process in self._processes.items() if process.poll() is None}
            return any(not task.over or task.number in alive for task in mine)

    def want(self, run: str, k: int) -> bool:
        """Ask the process of a run that is done for another K next; False where it is gone."""
        with self._lock:
            for number, process in self._processes.items():
                task = self._tasks.get(number)
                if task is not None and task.run == run and task.state == "done" and process.poll() is None:
                    return self._say(number, f"k {k}")
            return False

    def close(self) -> None:
        """End all: fits that have begun are finished by their processes and written."""
        with self._lock:
            self._closed = True
            for process in [*self._processes.values(), *([self._spare] if self._spare else [])]:
                if process.stdin is not None:
                    process.stdin.close()

    def _say(self, number: int, text: str) -> bool:
        process = self._processes.get(number)
        try:
            if process is None or process.stdin is None:
                return False
            process.stdin.write(text + "\n")
            process.stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def _next(self) -> None:
        """Begin what waits, while there is room."""
        running = sum(task.state in ("running", "stopping") for task in self._tasks.values())
        for task in self._tasks.values():
            if task.state != "waiting" or running >= AT_ONCE:
                continue
            process = self._spare if self._spare is not None and self._spare.poll() is None else _process()
            self._spare = None
            self._processes[task.number] = process
            task.state, task.began = "running", time.monotonic()
            self._say(task.number, json.dumps(task.order))
            threading.Thread(target=self._follow, args=(task, process), daemon=True).start()
            running += 1
            self._warm_after(WARM_AFTER)  # not at once: its imports would slow what somebody waits for

    def _warm_after(self, seconds: float) -> None:
        timer = threading.Timer(seconds, self.warm)
        timer.daemon = True
        timer.start()

    def _follow(self, task: Task, process: Process) -> None:
        """Hear what a process says until it ends."""
        assert process.stdout is not None
        for line in process.stdout:
            try:
                self._heard(task, json.loads(line))
            except ValueError:
                continue
        process.wait()
        with self._lock:
            self._processes.pop(task.number, None)
            if not task.over:
                self._ended(
                    task, failed={"code": "process-lost", "text": "the process of the fit ended early"}
                )

    def _heard(self, task: Task, said: dict[str, Any]) -> None:
        with self._lock:
            if "progress" in said:
                task.progress = {**task.progress, **said["progress"]}
            elif "failed" in said and not task.over:
                self._ended(task, failed=said["failed"])
            elif "done" in said:
                task.made = [task.about["k"]] if task.about.get("what") == "k" else []
                task.tested = [*task.made]
                self._ended(task, result=said["done"])
            elif "making" in said:
                task.making = said["making"]
            elif "unmade" in said:
                task.unmade[int(said["unmade"]["k"])], task.making = said["unmade"]["text"], None
            elif "made" in said:
                task.made, task.making = [*task.made, int(said["made"])], None
            elif "tested" in said:
                task.tested, task.making = [*task.tested, int(said["tested"])], None
            elif "rested" in said:
                task.making = None

    def _ended(
        self, task: Task, failed: dict[str, str] | None = None, result: dict[str, Any] | None = None
    ) -> None:
        task.seconds = time.monotonic() - task.began
        task.failed, task.result = failed, result or {}
        end = self._ends.pop(task.number, None)
        if failed is None and end is not None:
            try:
                end(task)
            except Exception as error:
                task.failed = {"code": getattr(error, "code", "bug"), "text": str(error)}
        task.state = "failed" if task.failed else "done"
        self._next()
        self._warm_after(SETTLED)


def _process() -> Process:
    return Process(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C in the terminal ends the server, and not a fit that is under way
    )
