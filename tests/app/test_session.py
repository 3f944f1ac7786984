"""What the page can do, asked over HTTP: fit, slide, change, undo, rows, compare, check, export, in two windows."""

from __future__ import annotations

import io
import json
import threading
import time
import zipfile

import pytest

import ilk
from ilk.analysis.folder import FITS
from ilk.analysis.job import Job
from ilk.analysis.other_k import kept_ks, kept_models
from ilk.analysis.run import run_and_keep
from ilk.analysis.run_folder import write_run
from tests.app.serving import serving
from tests.table.test_databases import ORDERS, PEOPLE, duckdb_file, sqlite_file, workbook_file


def revision(served, run):
    return served.ask("answer", run=run)["state"]["revision"]


def sizes(answer):
    return {group["letter"]: group["rows"] for group in answer["groups"]}


def changed(served, run, change):
    """The answer after a change of groups."""
    said = served.ask("change", {"run": run, "revision": revision(served, run), "change": change})
    if "html" in said:
        return said
    assert served.wait(said["number"])["state"] == "done"
    return served.ask("answer", run=run)


def shown_k(served, run, k):
    """The answer with so many groups, once it is there."""
    for _ in range(600):
        said = served.ask("k", {"run": run, "k": k, "revision": revision(served, run)})
        if "html" in said:
            return said
        assert said == {"making": k}
        time.sleep(0.1)
    raise TimeoutError


def test_columns_are_shown_as_a_fit_would_take_them(served):
    seen = served.ask(
        "columns", {"table": "crm.csv", "options": {"ignore": ["Rep"], "types": {"Zip": "numeric"}}}
    )
    columns = {column["name"]: column for column in seen["columns"]}
    assert seen["rows"] == 2000
    assert (columns["Rep"]["role"], columns["Zip"]["role"]) == ("left out", "used")
    assert sum(columns["Orders"]["picture"]["bars"]) == 2000 - columns["Orders"]["missing"]
    assert columns["Signup Date"]["picture"]["low"] == "2021-01-01"
    assert sum(n for _, n in columns["Industry"]["picture"]["levels"]) <= 2000
    assert seen["lines"]["command"] == "ilk fit crm.csv --ignore Rep --types Zip=numeric"
    assert seen["lines"]["python"].startswith("result = ilk.cluster('crm.csv'")


def test_a_fit_is_the_run_that_the_command_line_writes(served, run):
    task = next(task for task in served.ask("tasks") if task["run"] == run)
    assert (task["state"], task["command"]) == ("done", "ilk fit crm.csv")
    assert task["progress"]["stage"] == "writing"
    folder = served.folder / run
    own = ilk.cluster(served.folder / "crm.csv")
    summary = json.loads((folder / "summary.json").read_text())
    assert [group["rows"] for group in summary["groups"]] == [group.rows for group in own.groups]
    assert {"report.html", "assignments.csv", "model.ilk", "summary.json"} <= {
        p.name for p in folder.iterdir()
    }
    assert ilk.load(folder / "model.ilk").k == own.k


def test_other_numbers_of_groups_are_at_hand(served, run):
    answer = shown_k(served, run, 4)
    assert len(answer["groups"]) == 4
    entry = answer["state"]["entries"][-1]
    assert entry["command"] == f"ilk regroup {run} crm.csv --k 4 -o {run}/k/4"
    assert entry["python"] == f"ilk.regroup('{run}', 'crm.csv', k=4)"
    own = ilk.regroup(served.folder / run, served.folder / "crm.csv", k=4)  # what the line does
    assert sizes(answer) == {group.letter: group.rows for group in own.groups}
    assert ilk.load(served.folder / run / "k" / "4" / "model.ilk").k == 4
    began = time.monotonic()
    shown_k(served, run, 3)
    assert time.monotonic() - began < 2
    assert served.ask("k", {"run": run, "k": 77, "revision": revision(served, run)}) == "bad-k"


