"""Everything that ever broke something, and the first few of what `make torture` tries."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from tests.store import ordeal
from tests.store.hostile import bases
from tests.torture import files, record, tables
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
    page = (record.ROOT / "docs" / "what-we-tried-to-break.md").read_text(encoding="utf-8")
    assert page.split(record.START)[1].split(record.END)[0] == record.page(record.entries())


def test_counts_of_other_code_are_kept_apart(tmp_path):
    """Lines add up on one code; failures of earlier code stay listed, and do not count on this one."""
    for on, count, how in (("a", 2, "boom | <b>"), ("b", 30, None), ("b", 4, None)):
        tally = Tally("kills")
        tally.ended["same"] = count
        if how:
            tally.failed(how, 1)
        record.add(tally, on, "c0ffee", tmp_path / "tried.jsonl")
    made = record.page(record.entries(tmp_path / "tried.jsonl"))
    assert "| kills | 34 | 0 | 36 |  | 34 same |" in made
    assert "- 1 x kills: boom \\| &lt;b>" in made


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
