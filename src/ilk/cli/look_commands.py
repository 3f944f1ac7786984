"""Commands that look at a table before a fit: what its columns are taken for, and which method is for it."""

from __future__ import annotations

import sys
from typing import Any

import click

from ilk.cli.options import reading_of, types_of
from ilk.cli.process import READING, SAYING, TYPING, put, say, say_caution, surface_of
from ilk.errors import quoted, shown


@click.command()
@click.argument("data")
@click.option(
    "-o", "--output", metavar="FILE", help="Write the column types to an editable file for --types."
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@TYPING
@READING
@SAYING
def columns(data: str, output: str | None, force: bool, as_json: bool, quiet: bool, **options: Any) -> int:
    """Show the type of every column of DATA, and why."""
    from ilk.analysis.run_folder import json_bytes
    from ilk.report.summary import column_entries
    from ilk.store import write_atomically
    from ilk.table.addresses import place_of
    from ilk.table.read import read
    from ilk.table.schema import types_text
    from ilk.table.understand import understand
    from ilk.text.summary import columns_table

    table = read(data, **reading_of(options))
    schema = understand(
        table,
        types=types_of(options["types"]),
        ignore=options["ignore"],
        id=options["id_"],
        weight=options["weight"],
        truth=options["truth"],
    )
    if output is not None:
        write_atomically(output, types_text(schema).encode(), overwrite=force)
    if as_json:
        roles = {"weight": schema.weight, "truth": schema.truth, "id": schema.id}
        put(json_bytes({"columns": column_entries(schema, schema), **roles}).decode(), end="")
    elif not quiet:
        put(columns_table(schema.print_lines(), surface_of(sys.stdout)))
        for caution in (*table.warnings, *schema.warnings):
            say_caution(caution)
        if output is not None:
            name = shown(output, 80)
            again = f"ilk fit {quoted(shown(place_of(data), 80))} --types {quoted(name)}"
            say(f"wrote {name}; edit it and use it: {again}")
    return 0


@click.command()
@click.argument("data", required=False)
@TYPING
@READING
@SAYING
def choose(data: str | None, as_json: bool, quiet: bool, **options: Any) -> int:
    """List the methods and what they are for; with DATA, recommend one for this table, and say why."""
    from ilk.analysis import choose as advice
    from ilk.analysis.job import Job
    from ilk.analysis.run_folder import json_bytes
    from ilk.table.addresses import place_of

    surface = surface_of(sys.stdout)
    if data is None:
        if as_json:
            put(json_bytes([vars(entry) for entry in advice.entries()]).decode(), end="")
        elif not quiet:
            put(advice.guide(surface))
        return 0
    job = Job(
        data,
        weight=options["weight"],
        types=types_of(options["types"]),
        truth=options["truth"],
        id=options["id_"],
        ignore=options["ignore"],
        reading=reading_of(options),
    )
    found = advice.advise(job)
    if as_json:
        put(json_bytes(found.to_dict()).decode(), end="")
    elif not quiet:
        put(advice.told(found, place_of(data), surface))
    return 0