def test_groups_are_merged_split_named_coloured_and_all_is_undone(served, run):
    before = shown_k(served, run, 3)
    start, first = before["state"]["at"], sizes(before)
    merged = changed(served, run, {"merge": ["A", "B"]})
    assert sorted(sizes(merged).values()) == sorted([first["A"] + first["B"], first["C"]])
    assert merged["has_rule"]
    split = changed(served, run, {"split": "C"})
    assert len(sizes(split)) == 3
    named = changed(served, run, {"names": {"A": "<b>small</b>"}})
    assert [g["name"] for g in named["groups"] if g["letter"] == "A"] == ["<b>small</b>"]
    assert "&lt;b&gt;small&lt;/b&gt;" in named["html"]
    assert "<b>small" not in named["html"]
    coloured = changed(served, run, {"colours": {"A": 5}})
    assert "--c:var(--g4)" in coloured["css"]
    assert [entry["what"] for entry in coloured["state"]["entries"][start + 1 :]] == [
        "Merge A and B", "Split C", "Rename A to “<b>small</b>”", "Colour A",
    ]  # fmt: skip
    assert all("ilk regroup" in entry["command"] for entry in coloured["state"]["entries"][start + 1 :])
    back = served.ask("step", {"run": run, "at": start, "revision": revision(served, run)})
    assert (sizes(back), back["html"]) == (first, before["html"])
    forth = served.ask("step", {"run": run, "at": start + 4, "revision": revision(served, run)})
    assert forth["html"] == coloured["html"]
    served.ask("step", {"run": run, "at": start, "revision": revision(served, run)})


def test_a_change_from_another_window_is_not_lost(served, run):
    old = revision(served, run)
    changed(served, run, {"names": {"A": "one"}})
    said = served.ask("change", {"run": run, "revision": old, "change": {"names": {"A": "two"}}})
    assert said == "changed-elsewhere"
    now = served.ask("answer", run=run)
    assert next(g["name"] for g in now["groups"] if g["letter"] == "A") == "one"
    served.ask("step", {"run": run, "at": now["state"]["at"] - 1, "revision": now["state"]["revision"]})


