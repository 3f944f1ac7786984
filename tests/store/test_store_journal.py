"""The checkpoint file: torn, full, in use, of another run; what is there is whole, and the work goes on."""

from __future__ import annotations

import errno
import os
import warnings

import numpy as np
import pytest

import ilk.store.journal as journal_module
from ilk.errors import ResourceError, UsageError
from ilk.store import record_file
from ilk.store.journal import Journal, Pace, active, began_of, different, keeping
from ilk.store.objects import encoded
from ilk.store.plain_file import NotPlain
from ilk.store.record_file import RecordFile

NOW = Pace(after=0.0, least=0.0, every=0.0, times=1e-9, times_of_piece=1e-9)
ABOUT = {"format": 1, "began": "then", "table": "t", "seed": "1", "options": {"k": "a"}}


def rows() -> bytes:
    return b"r" * 16


def journal(path, about=None, pace=NOW) -> Journal:
    return Journal(path, lambda: ABOUT if about is None else about, pace)


def filled(path, n=4, pace=NOW) -> Journal:
    made = journal(path, pace=pace)
    for number in range(n):
        made.recall("square", (number,), lambda _, number=number: np.full(3, number**2), rows)
    return made


def recalled(made: Journal, n=4) -> list[int]:
    """The numbers of the pieces that need no work."""
    done = []

    def square(number: int):
        done.append(number)
        return np.full(3, number**2)

    for number in range(n):
        found = made.recall("square", (number,), lambda _, number=number: square(number), rows)
        assert (found == number**2).all()
    return [number for number in range(n) if number not in done]


def test_what_was_kept_is_recalled_and_nothing_else(tmp_path):
    filled(tmp_path / "c").close()
    again = journal(tmp_path / "c")
    assert again.open()
    assert recalled(again, 6) == [0, 1, 2, 3]
    other = again.recall("cube", (2,), lambda _: 8, rows)
    elsewhere = again.recall("square", (2,), lambda _: -1, lambda: b"s" * 16)
    assert (other, elsewhere) == (8, -1)
    again.remove()
    assert not (tmp_path / "c").exists()


def test_a_file_cut_anywhere_gives_its_whole_records(tmp_path):
    path = tmp_path / "c"
    filled(path).close()
    whole = path.read_bytes()
    ends = [first + length for first, length, _ in RecordFile.found(str(path)).places.values()]
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        again = journal(path)
        if began_of(path) is None:
            assert size < min(ends)
            with pytest.raises(UsageError, match="checkpoint cannot be read"):
                again.open()
            continue
        assert again.open()
        n_whole = sum(end <= size for end in ends)
        if size % 7 == 0 or size in ends:
            assert recalled(again) == [0, 1, 2, 3][:n_whole]
            again.close()
            assert len(RecordFile.found(str(path)).places) == 4, "new records follow whole ones"
        again.close()


def test_a_changed_byte_ends_the_file_there(tmp_path):
    path = tmp_path / "c"
    filled(path).close()
    whole = path.read_bytes()
    places = sorted(RecordFile.found(str(path)).places.values())
    for number, (first, *_) in enumerate(places):
        broken = bytearray(whole)
        broken[first] ^= 1
        path.write_bytes(broken)
        assert len(RecordFile.found(str(path)).places) == number


def test_nothing_is_written_in_the_first_seconds_and_what_waited_is_then(tmp_path):
    made = filled(tmp_path / "c", pace=Pace(after=1e9, least=0.0, times=1e-9, times_of_piece=1e-9))
    assert not (tmp_path / "c").exists()
    made.pace = NOW
    made.recall("square", (4,), lambda _: np.full(3, 16), rows)
    made.close()
    again = journal(tmp_path / "c")
    assert again.open()
    assert recalled(again, 5) == [0, 1, 2, 3, 4]


def test_short_pieces_are_not_kept(tmp_path):
    made = filled(tmp_path / "c", pace=Pace(after=0.0, least=60.0))
    assert not (tmp_path / "c").exists()
    assert made.n_kept == 0


def test_a_piece_that_costs_more_to_keep_than_to_do_is_not_kept(tmp_path):
    made = filled(tmp_path / "c", pace=Pace(after=0.0, least=0.0, times=1e9, times_of_piece=1e9))
    assert made.n_kept == 0
    assert not (tmp_path / "c").exists()


def test_a_piece_under_way_is_written_from_time_to_time_and_not_at_every_step(tmp_path):
    made = journal(tmp_path / "c", pace=Pace(after=0.0, least=0.0, every=1e9, times=1e-9))

    def work(piece):
        for number in range(100):
            piece.note(lambda number=number: number)
        return 7

    assert made.recall("long", (), work, rows) == 7
    assert made.n_kept == 1, "the whole alone"


def test_what_is_too_much_to_wait_for_the_first_record_is_done_again(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "MOST_WAITING", 2 * len(encoded((np.full(3, 1),))))
    made = filled(tmp_path / "c", pace=Pace(after=1e9, least=0.0, times=1e-9, times_of_piece=1e-9))
    made.pace = NOW
    made.recall("square", (4,), lambda _: np.full(3, 16), rows)
    made.recall("square", (5,), lambda _: np.full(3, 25), rows)
    made.close()
    again = journal(tmp_path / "c")
    assert again.open()
    assert recalled(again, 6) == [0, 1, 5]


def test_a_record_that_the_disk_cannot_read_is_done_again(tmp_path, monkeypatch):
    filled(tmp_path / "c").close()
    again = journal(tmp_path / "c")
    assert again.open()

    def unreadable(handle, length):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as broken:
        broken.setattr(os, "read", unreadable)
        assert recalled(again, 2) == []
    assert recalled(again) == [0, 1, 2, 3]


