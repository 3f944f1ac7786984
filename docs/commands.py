"""The page of the command line, written from the commands themselves at every build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ilk.cli.main import cli
from ilk.errors import IlkError

OPENING = """\
# Command line

`ilk fit customers.csv` needs no option. Data go to standard output, everything else to standard error; `--json` prints
the summary as JSON. Errors say what is wrong, where, and how to fix it, with an exit code.

| exit code | when |
|---|---|
| 0 | Done. |
| 1 | A bug in ilk. |
"""


def page() -> str:
    """Every command with its help, as `ilk COMMAND --help` prints it."""
    context = click.Context(cli, info_name="ilk")
    kinds = sorted(IlkError.__subclasses__(), key=lambda kind: kind.exit_code)
    rows = [f"| {kind.exit_code} | {kind.__doc__} |\n" for kind in kinds]
    parts = [OPENING + "".join(rows) + "| 130 | Interrupted. |\n"]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        text = command.get_help(click.Context(command, info_name=name, parent=context, terminal_width=100))
        parts.append(f"## ilk {name}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def setup(app: Any) -> dict[str, bool]:
    target = Path(app.srcdir) / "command-line.md"
    app.connect("builder-inited", lambda app: target.write_text(page(), encoding="utf-8"))
    return {"parallel_read_safe": True}