def test_many_windows_at_once_leave_one_whole_history(served, run):
    before = served.ask("answer", run=run)["state"]
    said = []

    def name(number):
        change = {"names": {"A": f"window {number}"}}
        said.append(served.ask("change", {"run": run, "revision": before["revision"], "change": change}))

    threads = [threading.Thread(target=name, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = [one for one in said if not isinstance(one, str)]
    assert len(done) == 1
    assert {one for one in said if isinstance(one, str)} == {"changed-elsewhere"}
    after = served.ask("answer", run=run)
    assert len(after["state"]["entries"]) == before["at"] + 2
    served.ask("step", {"run": run, "at": before["at"], "revision": after["state"]["revision"]})


def test_rows_are_paged_sorted_and_searched(served, run):
    answer = served.ask("answer", run=run)
    asked = {"run": run, "version": answer["version"]}
    every = served.ask("rows", asked)
    assert (every["total"], len(every["rows"])) == (2000, 50)
    assert served.ask("rows", {**asked, "page": 39})["rows"][-1][0] == "1999"
    for letter, size in sizes(answer).items():
        assert served.ask("rows", {**asked, "group": letter})["total"] == size
    dear = served.ask("rows", {**asked, "sort": "Annual Revenue", "down": True})
    money = [
        float(row[dear["columns"].index("Annual Revenue")].strip("$").replace(",", ""))
        for row in dear["rows"]
    ]
    assert money == sorted(money, reverse=True)
    found = served.ask("rows", {**asked, "search": "CUST-100042"})
    assert [row[0] for row in found["rows"]] == ["42"]
    assert [row[0] for row in served.ask("rows", {**asked, "only": [7, 3]})["rows"]] == ["3", "7"]
    assert served.ask("rows", {**asked, "sort": 'nothing"; drop'}) == "unknown-column"
    assert served.ask("rows", {**asked, "search": "' or 1=1 --"})["total"] == 0


def test_a_row_is_explained(served, run):
    answer = served.ask("answer", run=run)
    told = served.ask("row", run=run, version=answer["version"], row=42)
    assert told["cells"]["Customer ID"] == "CUST-100042"
    assert "is in" in told["text"]
    assert "Orders" in told["text"]


def test_two_runs_are_compared_and_new_rows_checked(served, run):
    other = served.fit("crm.csv", k=2)
    found = served.ask("compare", first=run, second=other)
    assert 0 < found["document"]["ari"] <= 1
    assert len(found["rows"]) == min(found["document"]["moved"]["rows"], 200)
    assert found["columns"] == ["row", "first", "second"]
    checked = served.ask("check", {"run": run, "table": "crm.csv"})
    assert checked["document"]["verdict"]["word"] == "no drift"
    status, content, _ = served.raw(
        "GET", f"/{served.token}/export/assigned?run={run}&version=&table=crm.csv"
    )
    assert (status, len(content.splitlines())) == (200, 2001)


@pytest.mark.parametrize("what", ["assignments", "model", "report", "summary", "json", "zip"])
def test_exports(served, run, what):
    version = served.ask("answer", run=run)["version"]
    status, content, headers = served.raw("GET", f"/{served.token}/export/{what}?run={run}&version={version}")
    assert status == 200
    assert headers["content-disposition"].startswith("attachment")
    if what == "zip":
        names = zipfile.ZipFile(io.BytesIO(content)).namelist()
        assert sorted({*names} - {"fits.ilk"}) == [
            "assignments.csv",
            "model.ilk",
            "report.html",
            "summary.json",
        ]
    elif what == "assignments":
        assert len(content.splitlines()) == 2001


def test_sql_is_exported_or_refused_with_a_reason(served, run):
    status, content, _ = served.raw("GET", f"/{served.token}/export/sql-duckdb?run={run}&version=")
    assert (status, json.loads(content)["error"]["code"]) == (
        400,
        "not-exportable",
    )  # dates as they are written
    plain = served.fit(
        "crm.csv", ignore=["Signup Date", "Last Order", "Annual Revenue", "Avg Discount", "Newsletter"]
    )
    status, content, _ = served.raw("GET", f"/{served.token}/export/sql-duckdb?run={plain}&version=")
    assert status == 200
    assert b"SELECT" in content.upper()


def test_a_fit_that_fails_says_why(served):
    task = served.wait(served.ask("fit", {"table": "crm.csv", "options": {"id": "no such column"}})["number"])
    assert (task["state"], task["failed"]["code"]) == ("failed", "unknown-column")


def test_a_fit_is_stopped_and_keeps_the_best_so_far(served):
    rows = "\n".join(f"{i % 7},{(i * i) % 11},{(i * 37) % 101},{'abcd'[i % 4]}" for i in range(60_000))
    (served.folder / "long.csv").write_text("p,q,r,s\n" + rows + "\n")
    number = served.ask("fit", {"table": "long.csv", "options": {}})["number"]
    for _ in range(300):
        task = next(task for task in served.ask("tasks") if task["number"] == number)
        if task["progress"].get("stage") == "fitting" or task["state"] == "done":
            break
        time.sleep(0.05)
    assert served.ask("stop", {"task": number}) is None
    task = served.wait(number)
    assert task["state"] == "done", task
    answer = served.ask("answer", run=task["run"])
    assert answer["brief"]["interrupted"] is True


def test_a_run_of_the_command_line_is_opened(served, run, tmp_path):
    from ilk.analysis.run_folder import write_run

    write_run(ilk.cluster(served.folder / "eu.csv", k=2, sep=";"), str(served.folder / "own.ilk"))
    answer = served.ask("answer", run="own.ilk")
    assert answer["state"]["entries"][0]["command"].startswith("ilk fit eu.csv")
    assert served.ask("rows", {"run": "own.ilk", "version": ""})["total"] == answer["brief"]["rows"]


def test_what_was_finished_outlives_the_server(tmp_path):
    (tmp_path / "a.csv").write_text(
        "x,y\n" + "\n".join(f"{i % 2 * 9 + i % 5 / 10},{i % 2 * 4}" for i in range(80))
    )
    with serving(tmp_path) as first:
        run = first.fit("a.csv")
        changed(first, run, {"names": {"A": "kept"}})
        first.process.kill()
        first.process.wait()
    with serving(tmp_path) as second:
        answer = second.ask("answer", run=run)
        assert answer["groups"][0]["name"] == "kept"
        assert len(answer["state"]["entries"]) == 2


def test_groups_of_a_parquet_table_are_written_as_parquet(served):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [i % 2 * 9 + i % 5 / 10 for i in range(80)]}), served.folder / "p.parquet")
    run = served.fit("p.parquet", k=2)
    assert (served.folder / run / "assignments.parquet").is_file()
    assert served.ask("rows", {"run": run, "version": ""})["total"] == 80


