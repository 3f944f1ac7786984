"""A Spark cluster of processes on this machine: a master, and workers to be killed, held up, or left without disk."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
PATIENCE = 300.0  # seconds: a busy machine starts Java slowly


def needed() -> None:
    """Skips where Spark or Java is missing."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("Spark needs Java")


def _home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _tied_to_parent() -> None:
    """A test that is killed leaves no cluster behind."""
    ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@dataclass
class Standalone:
    """A master, and workers of one core each in sessions of their own, so that a signal takes their executors too."""

    folder: Path
    port: int = field(default_factory=_free_port)
    processes: list[subprocess.Popen[Any]] = field(default_factory=list)
    workers: list[subprocess.Popen[Any]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(self, n_workers: int) -> None:
        at = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0"]
        self._launch("master", "org.apache.spark.deploy.master.Master", at)
        self._await("master", "I have been elected leader")
        for _ in range(n_workers):
            self.add_worker()

    def add_worker(self, most_bytes: int | None = None) -> None:
        """One worker more; none of its files may be larger than `most_bytes`, as on a disk that is full."""
        name = f"worker-{len(self.processes)}"
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        options += ["--work-dir", str(self.folder / name)]
        made = self._launch(
            name, "org.apache.spark.deploy.worker.Worker", [*options, self.address], most_bytes
        )
        self._await(name, "Successfully registered with master")
        self.workers.append(made)

    def _launch(
        self, name: str, main: str, options: list[str], most_bytes: int | None = None
    ) -> subprocess.Popen[Any]:
        def bounded() -> None:
            _tied_to_parent()
            if most_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

        told = {"SPARK_HOME": str(_home()), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        with (self.folder / f"{name}.log").open("w") as log:
            made = subprocess.Popen(
                [str(_home() / "bin" / "spark-class"), main, *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | told | {"SPARK_LOCAL_DIRS": str(self.folder / f"{name}-local")},
                start_new_session=True,
                preexec_fn=bounded,
            )
        self.processes.append(made)
        return made

    def _await(self, name: str, sentence: str) -> None:
        log, end = self.folder / f"{name}.log", time.monotonic() + PATIENCE
        while sentence not in log.read_text(errors="replace"):
            if time.monotonic() > end or self.processes[-1].poll() is not None:
                raise RuntimeError(f"{name} did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.2)

    def kill(self, number: int) -> None:
        """The worker and its executor die at once."""
        worker = self.workers.pop(number)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def signal(self, number: int, sign: signal.Signals) -> None:
        os.killpg(self.workers[number].pid, sign)

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def standalone(folder: Path, n_workers: int = 2) -> Iterator[Standalone]:
    cluster = Standalone(folder)
    try:
        cluster.start(n_workers)
        yield cluster
    finally:
        cluster.stop()


class Driver:
    """The process of a user, which does one task after the other (`tests/engines/drill_driver.py`): to start Java takes
    longer than the tasks."""

    def __init__(self, address: str) -> None:
        told = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.drill_driver", address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | told | {"PYTHONPATH": path},
            cwd=ROOT,
            preexec_fn=_tied_to_parent,
        )

    def ask(self, task: str, folder: Path, *options: Any) -> None:
        """Begin a task."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([task, str(folder), *options]) + "\n")
        self.process.stdin.flush()

    def until(self, word: str) -> str:
        """The next line that begins with this word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(word):
                return line.removeprefix(word).strip()
        raise AssertionError(f"the driver ended before it said {word!r}")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