def test_a_piece_goes_on_where_it_was(tmp_path):
    def count(piece, upto: int) -> int:
        reached = piece.reached() or 0
        steps.append(reached)
        for number in range(reached, upto):
            if number == 5 and stop:
                raise KeyboardInterrupt
            piece.note(lambda number=number: number + 1)
        return upto

    steps: list[int] = []
    stop = True
    made = journal(tmp_path / "c")
    with pytest.raises(KeyboardInterrupt):
        made.recall("count", (9,), lambda piece: count(piece, 9), rows)
    made.close()
    stop = False
    again = journal(tmp_path / "c")
    assert again.open()
    assert again.recall("count", (9,), lambda piece: count(piece, 9), rows) == 9
    assert steps == [0, 5]
    again.close()
    last = journal(tmp_path / "c")
    assert last.open()
    assert last.recall("count", (9,), lambda piece: pytest.fail("done before"), rows) == 9


def test_work_that_was_cut_short_is_not_kept(tmp_path):
    made = journal(tmp_path / "c")
    made.stopped = lambda: True
    made.recall("square", (1,), lambda _: 1, rows)
    assert not (tmp_path / "c").exists()


def test_what_cannot_be_kept_is_done(tmp_path):
    made = journal(tmp_path / "c")
    assert made.recall("thing", (object(),), lambda _: 7, rows) == 7
    assert isinstance(made.recall("thing", (1,), lambda _: object(), rows), object)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"table": "u"}, "the table differs"),
        ({"seed": "2"}, "the seed was 1 and is 2"),
        ({"options": {"k": "b"}}, r"options differ \(k\)"),
        ({"format": 2}, "the format differs"),
        ({"version of ilk": "9"}, "the version of ilk differs"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change, said):
    filled(tmp_path / "c").close()
    with pytest.raises(UsageError, match=said) as error:
        journal(tmp_path / "c", {**ABOUT, **change}).open()
    assert error.value.code == "checkpoint-differs"
    assert different(ABOUT, {**ABOUT, "began": "now"}) == ""


def test_what_is_no_checkpoint_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "c"
    for content in (b"", b"hello", record_file.MAGIC, record_file.MAGIC + bytes(300)):
        path.write_bytes(content)
        with pytest.raises(UsageError) as error:
            journal(path).open()
        assert error.value.code == "checkpoint-damaged"
        assert path.read_bytes() == content
    path.unlink()
    assert not journal(path).open()
    (tmp_path / "real").write_bytes(b"x")
    path.symlink_to(tmp_path / "real")
    with pytest.raises(UsageError):
        journal(path).open()
    with pytest.raises(NotPlain):
        RecordFile.found(str(path))


def test_two_runs_do_not_share_a_checkpoint(tmp_path):
    first = filled(tmp_path / "c")
    with pytest.raises(ResourceError, match="another run writes to this checkpoint"):
        journal(tmp_path / "c").open()
    with warnings.catch_warnings(record=True) as made:
        warnings.simplefilter("always")
        second = filled(tmp_path / "c")
    assert [w.message.code for w in made] == ["no-checkpoint"]
    second.remove()
    first.close()
    again = journal(tmp_path / "c")
    assert again.open()
    assert recalled(again) == [0, 1, 2, 3], "what the first has written is there"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_costs_the_checkpoint_and_not_the_run(tmp_path, monkeypatch, code):
    made = filled(tmp_path / "c", 2)
    real, n_calls = os.write, []

    def failing(handle, data):
        n_calls.append(len(data))
        if len(n_calls) % 2:
            return real(handle, data[:10])
        raise OSError(code, os.strerror(code))

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        monkeypatch.setattr(os, "write", failing)
        assert recalled(made, 6) == []
        monkeypatch.setattr(os, "write", real)
        made.recall("square", (6,), lambda _: np.full(3, 36), rows)
    assert [w.message.code for w in said] == ["no-checkpoint"], "said once"
    made.close()
    again = journal(tmp_path / "c")
    assert again.open()
    assert recalled(again, 7) == [0, 1, 6]


def test_a_folder_that_cannot_be_written_costs_the_checkpoint_and_not_the_run(tmp_path):
    with pytest.warns(UserWarning, match="could not be written"):
        made = filled(tmp_path / "nowhere" / "c")
    assert made.n_kept == 0


def test_dead_records_are_cleared_away(tmp_path, monkeypatch):
    monkeypatch.setattr(record_file, "SPARE", 1000)
    made = journal(tmp_path / "c")

    def work(piece):
        for number in range(200):
            piece.note(lambda number=number: np.full(50, number))
        return 1

    made.recall("long", (), work, rows)
    assert os.path.getsize(tmp_path / "c") < 4000
    made.close()
    again = journal(tmp_path / "c")
    assert again.open()
    assert again.recall("long", (), lambda _: 2, rows) == 1


def test_a_checkpoint_is_for_its_owner_alone(tmp_path):
    filled(tmp_path / "c")
    assert os.stat(tmp_path / "c").st_mode & 0o777 == 0o600


def test_a_forked_child_keeps_nothing(tmp_path):
    made = journal(tmp_path / "c")
    made.process = -1

    def work(piece):
        piece.note(lambda: pytest.fail("nobody keeps it"))
        return piece.reached()

    assert made.recall("square", (1,), work, rows) is None
    assert not (tmp_path / "c").exists()


def test_pieces_are_kept_where_a_journal_is_active(tmp_path):
    assert active() is None
    with keeping(journal(tmp_path / "c")) as nothing:
        assert nothing is None
        assert active() is not None
    assert active() is None
