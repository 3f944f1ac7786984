"""What reaches the screen: hostile names inert, plain characters without UTF-8, narrow terminals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"
HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\u202egpj.exe",
    "zero\u200bwidth",
    "two\nlines",
    "nul\u0085next",
    "emoji 🐧",
    "<script>alert(1)</script>",
    "x" * 10_000,
    "=cmd()",
]
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def table_with(name, folder):
    rows = [{name: 1 + i % 5 * 0.1, "b": 2.0 + i % 3 * 0.1, "c": f"{name} {i % 3}"} for i in range(20)]
    rows += [{name: 9 + i % 5 * 0.1, "b": 8.0 + i % 3 * 0.1, "c": f"{name} {i % 2}"} for i in range(20)]
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.badinput("C10")
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_from_data_cannot_act_on_the_terminal(ilk, tmp_path, name):
    table_with(name, tmp_path)
    shown = [
        ilk("fit", "t.jsonl", "--k", "2"),
        ilk("columns", "t.jsonl", "-o", "types.toml"),
        ilk("fit", "t.jsonl", "--dry-run", "-o", "other"),
        ilk("fit", "t.jsonl", "--truth", name + "?", "-o", "other"),
        ilk("fit", "t.jsonl", "--weight", "c", "-o", "other"),
        ilk("fit", "t.jsonl", "--truth", "c", "-o", "judged"),
        ilk("judge", "judged", "--truth", "c"),
        ilk("assign", "t.ilk", "judged/assignments.csv"),
        ilk("compare", "t.ilk", "judged"),
        ilk("compare", "t.ilk", "judged", "--id", name),
        ilk("check", "t.ilk", "t.jsonl"),
        ilk("fit", "t.jsonl", "--match-to", "t.ilk", "--max-size", "25", "-o", "matched"),
    ]
    assert [r.exit_code for r in shown] == [0, 0, 0, 2, 3, 0, 0, 3, 0, 2, 0, 0]
    for result in shown:
        assert not FORBIDDEN.search(result.stdout), result.stdout
        assert not FORBIDDEN.search(result.stderr), result.stderr
    # The data keep their names.
    summary = json.loads((tmp_path / "t.ilk" / "summary.json").read_text())
    assert name in [c["name"] for c in summary["table"]["columns"]]
    assert ilk("fit", "t.jsonl", "--types", "types.toml", "-q", "-o", "again").exit_code == 0


def test_without_utf8_marks_are_plain(shell, tmp_path):
    (tmp_path / "t.csv").write_text("größe,b\n" + "1.5,2\n1.7,2.5\n9.5,8\n9.5,8.5\n" * 10)
    made = shell("fit", "t.csv", "--k", "2", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    text = made.stdout.decode("ascii")
    assert made.returncode == 0, made.stderr
    assert "solid: 2 groups" in text
    assert "gr\\xf6\\xdfe" in text
    assert " ^ | " in text or " v | " in text


def on_a_terminal(folder, *args, width=80, **env):
    """Run under a pseudo-terminal of a given width and give back all that it received."""
    import fcntl
    import pty
    import struct
    import termios

    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    base = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "TERM")}
    source = str(Path(__file__).parents[2] / "src")
    process = subprocess.Popen(
        [sys.executable, "-m", "ilk.cli.main", *map(str, args)],
        cwd=folder, stdin=other, stdout=other, stderr=other,
        env={**base, "PYTHONPATH": source, "TERM": "xterm", "PYTHONUTF8": "1", **env},
    )  # fmt: skip
    os.close(other)
    received = b""
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:
            break
        if not chunk:
            break
        received += chunk
    os.close(main)
    assert process.wait(60) == 0
    return received.decode().replace("\r\n", "\n")


def test_colour_and_progress_on_a_terminal_only(tmp_path):
    text = on_a_terminal(tmp_path, "fit", DATA / "penguins.csv")
    assert "\x1b[1;34mA" in text
    assert re.search(r"fitting  assorted  \d+ passes  best BIC", text)
    assert re.search(r"\r +\r\x1b\[1mpenguins.csv", text)  # the line is gone when the table comes
    text = on_a_terminal(tmp_path, "fit", DATA / "penguins.csv", "--force", "--method", "k-means")
    assert "fitting  K 9 k-means  ████████████ 9/9" in text
    plain = on_a_terminal(tmp_path, "fit", DATA / "penguins.csv", "--force", NO_COLOR="1")
    assert "\x1b[1" not in plain
    dumb = on_a_terminal(tmp_path, "fit", DATA / "penguins.csv", "--force", TERM="dumb")
    assert "\x1b" not in dumb
    assert "fitting" not in dumb


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_lines_fit_the_terminal(tmp_path, width):
    text = on_a_terminal(tmp_path, "fit", DATA / "wine.csv", width=width, TERM="dumb")
    assert max(map(len, text.splitlines())) <= min(width, 100)


def test_more_groups_than_fit_are_counted(ilk):
    result = ilk("fit", DATA / "wine.csv", "--k", "20")
    assert "and 8 more, in summary.json" in result.stdout
    assert "as asked" in result.stdout


def test_data_on_stdout_and_everything_else_on_stderr(ilk, blobs):
    ilk("fit", "blobs.csv", "--truth", "size", "-q")
    result = ilk("assign", "blobs.ilk", "blobs.csv")
    assert result.stdout.splitlines()[0] == "row,group,probability,second,novelty"
    assert len(result.stdout.splitlines()) == 51
    result = ilk("assign", "blobs.ilk", "-", input="extra,y,x\n1,8.1,9.2\n")
    assert result.stdout.startswith("row,group,probability,second,novelty\n0,B,1.0,A,")
    assert result.stderr.startswith("caution [extra-column]: ")
    assert ilk("fit", "-", "-q", input=blobs.read_text()).exit_code == 0
    assert Path("stdin.ilk/model.ilk").exists()


def test_help_is_quick_and_imports_nothing_heavy(shell):
    packages = ("numpy", "pyarrow", "sklearn", "scipy")
    heavy = f"import sys, ilk.cli.main; print([m for m in {packages} if m in sys.modules])"
    source = str(Path(__file__).parents[2] / "src")
    made = subprocess.run(
        [sys.executable, "-c", heavy], env={**os.environ, "PYTHONPATH": source}, capture_output=True
    )
    assert made.stdout.decode().strip() == "[]"
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        assert shell("--help").returncode == 0
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.5  # 0.1 s on an idle machine; test machines are shared


def test_version(ilk):
    import ilk as package
    from ilk import kernels

    assert ilk("--version").stdout == f"ilk {package.__version__} (kernels: {kernels.NAMED})\n"


def test_a_traceback_shows_no_control_characters(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "ilk.cli.main", "fit", "no\x1b[31msuch\u202e.csv", "--debug"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ended.returncode == 2
    assert "Traceback" in ended.stderr
    assert "no\\x1b[31msuch" in ended.stderr
    assert not {"\x1b", "\u202e"} & {*ended.stderr, *ended.stdout}
