"""The command line: parse, call the job, print. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import click

import ilk
from ilk.cli.look_commands import choose, columns
from ilk.cli.options import job_of, names_of, reading_of, with_names
from ilk.cli.page_commands import open_page, regroup
from ilk.cli.process import (
    BUG,
    MEMORY,
    READING,
    RUNNING,
    SAYING,
    TYPING,
    Commands,
    KRange,
    RowPair,
    Seconds,
    interrupted_code,
    note_written,
    progress_to_stderr,
    put,
    say,
    say_caution,
    say_earlier,
    say_unfinished,
    surface_of,
)
from ilk.cli.run_commands import check, compare, explain, export, judge
from ilk.errors import UsageError, escaped, recorded, shown


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from ilk import kernels
        from ilk.kernels.gpu.launch import card_name

        card = card_name()
        gpu = "" if card is None else f"; GPU: {card}"
        click.echo(f"ilk {ilk.__version__} (kernels: {kernels.NAMED}{gpu})")
        context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Version, kernels, GPU.",
)
def cli() -> None:
    """Cluster the rows of a mixed-type table and explain each group: rows of the same ilk, and why.

    \b
    ilk open customers.csv                   a page to work in, on this machine
    ilk fit customers.csv                    groups of a table, into customers.ilk/
    ilk explain customers.ilk B              one group in words
    ilk assign customers.ilk new.csv         groups of new rows
    ilk choose customers.csv                 which method suits this table
    ilk describe customers.csv --labels tier the same report for groups you have
    ilk demo                                 try it on a bundled table

    Exit codes: 0 done, 1 bug in ilk, 2 usage, 3 data refused, 4 no valid model or a requested condition failed,
    5 resource limit, 6 model file refused, 7 engine lost, 130 interrupted.
    """


@cli.command()
@click.argument("data")
@click.option(
    "--k",
    type=KRange(),
    default="auto",
    show_default=True,
    metavar="5|2..9",
    help="Number of groups, or a range to choose from.",
)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="gaussian, assorted, k-means, k-medians, trimmed-k-means, spectral, ...: ilk choose lists them; auto: "
    "gaussian where all columns are numbers, else assorted (a mixed-type mixture).",
)
@click.option(
    "--merge",
    type=click.Choice(["separation", "none"]),
    default="separation",
    show_default=True,
    help="Merge components without a density dip between them into one group, or keep every component as a group "
    "(then --k is a number of components).",
)
@click.option(
    "--min-size", type=int, metavar="ROWS", help="Merge groups with fewer rows into the one they fit best."
)
@click.option(
    "--max-size",
    type=int,
    metavar="ROWS",
    help="Largest size of a group: the rows that lose least move to their next best group.",
)
@click.option(
    "--match-to",
    metavar="RUN",
    help="Reuse group letters and names from an earlier run for matching groups.",
)
@click.option(
    "--budget",
    type=Seconds(),
    metavar="60s",
    help="Time limit, after which the best result so far is returned.",
)
@click.option(
    "--column-weight",
    multiple=True,
    metavar="COL=NUMBER",
    help="How much a column counts: 2 is the column twice, 0 leaves it out; repeatable.",
)
@click.option(
    "--transform",
    multiple=True,
    metavar="COL=KIND",
    help="What the method sees of a column of numbers: log, rank or none; repeatable.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where passes over the rows run: cuda is an NVIDIA GPU, auto takes it where it pays.",
)
@click.option("--known", metavar="COL", help="A column with the labels of the rows whose group is known.")
@click.option(
    "--must-link",
    type=RowPair(),
    multiple=True,
    metavar="ROW,ROW",
    help="Rows that belong to the same group, counted from 0; repeatable.",
)
@click.option(
    "--cannot-link",
    type=RowPair(),
    multiple=True,
    metavar="ROW,ROW",
    help="Rows that belong to different groups; repeatable.",
)
@RUNNING
@click.option(
    "--resume",
    is_flag=True,
    help="Continue a run of the same table and options that was killed or stopped, from its checkpoint.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@MEMORY
@TYPING
@READING
@SAYING
def fit(data: str, **options: Any) -> int:
    """Find the groups of DATA, a file, a folder of Parquet, a postgresql:// address, or - for standard input.

    Files: CSV, TSV, Parquet, Arrow, JSON, Excel, SQLite, DuckDB, and one of them in gzip, zstd or zip. Writes
    DATA.ilk/ with the report, the model, the assignments and the summary; a long run keeps DATA.ilk.checkpoint.
    """
    from ilk.analysis.checkpoint import Checkpoint
    from ilk.analysis.run_folder import check_free, folder_for

    folder = options["output"] or folder_for(data)
    checkpoint = Checkpoint.beside(folder, resume=options["resume"])
    force = options["force"] or (options["resume"] and checkpoint.began is not None)
    check_free(folder, data, force=force)
    parquet = os.path.isdir(data) or data.lower().endswith((".parquet", ".pq"))
    job = replace(job_of(data, options), checkpoint=checkpoint)
    if options["dry_run"]:
        return _rehearse(job, folder, options)
    say_earlier(checkpoint, quiet=options["quiet"])
    return _run(job, folder, options, {"parquet": parquet, "force": force})


@cli.command()
@click.argument("data")
@click.option("--labels", required=True, metavar="COL", help="The column that says the group of each row.")
@RUNNING
@TYPING
@READING
@SAYING
def describe(data: str, **options: Any) -> int:
    """Describe groups of DATA that came from elsewhere: a column of labels, of another program or made by hand.

    Writes the same report, assignments and summary as ilk fit. Rows with -1 or without a label belong to no group.
    Labels cannot be fitted again: their stability is not known, and new rows cannot be assigned.
    """
    from ilk.analysis.run_folder import check_free, folder_for

    folder = options["output"] or folder_for(data)
    check_free(folder, data, force=options["force"])
    return _run(job_of(data, options), folder, options, {"force": options["force"]})


def _run(job: Any, folder: str, options: dict[str, Any], how: dict[str, Any]) -> int:
    from ilk.analysis.other_k import kept_models
    from ilk.analysis.run import run_and_keep
    from ilk.analysis.run_folder import claimed, write_into

    names = names_of(options.get("names", ()), job.k if job.match_to is None else "auto")
    meter, how["rows"] = job.callback, not options["no_rows"]
    with claimed(folder, str(job.data)) as claim, nullcontext() if meter is None else meter:
        result, findings = run_and_keep(job)
        if meter is not None:
            meter.now("writing")
        try:
            fits, findings = kept_models(findings, result), None  # its rows are not needed to write
            summary = write_into(claim, with_names(result, names), fits=fits, **how)
        except KeyboardInterrupt:  # once more, without what takes time
            if claim.written:
                note_written(folder)
                raise
            summary = write_into(claim, with_names(result.stopped(), names), **how)
        note_written(folder)
        if job.checkpoint is not None and not summary["interrupted"]:
            job.checkpoint.done()
    _tell(summary, options)
    if not summary["interrupted"]:
        return 0
    say(f"interrupted; the best so far is in {shown(folder, 200)}")
    say_unfinished(job.checkpoint)
    return interrupted_code()


def _tell(summary: dict[str, Any], options: dict[str, Any]) -> None:
    from ilk.analysis.run_folder import json_bytes
    from ilk.text.summary import render

    if options["as_json"]:
        put(json_bytes(summary).decode(), end="")
    elif not options["quiet"]:
        put(render(summary, surface_of(sys.stdout)))


def _rehearse(job: Any, folder: str, options: dict[str, Any]) -> int:
    from ilk.analysis.asked import known, ks_to_try
    from ilk.analysis.prepare import prepare
    from ilk.analysis.run_folder import json_bytes
    from ilk.methods import names
    from ilk.report.summary import column_entries
    from ilk.text.layout import line
    from ilk.text.summary import columns_table

    known("method", job.method, names())
    ready = prepare(job)
    ks, _ = ks_to_try(job.k, ready.rows, job.min_size, job.max_size)
    if options["as_json"]:
        plan = {
            "columns": column_entries(ready.schema, ready.used),
            "methods": [ready.method],
            "k": list(ks),
            "rows": ready.rows.n_rows,
            "folder": folder,
        }
        put(json_bytes(plan).decode(), end="")
    elif not options["quiet"]:
        surface = surface_of(sys.stdout)
        what = f"{ready.method}, K {ks[0] if len(ks) == 1 else f'{ks[0]}-{ks[-1]}'}"
        what += f", {ready.rows.n_rows} rows, {len(ready.used.used)} columns"
        put(columns_table(ready.used.print_lines(), surface))
        put(
            surface.fit(
                "\n".join(
                    [
                        "",
                        *line("would try", [(what, "")], surface),
                        *line("would write", [(shown(folder, 80) + "/", "")], surface),
                    ]
                )
            )
        )
    return 0


@cli.command()
@click.argument("run")
@click.argument("data")
@click.option(
    "-o",
    "--output",
    default="-",
    show_default=True,
    metavar="FILE|-",
    help="CSV or Parquet file to write; - is standard output.",
)
@click.option(
    "--absent",
    type=click.Choice(["error", "missing"]),
    default="error",
    show_default=True,
    help="What to do when a column of the model is absent: refuse, or treat it as missing.",
)
@click.option("--with-data", is_flag=True, help="Write the columns of DATA too.")
@click.option("--force", is_flag=True, help="Overwrite the output file.")
@MEMORY
@READING
@click.option("-q", "--quiet", is_flag=True, help="Print no warnings.")
@click.option("--debug", is_flag=True, help="Show where an error happened.")
def assign(
    run: str, data: str, output: str, with_data: bool, absent: str, force: bool, quiet: bool, **options: Any
) -> int:
    """Give the rows of DATA the groups of RUN: a folder that ilk fit wrote, or a model file.

    Columns: row, group, probability (where the method has one), second (the second choice), novelty (0 at the
    centre of its group, 1 for more unusual than any row of the fit).
    """
    import warnings

    from ilk.analysis.folder import find_model
    from ilk.analysis.run_folder import counted, csv_chunks, new_parts, write_parts

    model = find_model(run)
    if (
        output != "-"
        and data != "-"
        and os.path.exists(output)
        and os.path.exists(data)
        and os.path.samefile(output, data)
    ):
        raise UsageError(
            "output-is-input",
            "the output file is the input",
            where=shown(output, 200),
            do="Give another file: -o FILE",
        )
    with warnings.catch_warnings(record=True) as made:
        warnings.simplefilter("always")
        table = model.open(data, options["memory"], **reading_of(options))
        parts = new_parts(model, table, with_data=with_data, absent=absent)
        if output == "-":
            for chunk in csv_chunks(counted(parts, table.n_rows)):
                put(chunk, end="")
        else:
            write_parts(output, parts, table.n_rows, overwrite=force)
    if not quiet:
        for caution in dict.fromkeys(recorded(made)):
            say_caution(caution)
    return 0


@cli.command()
@SAYING
def demo(**options: Any) -> int:
    """Try it: the groups of 344 penguins, written to penguins.ilk/."""
    from importlib.resources import as_file, files

    from ilk.analysis.job import Job
    from ilk.analysis.run_folder import check_free, folder_for, is_demo

    folder = folder_for("penguins.csv")
    if not os.access(".", os.W_OK):
        import tempfile

        folder = os.path.join(tempfile.mkdtemp(prefix="ilk-demo-"), folder)
    again = is_demo(folder)
    check_free(folder, "-", force=again)
    if not options["quiet"] and not options["as_json"]:
        say("$ ilk fit penguins.csv --truth species --types year=categorical")
    with as_file(files("ilk.data") / "penguins.csv") as path:
        callback = None if options["quiet"] else progress_to_stderr()
        job = Job(str(path), truth="species", types={"year": "categorical"}, callback=callback)
        code = _run(job, folder, {**options, "no_rows": False}, {"force": again, "marks": {"demo": True}})
    if not options["quiet"] and not options["as_json"]:
        say(f"report: {os.path.abspath(os.path.join(folder, 'report.html'))}")
    return code


for command in (choose, columns, judge, explain, compare, check, export, regroup, open_page):
    cli.add_command(command)


def main() -> None:
    """The console script."""
    try:
        cli.main(prog_name="ilk")
    except Exception as error:  # with --debug alone
        import traceback

        sys.stderr.write(escaped(traceback.format_exc(), "\n"))
        sys.exit(getattr(error, "exit_code", BUG))


if __name__ == "__main__":
    main()
