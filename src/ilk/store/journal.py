"""A checkpoint: the finished pieces of a run, kept on disk while it goes on.

A run is a function of its table, its options and its seed. Its long pieces of work are called through `recall`, which
writes down what they gave; a run that begins anew with that file does the same again, and takes from the file what it
finds there. Pieces are found by what went into them, so that none is taken for another.

Nothing is written in the first half minute. A piece is kept where its work took a hundred times as long as keeping it,
or where keeping all pieces has taken less than a hundredth of the run so far.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar

from ilk.errors import IlkError, UsageError, shown, warn
from ilk.store.atomic import reason
from ilk.store.objects import KEY_BYTES, Unkept, decoded, encoded, key_of
from ilk.store.plain_file import NotPlain
from ilk.store.record_file import Record, RecordFile

Result = TypeVar("Result")

WHOLE, UNDER_WAY = b"\1", b"\0"
MOST_WAITING = 1 << 26  # bytes held until the first are written; what is beyond is found again by work


@dataclass(frozen=True)
class Pace:
    """Seconds of a run before the first record, of work that is worth one, between two of a piece under way; how much
    longer a run takes than keeping its pieces, and a piece, while there is room in that."""

    after: float = 30.0
    least: float = 0.02
    every: float = 5.0
    times: float = 100.0
    times_of_piece: float = 20.0


PACE = Pace()


@dataclass(frozen=True)
class Called:
    """What a piece is found by: its name, its inputs, which nobody changes, and the rows that it sees; keys are made
    of them where they matter."""

    name: str
    inputs: Any
    by_rows: Callable[[], bytes]

    @cached_property
    def by_inputs(self) -> bytes:
        return key_of(self.name, self.inputs)

    @property
    def key(self) -> bytes:
        return self.by_inputs + self.by_rows()


class Piece:
    """One piece of work under way: where an earlier run was with it, and where this one is."""

    def __init__(self, journal: Journal | None = None, called: Called | None = None) -> None:
        self.kept = None if journal is None or called is None else (journal, called)
        self.began = self.noted = time.monotonic()
        self.cost = 0.0

    def reached(self) -> Any:
        """What an earlier run had reached; None where it is not known."""
        return None if self.kept is None else self.kept[0].found(self.kept[1], UNDER_WAY)

    def note(self, state: Callable[[], Any]) -> None:
        """Keep where the work is, from time to time."""
        if self.kept is None:
            return
        journal, called = self.kept
        if time.monotonic() - self.noted >= max(journal.pace.every, journal.pace.times * self.cost):
            self.cost = journal.keep(called, UNDER_WAY, state)
            self.noted = time.monotonic()


class Journal:
    """The finished pieces of one run; `about` says of which, and is asked when the first is written."""

    def __init__(self, path: str | os.PathLike[str], about: Callable[[], dict[str, Any]], pace: Pace) -> None:
        self.path, self.about, self.pace = os.fspath(path), about, pace
        self.stopped: Callable[[], bool] = lambda: False  # work that was cut short is not kept
        self.began, self.process = time.monotonic(), os.getpid()
        self.n_recalled = self.n_kept = 0
        self.cost = 0.0  # seconds of this process that keeping has taken
        self._file: RecordFile | None = None
        self._earlier: set[bytes] = set()  # inputs of the pieces of an earlier run
        self._usual: dict[str, float] = {}  # seconds to encode the last piece of a name
        self._waiting: list[Record] = []
        self._synced, self._sync_cost = self.began, 0.0
        self._said = self._off = self._in_use = False
        self._lock = RLock()

    def recall(
        self, name: str, inputs: Any, work: Callable[[Piece], Result], rows: Callable[[], bytes]
    ) -> Result:
        """What `work` gives: found again by its name, its inputs and the `rows` it sees, or done and kept."""
        if os.getpid() != self.process:
            return work(Piece())
        called = Called(name, inputs, rows)
        known = self.found(called, WHOLE)
        if known is not None:
            self.n_recalled += 1
            found: Result = known[0]
            return found
        piece = Piece(self, called)
        result = work(piece)
        spent = time.monotonic() - piece.began
        if spent >= self.pace.least and not self._off:
            self.keep(called, WHOLE, lambda: (result,), spent)
        return result

    def found(self, called: Called, mark: bytes) -> Any:
        """The value that an earlier run has kept; None where there is none or it cannot be read."""
        if not self._earlier or self._file is None:
            return None
        with self._lock, contextlib.suppress(OSError, Unkept):
            body = self._file.value(called.key, mark) if called.by_inputs in self._earlier else None
            return None if body is None else decoded(body, called.inputs)
        return None

    def keep(
        self, called: Called, mark: bytes, value: Callable[[], Any], spent: float | None = None
    ) -> float:
        """Write a value down, unless that would cost more than it is worth; the seconds it took."""
        usual = self._usual.get(called.name, 0.0) / 2  # perhaps less this time
        if self._off or self.stopped() or (spent is not None and not self._pays(spent, usual)):
            return 0.0
        began, took = time.thread_time(), 0.0
        with self._lock, contextlib.suppress(Unkept):
            body = encoded(value(), called.inputs)
            self._usual[called.name] = took = time.thread_time() - began
            if spent is None or self._pays(spent, took):
                self._add((called.key, mark, body))
                took = time.thread_time() - began
        self.cost += took
        return took

    def _pays(self, spent: float, took: float) -> bool:
        """Whether a piece of work is worth what it costs to keep."""
        room = (time.monotonic() - self.began) / self.pace.times - self.cost
        return spent >= self.pace.times * took or (spent >= self.pace.times_of_piece * took and took <= room)

    # --- the file

    def open(self) -> bool:
        """Go on with the file that is there: False where there is none, refused where it is of another run."""
        try:
            file = RecordFile.found(self.path)
            about = dict(decoded(file.about))
        except FileNotFoundError:
            return False
        except (NotPlain, OSError, Unkept, TypeError, ValueError) as error:
            why = error.what if isinstance(error, NotPlain) else getattr(error, "strerror", "it is damaged")
            raise self._refused("checkpoint-damaged", f"the checkpoint cannot be read: {why}") from None
        differ = different(about, self.about())
        if differ:
            raise self._refused("checkpoint-differs", f"the checkpoint is of another run: {differ}")
        file.hold()
        self._file = file
        self._earlier = {key[:KEY_BYTES] for key in file.places}
        return True

    def _add(self, record: Record) -> None:
        if self._file is None:
            if sum(len(body) for *_, body in self._waiting) + len(record[2]) <= MOST_WAITING:
                self._waiting.append(record)
            if time.monotonic() - self.began < self.pace.after:
                return
        try:
            if self._file is None:
                self._begin()
            else:
                self._file.add(record)
            self.n_kept += 1
            self._sync()
        except OSError as error:
            self._fail(reason(error))
        except IlkError as error:
            self._off = self._in_use = error.code == "checkpoint-in-use"
            self._fail(error.what)

    def _begin(self) -> None:
        """The first records, in the place of the checkpoint of an earlier run."""
        file = RecordFile(self.path, encoded(self.about()))
        file.begin(self._waiting)
        self._file, self._waiting = file, []

    def _sync(self) -> None:
        began = time.monotonic()
        if self._file and began - self._synced >= max(self.pace.every, self.pace.times * self._sync_cost):
            self._file.sync()
            self._synced = time.monotonic()
            self._sync_cost = self._synced - began

    def _fail(self, why: str) -> None:
        """A full disk or a lost right costs the checkpoint, not the run; the next record is tried again."""
        if not self._said:
            self._said = True
            text = f"the checkpoint {shown(self.path, 200)} could not be written: {why}; the run goes on."
            warn("no-checkpoint", text, depth=2)

    def close(self) -> None:
        """Let the file go, as it is."""
        self._off = True
        if self._file is not None:
            self._file.close()

    def remove(self) -> None:
        """The run is done: nobody will go on with it, nor with the one that it began anew."""
        self.close()
        if began_of(self.path) is not None and not self._in_use:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def _refused(self, code: str, what: str) -> UsageError:
        return UsageError(
            code,
            what,
            where=shown(self.path, 200),
            do="Give the table and the options of that run, or begin anew without it",
        )


_active: ContextVar[Journal | None] = ContextVar("ilk checkpoint", default=None)


@contextlib.contextmanager
def keeping(journal: Journal | None) -> Iterator[None]:
    """Keep the pieces of what is done here."""
    before = _active.set(journal)
    try:
        yield
    finally:
        _active.reset(before)


def active() -> Journal | None:
    """The journal of the run that is under way here."""
    return _active.get()


def different(old: dict[str, Any], new: dict[str, Any]) -> str:
    """In words what of a run is not the same; empty where all is.

    >>> different({"seed": "1"}, {"seed": "2"})
    'the seed was 1 and is 2'
    """
    for name in [name for name in new if name != "began"]:
        was, now = old.get(name), new[name]
        if was == now:
            continue
        if isinstance(now, dict) and isinstance(was, dict):
            changed = [key for key in {**was, **now} if was.get(key) != now.get(key)]
            return f"{name} differ ({', '.join(shown(key) for key in changed)})"
        if isinstance(now, str) and isinstance(was, str) and name != "table":
            return f"the {name} was {shown(was)} and is {shown(now)}"
        return f"the {name} differs"
    return ""


def began_of(path: str | os.PathLike[str]) -> str | None:
    """When the run of a checkpoint began, as it was written down; None where there is no checkpoint."""
    try:
        return str(dict(decoded(RecordFile.found(os.fspath(path)).about)).get("began", ""))
    except (NotPlain, OSError, Unkept, TypeError, ValueError):
        return None
