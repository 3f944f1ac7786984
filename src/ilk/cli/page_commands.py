"""Commands for working on a run: the page to work in, and groups changed by hand."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from ilk.cli.options import names_of
from ilk.cli.process import SAYING, put, say, surface_of
from ilk.errors import UsageError, shown

LARGEST_PORT = 65535


@click.command(name="open")
@click.argument("what", required=False, metavar="[TABLE|RUN|FOLDER]")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.option(
    "--port",
    type=click.IntRange(0, LARGEST_PORT),
    default=0,
    show_default="any that is free",
    metavar="N",
    help="Port on 127.0.0.1.",
)
@click.option("--read-only", is_flag=True, help="Show what is there; fit, change and upload nothing.")
@click.option(
    "--max-upload",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="GB",
    help="Largest file that can be dropped on the page.",
)
@click.option("--debug", is_flag=True, help="Show where an error happened.")
def open_page(
    what: str | None, no_browser: bool, port: int, read_only: bool, max_upload: float, debug: bool
) -> int:
    """Open a page to work in: drop a table, see its columns, fit, change the groups, export. Needs ilk[app].

    The page runs on this machine and sends nothing anywhere. It sees the folder of the table or run, or the current
    one; runs are written there as ilk fit writes them.
    """
    from ilk.app.serve import Opening, serve

    most = int(max_upload * 10**9)
    serve(Opening(what, port=port, browser=not no_browser, read_only=read_only, most_upload=most), say)
    return 0


@click.command()
@click.argument("run")
@click.argument("data", required=False)
@click.option("--merge", metavar="A,B", help="Groups that become one.")
@click.option("--split", metavar="GROUP", help="Group that becomes two.")
@click.option(
    "--k", type=click.IntRange(min=1), metavar="N", help="Number of groups, by a fit that the search kept."
)
@click.option("--name", "names", multiple=True, metavar="GROUP=TEXT", help="A name for a group; repeatable.")
@click.option(
    "--colour", "colours", multiple=True, metavar="GROUP=N", help="Colour 1 to 6 of a group; repeatable."
)
@click.option("-o", "--output", metavar="DIR", help="Folder to write to; RUN itself needs --force.")
@click.option("--force", is_flag=True, help="Overwrite an earlier run.")
@SAYING
def regroup(run: str, data: str | None, merge: str | None, split: str | None, **options: Any) -> int:
    """Change the groups of RUN by hand: merge some, split one in two, take another number, give names or colours.

    DATA is the table of the run, needed for all but names and colours. What is merged keeps its rule for new rows.
    """
    import warnings

    from ilk.analysis.regroup import regroup as changed
    from ilk.analysis.run_folder import check_free, json_bytes, write_run
    from ilk.text.summary import render

    folder = options["output"] or run
    check_free(folder, "-", force=options["force"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are in the summary
        result = changed(
            run,
            data,
            merge=(merge or "").upper(),
            split=None if split is None else split.upper(),
            k=options["k"],
            names=names_of(options["names"]),
            colours=_colours(options["colours"]),
        )
    parquet = os.path.exists(os.path.join(run, "assignments.parquet"))
    summary = write_run(result, folder, force=options["force"], parquet=parquet)
    if options["as_json"]:
        put(json_bytes(summary).decode(), end="")
    elif not options["quiet"]:
        put(render(summary, surface_of(sys.stdout)))
    return 0


def _colours(given: tuple[str, ...]) -> dict[str, int]:
    made: dict[str, int] = {}
    for text in given:
        mark, _, number = text.partition("=")
        if not mark.strip() or not number.strip().isdecimal():
            what = f"--colour {shown(text)!r} is no colour of a group"
            raise UsageError("bad-colour", what, do="Use GROUP=N: A=3")
        made[mark.strip().upper()] = int(number)
    return made