@pytest.mark.parametrize(
    ("make", "option"), [(sqlite_file, "table"), (duckdb_file, "table"), (workbook_file, "sheet")]
)
def test_a_table_of_a_database_and_a_sheet_of_a_workbook(served, make, option):
    path = make(served.folder)
    for name, frame in (("people", PEOPLE), ("orders", ORDERS)):
        seen = served.ask("columns", {"table": path.name, "options": {option: name}})
        assert (seen["rows"], [c["name"] for c in seen["columns"]]) == (len(frame), [*frame.columns])
    run = served.fit(path.name, **{option: "people"})
    answer = served.ask("answer", run=run)
    assert answer["brief"]["rows"] == len(PEOPLE)
    assert f"--{option} people" in answer["state"]["entries"][0]["command"]
    assert served.ask("rows", {"run": run, "version": ""})["total"] == len(PEOPLE)


def test_fits_of_the_search_are_kept_for_another_server(tmp_path):
    rows = "\n".join(f"{i % 3 * 9 + i % 5 / 10},{i % 3 * 4 + i % 7 / 9}" for i in range(240))
    (tmp_path / "a.csv").write_text("x,y\n" + rows + "\n")
    with serving(tmp_path) as first:
        run = first.fit("a.csv")
        shown_k(first, run, 2)
        first.process.kill()
        first.process.wait()
    kept = kept_ks(tmp_path / run)
    assert {1, 2, 3} <= {*kept}
    far = max(kept)
    with serving(tmp_path) as second:
        own = ilk.regroup(tmp_path / run, tmp_path / "a.csv", k=far)
        assert sizes(shown_k(second, run, far)) == {group.letter: group.rows for group in own.groups}


THREE = "x,y\n" + "\n".join(f"{i % 3 * 9 + i % 5 / 10},{i % 3 * 4 + i % 7 / 9}" for i in range(240)) + "\n"


def own_run(folder, **options):
    """A run as the command line writes it."""
    (folder / "a.csv").write_text(THREE)
    result, findings = run_and_keep(Job(str(folder / "a.csv"), **options))
    write_run(result, str(folder / "a.ilk"), force=True, fits=kept_models(findings, result))
    return kept_ks(folder / "a.ilk")


def until(ready, seconds=60):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_of_the_command_line_has_its_numbers_of_groups_at_hand(tmp_path):
    kept = own_run(tmp_path)
    far = max(kept)
    with serving(tmp_path) as served:
        entries = {entry["k"]: entry for entry in served.ask("answer", run="a.ilk")["ks"]}
        assert not entries[far]["ready"]
        served.ask("prepare", {"run": "a.ilk"})
        until(lambda: all(e["ready"] for e in served.ask("answer", run="a.ilk")["ks"] if e["k"] in kept))
        early = served.ask("version", run="a.ilk", version=f"k/{far}")
        answer = shown_k(served, "a.ilk", far)
        assert len(answer["groups"]) == len(early["groups"]) == far
        until(lambda: {e["k"]: e for e in served.ask("answer", run="a.ilk")["ks"]}[far]["tested"])
        whole = served.ask("answer", run="a.ilk")
        own = ilk.regroup(tmp_path / "a.ilk", tmp_path / "a.csv", k=far)
        assert whole["brief"]["word"] == own.verdict.word
        assert sizes(whole) == {group.letter: group.rows for group in own.groups}
        assert not (tmp_path / "a.ilk" / "glance" / str(far)).exists()


