"""Commands on runs that are done: judge, explain, compare, check, export. Nothing heavy is imported before one runs."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from ilk.cli.options import reading_of
from ilk.cli.process import CONDITION_FAILED, READING, SAYING, put, say_caution, surface_of
from ilk.errors import Caution, UsageError, recorded, shown


@click.command()
@click.argument("run")
@click.option("--truth", required=True, metavar="COL", help="The column of known classes.")
@click.option(
    "--data", metavar="FILE", help="The file with the truth column, row for row, if it is not in RUN."
)
@click.option("--group", default="group", show_default=True, metavar="COL", help="The column of groups.")
@SAYING
def judge(run: str, truth: str, data: str | None, group: str, as_json: bool, quiet: bool, debug: bool) -> int:
    """Compare groups with known classes.

    RUN is a folder that ilk fit wrote, or a file with a column of groups.
    """
    from ilk.cli.run_folder import json_bytes
    from ilk.report.summary import plain, truth_entry
    from ilk.table.read import read
    from ilk.text.judgement import judgement

    table = read(_labels_file(run))
    other = table if data is None else read(data)
    groups, classes = _column(table, group, "--group"), _column(other, truth, "--truth")
    if len(groups) != len(classes):
        raise UsageError(
            "lengths-differ",
            f"{table.source} has {len(groups)} rows and {other.source} has {len(classes)}",
            do="Give the table that the groups were made from",
        )
    placed = [(g, c) for g, c in zip(groups, classes, strict=True) if g is not None]
    entry = truth_entry([g for g, _ in placed], [c for _, c in placed], truth)
    entry["rows_without"] += len(groups) - len(placed)
    if as_json:
        put(json_bytes(plain(entry)).decode(), end="")
    elif not quiet:
        put(judgement(plain(entry), surface_of(sys.stdout)))
    return 0


def _column(table: Any, name: str, option: str) -> list[Any]:
    if name not in table.names:
        listed = ", ".join(shown(n) for n in table.names[:8])
        raise UsageError(
            "unknown-column",
            f"{table.source} has no column {shown(name)!r}",
            do=f"{option} takes one of: {listed}"
            + ("; or name the table: --data FILE" if option == "--truth" else ""),
        )
    return list(table.column(name).to_pylist())


@click.command()
@click.argument("run")
@click.argument("group", required=False)
@click.option("--row", type=click.IntRange(min=0), metavar="N", help="Explain one row, counted from 0.")
@click.option("--data", metavar="FILE", help="The table, to show the values of the row.")
@SAYING
def explain(run: str, group: str | None, row: int | None, data: str | None, **options: Any) -> int:
    """Explain in words what RUN found: all groups, one GROUP, or one row."""
    from ilk.analysis.folder import find_summary
    from ilk.cli.run_folder import find_row, json_bytes
    from ilk.text import explain as words

    summary, surface = find_summary(run), surface_of(sys.stdout)
    if row is not None:
        placed, cells = find_row(run, row, data)
        if options["as_json"]:
            put(json_bytes({**placed, "cells": cells}).decode(), end="")
        elif not options["quiet"]:
            put(words.row_text(summary, placed, cells, surface))
        return 0
    if options["as_json"]:
        put(
            json_bytes(summary["groups"] if group is None else words.find_group(summary, group)[1]).decode(),
            end="",
        )
    elif not options["quiet"]:
        put(words.overview(summary, surface) if group is None else words.group_text(summary, group, surface))
    return 0


@click.command()
@click.argument("first")
@click.argument("second")
@click.option(
    "--id",
    "id_",
    metavar="COL",
    help="Match rows by this column; by default by the id of both runs.",
)
@click.option("-o", "--output", metavar="FILE", help="Write every row with its two groups, CSV or Parquet.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@SAYING
def compare(first: str, second: str, id_: str | None, output: str | None, force: bool, **options: Any) -> int:
    """Compare two runs on the same rows: how far they agree, which groups correspond, which rows moved.

    FIRST and SECOND are folders that ilk fit wrote, or files with a column called group.
    """
    from ilk.analysis.runs import compared
    from ilk.cli.run_folder import json_bytes, write_columns
    from ilk.monitor import comparison
    from ilk.text.comparison import comparison_text

    found = compared(first, second, id_)
    document = found.document
    for caution in found.cautions if not options["quiet"] else ():
        say_caution(caution)
    if output is not None:
        rows = comparison.rows_of(found.first, found.second, document, document["matched_by"])
        write_columns(output, rows, overwrite=force)
    if options["as_json"]:
        put(json_bytes(document).decode(), end="")
    elif not options["quiet"]:
        put(comparison_text(document, surface_of(sys.stdout)))
    return 0


def _labels_file(run: str) -> str:
    from ilk.analysis.folder import find_assignments

    return find_assignments(run) if os.path.isdir(run) else run


@click.command()
@click.argument("run")
@click.option(
    "--sql", "dialect", metavar="DIALECT", help="One SELECT that gives rows their group: duckdb or spark."
)
@click.option("--json", "as_json", is_flag=True, help="The parameters as JSON.")
@click.option(
    "--table", default="data", show_default=True, metavar="NAME", help="The table that the SELECT reads."
)
@click.option("-o", "--output", metavar="FILE", help="File to write to, instead of standard output.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings.")
@click.option("--debug", is_flag=True, help="Show where an error happened.")
def export(
    run: str, dialect: str | None, as_json: bool, table: str, output: str | None, **options: Any
) -> int:
    """Write the model of RUN for other programs, with --sql DIALECT or --json.

    The SELECT gives every row the group that ilk assign gives it, in DuckDB and in Spark.
    """
    import warnings

    from ilk.analysis.folder import find_model
    from ilk.cli.run_folder import json_bytes
    from ilk.store import write_atomically

    if as_json == (dialect is not None):
        raise UsageError(
            "what-to-export",
            "nothing to write was named",
            do="Use either --sql duckdb, --sql spark or --json",
        )
    model = find_model(run)
    with warnings.catch_warnings(record=True) as made:
        warnings.simplefilter("always")
        if dialect is None:
            from ilk.export.record import record

            text = json_bytes(record(model)).decode()
        else:
            from ilk.export.dialects import dialect_of
            from ilk.export.sql import select

            text = select(model, dialect_of(dialect), table)
    for caution in recorded(made) if not options["quiet"] else ():
        say_caution(caution)
    if output is None:
        put(text, end="")
    else:
        write_atomically(output, text.encode("utf-8", "backslashreplace"), overwrite=options["force"])
    return 0


@click.command()
@click.argument("run")
@click.argument("data")
@click.option("--fail-on", type=click.Choice(["drift"]), help="Exit with code 4 if the rows have drifted.")
@click.option(
    "--absent",
    type=click.Choice(["error", "missing"]),
    default="error",
    show_default=True,
    help="What to do when a column of the model is absent: refuse, or treat it as missing.",
)
@READING
@SAYING
def check(run: str, data: str, fail_on: str | None, absent: str, **options: Any) -> int:
    """Drift: do the rows of DATA still look like those that RUN was fitted on?

    Columns that changed (divergence in nats per row), new categories, shares of the groups then and now, unusual rows.
    """
    import warnings

    from ilk.analysis.folder import find_model
    from ilk.analysis.runs import checked
    from ilk.cli.run_folder import json_bytes
    from ilk.text.drift import check_text

    model = find_model(run)
    with warnings.catch_warnings(record=True) as made:
        warnings.simplefilter("always")
        table = model.read(data, **reading_of(options))
        document = checked(model, table, absent)
    for caution in _told(made) if not options["quiet"] else ():
        say_caution(caution)
    if options["as_json"]:
        put(json_bytes(document).decode(), end="")
    elif not options["quiet"]:
        put(check_text(document, surface_of(sys.stdout)))
    return CONDITION_FAILED if fail_on and document["verdict"]["word"] == fail_on else 0


def _told(made: Any) -> list[Caution]:
    """Warnings that the check does not say itself."""
    return [caution for caution in recorded(made) if caution[0] not in ("unseen-category", "empty-rows")]
