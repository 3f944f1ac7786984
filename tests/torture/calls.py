"""Whole commands with their N-th file call failing, or killed there: files are old or new, and codes as documented.

`python -m tests.torture.calls SECONDS JOB JOBS` runs itself again under `calls.c`, which counts the calls of C.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.torture.code import loaded
from tests.torture.tally import Clock, Tally, end_early

FAULTS = ("ENOSPC", "EIO", "EINTR", "EMFILE", "ENOMEM", "EACCES")
KILL = "SIGKILL"
KNOWN = (0, 2, 3, 5, 6)
FIT = ("--method", "k-means", "--k", "2", "--threads", "1", "-q")


def run(clock: Clock, job: int = 0, jobs: int = 1) -> Tally | None:
    """All of it in a process of its own; None where there is no compiler or no such way in."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "calls.so")
        source = Path(__file__).with_name("calls.c")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        given = [str(clock.seconds), str(job), str(jobs)]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.calls", *given],
            env={**os.environ, "LD_PRELOAD": library, "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        while (told := _told(process)) is None:
            if Clock.ended:
                process.terminate()
    if process.returncode:
        raise RuntimeError(f"it ended with {process.returncode}")
    return Tally.from_plain(json.loads(told.splitlines()[-1]))


def _told(process: subprocess.Popen[str]) -> str | None:
    """What it said, once it has ended; None after a second."""
    try:
        return process.communicate(timeout=1)[0]
    except subprocess.TimeoutExpired:
        return None


class Commands:
    """Commands in a folder of their own, in children of a process that has imported everything."""

    def __init__(self, home: Path) -> None:
        import numpy as np

        self.home, self.work = home, home / "work"
        draws = np.random.default_rng(1)
        for name in ("one", "two"):
            rows = draws.normal(size=(60, 2)) + 6 * draws.integers(0, 2, (60, 1))
            lines = [",".join(f"{cell:.4f}" for cell in row) for row in rows]
            (home / f"{name}.csv").write_text("\n".join(["a,b", *lines]) + "\n")
        self.base = home / "base"
        self.library = ctypes.CDLL(None)
        self.library.calls_watch.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
        self.library.calls_seen.restype = ctypes.c_long
        self.work.mkdir()
        assert self.child(["fit", str(home / "one.csv"), "-o", str(self.base), *FIT])[0] == 0
        for begin, args, _ in self.known().values():
            begin()
            self.child(args)
            for name in (home / "modules").read_text().split():  # so that the next children need not
                with contextlib.suppress(Exception):
                    importlib.import_module(name)

    def known(self) -> dict[str, tuple[Callable[[], None], list[str], Path]]:
        """How to begin, what to run, and what is then looked at."""
        two, out, folder = str(self.home / "two.csv"), self.work / "out", self.work / "run"
        return {
            "fit": (self.fresh, ["fit", two, "-o", str(folder), *FIT], folder),
            "fit --force": (self.over, ["fit", two, "-o", str(folder), "--force", *FIT], folder),
            "assign": (self.one_file, ["assign", str(self.base), two, "-o", str(out), "--force", "-q"], out),
            "export --sql": (
                self.one_file,
                ["export", str(self.base), "--sql", "duckdb", "-o", str(out), "--force"],
                out,
            ),
            "columns": (self.one_file, ["columns", two, "-o", str(out), "--force", "-q"], out),
        }

    def fresh(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()

    def over(self) -> None:
        self.fresh()
        shutil.copytree(self.base, self.work / "run")

    def one_file(self) -> None:
        self.fresh()
        (self.work / "out").write_text("OLD")

    def child(self, args: list[str], at: int = -1, fault: str = "") -> tuple[int, int, str]:
        """Exit code (minus the signal), calls seen, and what was said."""
        told = self.home / "told"
        told.write_text("0")
        pid = os.fork()
        if pid == 0:
            self._run(args, at, fault, told)
        _, status = os.waitpid(pid, 0)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        return code, int(told.read_text()), (self.home / "said").read_text()

    def _run(self, args: list[str], at: int, fault: str, told: Path) -> None:
        from ilk.cli.main import cli

        said = os.open(self.home / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        code = 99
        number = getattr(errno, fault, 0)
        self.library.calls_watch(at, number, os.fsencode(self.work), int(fault == KILL))
        try:
            cli.main(args, prog_name="ilk")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        except BaseException as error:
            os.write(2, f"Traceback {error!r}".encode())
        seen = self.library.calls_seen()
        self.library.calls_watch(-1, 0, b"", 0)
        sys.stdout.flush()
        sys.stderr.flush()
        told.write_text(str(seen))
        (self.home / "modules").write_text("\n".join(sys.modules))
        os._exit(code)


def state(path: Path) -> dict[str, str]:
    """What stands there, by digests of the files; the time that a run took is not told."""
    if path.is_file():
        return {"": _digest(path)}
    if not path.is_dir():
        return {}
    return {one.name: _digest(one) for one in sorted(path.iterdir()) if one.is_file()}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def judged(before: dict[str, str], now: dict[str, str], names: set[str]) -> str:
    """Old, new, or neither: reports and summaries differ from run to run by the seconds they took."""
    if now == before:
        return "old"
    fresh = [name for name in now if now[name] != before.get(name)]
    return "new" if set(now) == names and len(fresh) == len(names) else "MIXTURE"


def every_call(clock: Clock, home: Path, job: int, jobs: int) -> Tally:
    """Every call of every command, as far as the time goes, in an order that does not favour the first; one of several
    processes takes its share of them."""
    tally, commands = (
        Tally("the N-th file call of whole commands fails (6 codes) or is SIGKILL"),
        Commands(home),
    )
    todo = []
    for name, (begin, args, path) in commands.known().items():
        begin()
        code, calls, said = commands.child(args)
        assert code == 0, said
        todo += [
            (name, set(state(path)), at, fault) for at in range(1, calls + 1) for fault in (*FAULTS, KILL)
        ]
    random.Random(0).shuffle(todo)
    mine = todo[job::jobs]
    for number, (name, names, at, fault) in enumerate(mine):
        if not clock.more():
            tally.ended[f"of {len(mine)} in this share, {number} tried"] = 0
            break
        begin, args, path = commands.known()[name]
        begin()
        before = state(path)
        code, _, said = commands.child(args, at, fault)
        found = judged(before, state(path), names)
        where = f"{name}, call {at}, {fault}"
        tally.ended[f"killed, {found}" if code < 0 else f"exit {code}, {found}"] += 1
        if found == "MIXTURE":
            tally.failed(f"{name}: neither old nor new", where)
        if (code >= 0 and code not in KNOWN) or "Traceback" in said:
            tally.failed(f"{name}: exit {code} {said.strip()[-120:]}", where)
        if code == 0 and found == "old" and name != "fit":
            tally.failed(f"{name}: done, and nothing written", where)
        again = commands.child(args)[0]
        litter = [one for one in os.listdir(commands.work) if one.startswith(".")]
        if (again != 0 and name != "fit") or litter:
            tally.failed(f"{name}: the next run ends with {again} and leaves {len(litter)} behind", where)
    else:
        tally.ended["all calls of all commands"] = 0
    tally.seconds, tally.modules = clock.spent, loaded()
    return tally


if __name__ == "__main__":
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, end_early)
    with tempfile.TemporaryDirectory() as own:
        found = every_call(Clock(float(sys.argv[1])), Path(own), *map(int, sys.argv[2:]))
    print(json.dumps(found.as_plain()))
