"""Everything that ever broke something, and the first few of what `make torture` tries."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from tests.store import ordeal
from tests.store.hostile import bases
from tests.torture import files, record, tables
from tests.torture.code import ROOT
from tests.torture.tally import Clock, Tally, TooSlow, limited

CORPUS = Path(__file__).parent / "corpus"


def kept(kind):
    found = sorted(path for path in (CORPUS / kind).glob("*") if path.is_file())
    return [pytest.param(path, id=path.name) for path in found] or [
        pytest.param(None, marks=pytest.mark.skip("none yet"))
    ]


@pytest.mark.parametrize("path", kept("tables"))
def test_tables_that_broke_something(path):
    gc.collect()  # what other tests left open warns now, and not among the warnings of this table
    tables.attempt(tables.Case.read(path))


@pytest.mark.parametrize("path", kept("files"))
def test_files_that_broke_something(path):
    files.attempt(path)


@pytest.mark.parametrize("path", kept("models"))
def test_models_that_broke_something(path, tmp_path):
    """Put to every use, with the rows of whichever model the file was made from."""
    tried = ordeal.Tried(saved=tmp_path / "m.two")
    for name, base in bases().items():
        tried.attempt(name, path.read_bytes(), base.table, tmp_path / "m.ilk")
    assert not tried.escaped


def test_the_page_says_what_was_tried():
    """For the code and the commit that it names: a change of `src/ilk` makes it old, not wrong."""
    page = (ROOT / "docs" / "what-we-tried-to-break.md").read_text(encoding="utf-8")
    told = page.split(record.START)[1].split(record.END)[0]
    assert told == record.page(record.entries(), *record.told_on(told))


def test_counts_of_other_code_are_kept_apart(tmp_path):
    """Lines add up where their modules are what they were; failures of other code stay listed, and do not count."""
    for count, how in ((2, "boom | <b>"), (30, None), (4, None)):
        tally = Tally("kills", modules={"errors"})
        tally.ended["same"] = count
        if how:
            tally.failed(how, 1)
        record.add(tally, "c0ffee", tmp_path / "tried.jsonl")
    known = record.entries(tmp_path / "tried.jsonl")
    known[0]["code"] = "0123456789"  # as if errors.py had been another
    made = record.page(known, record.holding(known), "c0ffee")
    assert "| kills | 34 | 0 | 36 |  | 34 same |" in made
    assert "- 1 x kills: boom \\| &lt;b>" in made
    assert record.told_on(made) == ({known[1]["code"]}, "c0ffee")


def test_lines_of_before_code_had_names_by_part_are_read(tmp_path):
    """They count on all code, and on none that is here."""
    old = {"what": "kills", "date": "2026-01-01", "commit": "c0ffee", "code": "0123456789", "seconds": 9}
    known = [old | {"ended": {"same": 5}, "failures": {}}]
    assert "| kills | 0 | 0 | 5 |" in record.page(known, record.holding(known), "c0ffee")


def test_some_of_each_are_drawn_alike_every_time():
    assert [tables.drawn(seed).text() for seed in range(40)] == [
        tables.drawn(seed).text() for seed in range(40)
    ]
    case = tables.drawn(3)
    path = CORPUS / "tables" / next(iter(sorted(p.name for p in (CORPUS / "tables").glob("*.json"))))
    assert tables.Case.read(path).text() == path.read_text()
    assert len(list(tables.smaller(case))) > 0


def test_files_without_end_are_not_tried_for_ever():
    tally = files.run(Clock(1.0))
    assert tally.tried
    assert not tally.failures


def test_too_much_processor_time_is_told():
    with pytest.raises(TooSlow), limited(0.05):
        sum(number for number in range(10**9))


def test_a_tally_tells_its_failures():
    tally = Tally("x")
    tally.ended["failed"] += 2
    tally.failed("boom", 7)
    tally.failed("boom", 8)
    assert tally.lines() == ["x: 2 tried in 0 s (2 failed), 2 failures", "   2 x boom (first: 7)"]