def test_a_first_look_says_that_it_is_one_and_a_change_waits_for_the_answer(tmp_path, monkeypatch):
    from ilk.analysis.other_k import glance_at_k, read_fit
    from ilk.analysis.regroup import searched_again
    from ilk.app.place import Place
    from ilk.app.session import Session

    own_run(tmp_path)
    run = tmp_path / "a.ilk"
    searched, model = searched_again(run, tmp_path / "a.csv")
    write_run(glance_at_k(searched, read_fit(run, 2), model), str(run / "glance" / "2"))
    session = Session(Place.of(tmp_path, 10**6))
    wanted = []
    monkeypatch.setattr(session.numbers.tasks, "want", lambda name, k: wanted.append((name, k)) or True)
    shown = session.show_k("a.ilk", 2, 0)
    assert shown["version"] == "k/2"
    assert wanted == [("a.ilk", 2)]
    assert shown["brief"]["word"] in ("not tested", "weak")
    assert "stability is not tested yet" in shown["html"]
    assert [entry["tested"] for entry in shown["ks"] if entry["k"] == 2] == [False]
    moments = []

    def works(name):
        moments.append(name)
        if len(moments) == 3:
            write_run(ilk.regroup(run, tmp_path / "a.csv", k=2), str(run / "k" / "2"))
        return True

    monkeypatch.setattr(session.numbers.tasks, "works", works)
    named = session.change("a.ilk", {"names": {"A": "first"}}, shown["state"]["revision"])
    assert len(moments) == 3
    assert "stability is not tested yet" not in named["html"]


def test_a_run_that_was_written_over_has_nothing_of_the_one_before(tmp_path):
    own_run(tmp_path)
    with serving(tmp_path) as served:
        shown_k(served, "a.ilk", 2)
        changed(served, "a.ilk", {"names": {"A": "old"}})
        assert served.ask("rows", {"run": "a.ilk", "version": ""})["total"] == 240
        own_run(tmp_path, ignore=["y"])
        (tmp_path / "a.csv").write_text(THREE)
        answer = served.ask("answer", run="a.ilk")
        assert (answer["version"], len(answer["state"]["entries"])) == ("", 1)
        assert [entry["k"] for entry in answer["ks"] if entry["ready"]] == [answer["brief"]["k"]]
        old, end = {"k", "glance", "changes", "cells.parquet", "page.json"}, time.monotonic() + 30
        left = old
        while left & old and time.monotonic() < end:  # an answer that was under way takes itself away
            left = {path.name for path in (tmp_path / "a.ilk").iterdir()}
            time.sleep(0.05)
        assert not left & old
        assert FITS in left
        revision = answer["state"]["revision"]
        assert served.ask("step", {"run": "a.ilk", "at": 1, "revision": revision}) == "no-entry"
    (tmp_path / "a.ilk" / "page.json").write_text('{"of": "another"}')
    with serving(tmp_path, "--read-only") as served:
        assert served.ask("answer", run="a.ilk") == "older-page"


def test_progress_before_the_first_model_is_told_without_a_figure():
    import io as streams

    from ilk.app.worker import Line, _teller
    from ilk.selection.progress import Progress

    out = streams.StringIO()
    tell = _teller(Line(out), None)
    for bic in (float("inf"), float("nan"), None, 12.5):
        tell(Progress(done=1, total=2, method="m", k=1, best_bic=bic, seconds=1.0, stage="fitting"))
    said = [json.loads(line, parse_constant=pytest.fail) for line in out.getvalue().splitlines()]
    assert [one["progress"]["bic"] for one in said] == [None, None, None, 12.5]
