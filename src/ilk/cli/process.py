"""What every command shares: how it ends, what it writes to, and the options that come again."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

import ilk
from ilk.cli import address_space
from ilk.errors import Caution, IlkError, ResourceError, escaped, shown, typed

if TYPE_CHECKING:
    from ilk.text.layout import Surface
    from ilk.text.progress import Meter

    ParamType = click.ParamType[Any]
else:  # generic since click 8.4 only
    ParamType = click.ParamType

BUG, USAGE, CONDITION_FAILED, RESOURCE, INTERRUPTED, PIPE = 1, 2, 4, 5, 130, 141
SIGNAL_BASE = 128
SHORT_OF = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class Stopped(KeyboardInterrupt):
    """The process was asked to end: the best found so far is written, as after Ctrl-C."""


_stopped_by: list[int] = []


class Commands(click.Group):
    """Commands whose every way to end has an exit code and, without --debug, no traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        given = args[0] if args else extra.get("args")
        debug = "--debug" in (sys.argv[1:] if given is None else list(given))
        extra["standalone_mode"] = False
        _stopped_by.clear()
        _written.clear()
        _printed.clear()
        _open_streams()
        try:
            with _signals():
                code = super().main(*args, **extra)
            _flush()
        except (PipeClosed, BrokenPipeError):
            _silence(sys.stdout)
            code = PIPE
        except (click.Abort, KeyboardInterrupt):
            say(f"interrupted; {_so_far()}")
            code = interrupted_code()
        except click.ClickException as error:
            _tell_usage(error)
            code = USAGE
        except IlkError as error:
            if debug:
                raise
            say(f"error [{error.code}]: {shown(typed(str(error), error.options), 2000)}")
            code = error.exit_code
        except MemoryError:
            if debug:
                raise
            say("error [out-of-memory]: memory ran out. Use fewer columns or rows, or more memory.")
            code = RESOURCE
        except Exception as error:
            if debug:
                raise
            if _stopped_by:  # what was cut short, an import above all, may say so in its own way
                say(f"interrupted; {_so_far()}")
                sys.exit(interrupted_code())
            if address_space.spent():
                say("error [out-of-memory]: memory ran out. Raise the limit (ulimit -v).")
                sys.exit(RESOURCE)
            if isinstance(error, OSError) and error.errno in SHORT_OF:
                _silence(sys.stdout)
                say(f"error [system]: the system refused a call: {error.strerror}. Make room and try again.")
                sys.exit(RESOURCE)
            say(
                f"error [bug]: an unexpected {type(error).__name__} in ilk {ilk.__version__}. "
                "This is a bug in ilk. Please report it with the command; --debug shows where."
            )
            code = BUG
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        address_space.check()
        return super().invoke(ctx)


def say(text: str) -> None:
    """A line on standard error; where that is closed or full nobody can be told."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(surface_of(sys.stderr).fit(escaped(text, "\n")) + "\n")


_written: list[str] = []
_printed: list[bool] = []


def note_written(folder: str) -> None:
    """From now on an interrupt cannot say that nothing was written."""
    _written[:] = [f"the run is in {shown(folder, 200)}"]


def _so_far() -> str:
    nothing = "a part was printed" if _printed else "nothing was written"
    return _written[0] if _written else nothing


def _open_streams() -> None:
    """Something stands where a standard stream was closed, or the next file opened would get what is meant for it."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)


def _flush() -> None:
    """What was printed has to arrive before all is well."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _silence(sys.stdout)
        raise _not_printed(error.strerror) from None


def _not_printed(why: str | None) -> ResourceError:
    return ResourceError(
        "write-failed",
        f"standard output could not be written: {why}",
        do=_written[0].capitalize() if _written else "Print to somewhere else",
    )


def say_earlier(checkpoint: Any, *, quiet: bool) -> None:
    """Say whether a run was left unfinished, and what becomes of it."""
    if not quiet and checkpoint.began is not None:
        began = f"the run of {shown(checkpoint.began)}"
        say(
            f"continuing {began}" if checkpoint.resume else f"{began} was not finished: --resume continues it"
        )


def say_unfinished(checkpoint: Any) -> None:
    """Say how a run that was stopped goes on."""
    if checkpoint is not None and checkpoint.began is not None:
        say("to go on: the same command with --resume")


def say_caution(caution: Caution) -> None:
    """A caution, the options it names as they are typed."""
    code, text = caution
    say(f"caution [{code}]: {shown(typed(text, caution.options), 400)}")


def _tell_usage(error: click.ClickException) -> None:
    """What click would show, without characters of the arguments that act on a terminal."""
    context = getattr(error, "ctx", None)
    if sys.stderr is None:
        return
    if context is not None:
        hint = context.command.get_help_option(context)
        sys.stderr.write(context.get_usage() + "\n")
        if hint is not None:
            sys.stderr.write(f"Try '{context.command_path} {hint.opts[-1]}' for help.\n\n")
    sys.stderr.write(escaped(f"Error: {error.format_message()}", "\n") + "\n")


def _silence(stream: Any) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does, with their own exit codes; each is remembered."""

    def stop(number: int, _: FrameType | None) -> NoReturn:
        _stopped_by.append(number)
        raise Stopped

    old: dict[int, Any] = {}
    with contextlib.suppress(ValueError):  # not the main thread: signals are not ours
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                number = getattr(signal, name)
                old[number] = signal.signal(number, stop)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, or not ours
            old[signal.SIGINT] = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def interrupted_code() -> int:
    return SIGNAL_BASE + _stopped_by[0] if _stopped_by else INTERRUPTED


def surface_of(stream: Any) -> Surface:
    from ilk.text.layout import WIDEST, Surface

    on_terminal = bool(getattr(stream, "isatty", lambda: False)())
    colour = on_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = (
        shutil.get_terminal_size((WIDEST, 24)).columns if on_terminal or "COLUMNS" in os.environ else WIDEST
    )
    return Surface(width, colour, getattr(stream, "encoding", None) or "utf-8", command_line=True)


class PipeClosed(Exception):
    """Whoever read our standard output has gone; not an OSError, which click would answer itself."""


def put(text: str, end: str = "\n") -> None:
    """Write to standard output: to a terminal without characters that act but our own, elsewhere as it is."""
    if sys.stdout is None:
        raise _not_printed("it is closed")
    if sys.stdout.isatty():
        text = surface_of(sys.stdout).fit(text.replace("\t", " " * 4))
    _printed.append(True)
    try:
        sys.stdout.write(text + end)
    except BrokenPipeError:
        raise PipeClosed from None
    except OSError as error:
        _silence(sys.stdout)
        raise _not_printed(error.strerror) from None


class KRange(ParamType):
    """`5`, `2..9` or `auto`."""

    name = "k"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).strip()
        from ilk.analysis.asked import k_of  # imports NumPy, which --help does without

        if text == "auto" or k_of(text) is not text:
            return k_of(text)
        if re.fullmatch(r"\d{1,9}", text):
            return int(text)
        return self.fail(f"{shown(text)!r} is not a number of groups; give 5, 2..9 or auto", param, ctx)


class Seconds(ParamType):
    """`60`, `60s`, `10m` or `2h`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h|)", str(value).strip())
        if not match or float(match[1]) <= 0:
            return self.fail(f"{shown(value)!r} is not a time; give 60s, 10m or 2h", param, ctx)
        return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


class RowPair(ParamType):
    """`3,17`: two row numbers."""

    name = "rows"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        match = re.fullmatch(r"\s*(\d{1,12})\s*,\s*(\d{1,12})\s*", str(value))
        if not match:
            return self.fail(f"{shown(value)!r} is no pair of row numbers; give 3,17", param, ctx)
        return int(match[1]), int(match[2])


Decorator = Callable[[Any], Any]


def _all_of(*options: Decorator) -> Decorator:
    def add(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return add


MEMORY = click.option(
    "--memory",
    metavar="SIZE",
    help="Memory to use, such as 2GB; a larger table is read in chunks, with the same result.",
)
READING = _all_of(
    click.option(
        "--sep", metavar="CHAR", help="Separator of a text file; detected automatically by default."
    ),
    click.option("--encoding", metavar="NAME", help="Encoding of a text file, such as latin-1."),
    click.option("--decimal", metavar="CHAR", help="The decimal mark of a text file, if it is not a point."),
    click.option(
        "--missing", multiple=True, metavar="TEXT", help="A text that means a missing value; repeatable."
    ),
    click.option(
        "--max-rejects",
        type=click.IntRange(min=0),
        metavar="N",
        help="Number of lines of a text file that may be skipped because they have too few or too many cells.",
    ),
    click.option("--sheet", metavar="NAME", help="The sheet of a workbook; the first by default."),
    click.option("--table", metavar="NAME", help="The table of a database; the only one by default."),
    click.option(
        "--sql",
        metavar="QUERY",
        help='Use the result of a query: "select * from data where …"; tables of a database and sheets by name.',
    ),
)
TYPING = _all_of(
    click.option(
        "--types",
        "types",
        multiple=True,
        metavar="FILE|COL=TYPE",
        help="Types of columns that are detected wrongly; ilk columns writes a file. Repeatable.",
    ),
    click.option("--ignore", multiple=True, metavar="COL", help="Leave a column out; repeatable."),
    click.option("--id", "id_", metavar="COL", help="The column of row identifiers."),
    click.option("--weight", metavar="COL", help="The column of row weights."),
    click.option(
        "--truth", metavar="COL", help="The column of known classes to compare with; never used for fitting."
    ),
)
RUNNING = _all_of(
    click.option(
        "--weights-are",
        type=click.Choice(["counts", "sampling"]),
        help="Weights are numbers of repeated rows, or those of a sample; detected by their size by default.",
    ),
    click.option(
        "--scale",
        type=click.Choice(["standard", "none"]),
        default="standard",
        show_default=True,
        help="Standardise the columns, or leave them unscaled.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="The same seed gives the same result.",
    ),
    click.option(
        "--threads",
        type=int,
        metavar="N",
        help="Threads; all cores by default. The result does not depend on it.",
    ),
    click.option(
        "-o", "--output", metavar="DIR", help="Folder to write to; DATA.ilk in the current folder by default."
    ),
    click.option("--force", is_flag=True, help="Overwrite an earlier run."),
    click.option(
        "--no-rows",
        is_flag=True,
        help="Write nothing about single rows: no assignments file, no rows in the report.",
    ),
    click.option("--columns", multiple=True, metavar="COL", help="Use only this column; repeatable."),
    click.option(
        "--name",
        "names",
        multiple=True,
        metavar="GROUP=TEXT",
        help="A name for a group, instead of the generated one; repeatable.",
    ),
)
SAYING = _all_of(
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    click.option("--debug", is_flag=True, help="Show where an error happened."),
)


def progress_to_stderr() -> Meter | None:
    """A line on stderr that is rewritten as the run goes on; only on a terminal."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None
    from ilk.text.progress import Meter

    return Meter(sys.stderr, surface_of(sys.stderr))
