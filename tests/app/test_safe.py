"""Safe by construction: who is refused, what cannot be read or written, what an answer may load."""

from __future__ import annotations

import json
import os
import socket
from urllib.parse import quote

import pytest

from ilk.app.guard import POLICY
from tests.app.serving import serving


def test_every_request_needs_the_token(served):
    for path in (
        "/",
        "/api/overview",
        "/static/main.js",
        "/wrong/",
        "/wrong/api/overview",
        f"/{served.token}x/",
    ):
        status, content, headers = served.raw("GET", path)
        assert status == 403, path
        assert b"token" in content
        assert headers["content-security-policy"] == POLICY
    assert served.raw("GET", f"/{served.token}/")[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", ""],
)
def test_another_host_name_is_refused(served, host):
    status, _, _ = served.raw("GET", f"/{served.token}/", Host=host.format(port=served.port))
    assert status in (400, 403)
    assert served.raw("GET", f"/{served.token}/", Host=f"localhost:{served.port}")[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
)
def test_another_origin_is_refused_and_nothing_is_shared(served, origin):
    path, given = f"/{served.token}/api/overview", origin.format(port=served.port)
    status, _, headers = served.raw("GET", path, Origin=given)
    assert status == 403
    assert not [name for name in headers if name.startswith("access-control")]
    assert served.raw("GET", path, Sec_Fetch_Site="cross-site")[0] == 403
    status, _, headers = served.raw("GET", path, Origin=f"http://127.0.0.1:{served.port}")
    assert status == 200
    assert not [name for name in headers if name.startswith("access-control")]


def test_a_socket_is_refused(served):
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Key": "x" * 24,
        "Sec_WebSocket_Version": "13",
    }
    status, _, _ = served.raw("GET", f"/{served.token}/socket", **headers)
    assert status in (403, 404)


def test_only_this_machine_is_listened_to(served):
    with open("/proc/net/tcp") as file:
        lines = [line.split() for line in file][1:]
    mine = [line[1] for line in lines if line[1].endswith(f":{served.port:04X}") and line[3] == "0A"]
    assert mine == [f"0100007F:{served.port:04X}"]


def test_answers_load_nothing_from_elsewhere(served):
    for path in ("", "static/main.js", "static/page.css", "api/overview"):
        status, content, headers = served.raw("GET", f"/{served.token}/{path}")
        assert status == 200
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert b"https://" not in content
    assert "unsafe" not in POLICY
    index = served.raw("GET", f"/{served.token}/")[1].decode()
    assert index.count("<script") == index.count("<script src=")
    assert "onclick" not in index
    assert "style=" not in index


OUTSIDE = [
    "../secret.csv", "uploads/../../secret.csv", "/etc/passwd", "..%2fsecret.csv", "uploads/../crm.csv", "..",
    ".hidden.csv", "link.csv", "crm.csv\0", "folder.csv", "C:\\secret.csv", "",
]  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_path_leads_out_of_the_folder(served, name):
    outside = served.folder.parent / "secret.csv"
    link, folder = served.folder / "link.csv", served.folder / "folder.csv"
    if not os.path.lexists(link):
        link.symlink_to(outside)
        folder.mkdir(exist_ok=True)
        (served.folder / ".hidden.csv").write_text("a\n1\n")
    assert served.ask("columns", {"table": name, "options": {}}) in ("no-table", "bad-request")
    assert served.ask("fit", {"table": name, "options": {}}) in ("no-table", "bad-request")


@pytest.mark.parametrize("name", ["../place.ilk", "..", "/", "link.ilk", "crm.csv", "a/b.ilk", ""])
def test_no_run_lies_outside_of_the_folder(served, name, tmp_path):
    link = served.folder / "link.ilk"
    if not os.path.lexists(link):
        (tmp_path / "summary.json").write_text("{}")
        link.symlink_to(tmp_path)
    assert served.ask("answer", run=name) == "no-run"
    for what in ("model", "zip"):
        path = f"/{served.token}/export/{what}?run={quote(name, safe='')}"
        assert served.raw("GET", path)[0] in (400, 404)


@pytest.mark.parametrize("version", ["..", "k/../..", "changes/../../..", "k/999", "/", "k/1/../../.."])
def test_no_version_lies_outside_of_its_run(served, run, version):
    assert served.ask("rows", {"run": run, "version": version}) == "no-version"
    assert served.ask("row", run=run, version=version, row=0) == "no-version"


def test_static_files_are_those_of_the_page(served):
    for name in ("../guard.py", "..%2fguard.py", "guard.py", "nothing.js", "%2e%2e/guard.py"):
        assert served.raw("GET", f"/{served.token}/static/{name}")[0] == 404


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../evil.csv", "uploads/evil.csv"),
        ("/etc/cron.d/evil1.csv", "uploads/evil1.csv"),
        ("..\\evil2.csv", "uploads/evil2.csv"),
        (".bashrc.csv", "uploads/bashrc.csv"),
        ("a\nb\u202e.csv", "uploads/a_b_.csv"),
        ("<img src=x onerror=alert(1)>.csv", "uploads/_img src=x onerror=alert(1)_.csv"),
    ],
)
def test_names_of_uploads_are_made_harmless(served, name, kept):
    status, content, _ = served.raw(
        "POST", f"/{served.token}/api/upload?name={quote(name, safe='')}", b"a,b\n1,2\n"
    )
    assert (status, json.loads(content)["table"]) == (200, kept)
    assert (served.folder / kept).read_bytes() == b"a,b\n1,2\n"


@pytest.mark.parametrize("name", ["evil.py", "run.ilk", "noending", "", ".csv/..", "x.csv.exe"])
def test_only_tables_can_be_uploaded(served, name):
    status, _, _ = served.raw("POST", f"/{served.token}/api/upload?name={quote(name, safe='')}", b"x")
    assert status == 400


def test_no_upload_takes_the_place_of_another(served):
    said = [
        served.raw("POST", f"/{served.token}/api/upload?name=same.csv", text)[1]
        for text in (b"a\n1\n", b"a\n2\n")
    ]
    assert [json.loads(one)["table"] for one in said] == ["uploads/same.csv", "uploads/same-2.csv"]
    assert (served.folder / "uploads" / "same.csv").read_bytes() == b"a\n1\n"


def test_uploads_are_limited_and_leave_nothing_behind(tmp_path):
    with serving(tmp_path, "--max-upload", "0.001") as small:
        path = f"/{small.token}/api/upload?name=large.csv"
        assert small.raw("POST", path, b"1" * 1_000_000)[0] == 200
        status, content, _ = small.raw("POST", path, b"1" * 1_000_001)
        assert (status, json.loads(content)["error"]["code"]) == (413, "too-large")
        assert sorted(os.listdir(tmp_path / "uploads")) == ["large.csv"]
        with socket.create_connection(("127.0.0.1", small.port)) as lost:  # gone in the middle
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{small.port}\r\nContent-Length: 900000\r\n\r\n"
            lost.sendall(head.encode() + b"1" * 1000)
        assert small.ask("overview")["tables"][0]["name"] == "uploads/large.csv"
        assert len(small.ask("overview")["tables"]) == 1


def test_read_only_writes_nothing(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    with serving(tmp_path, "--read-only") as fixed:
        assert fixed.raw("POST", f"/{fixed.token}/api/upload?name=b.csv", b"a\n1\n")[0] == 403
        assert fixed.raw("POST", f"/{fixed.token}/api/fit", b'{"table":"a.csv"}')[0] == 403
        assert fixed.ask("overview")["read_only"] is True
        assert os.listdir(tmp_path) == ["a.csv"]


@pytest.mark.parametrize(
    "options",
    [
        {"sql": "select * from '/etc/passwd'"}, {"k": "DROP"}, {"k": 0}, {"k": True}, {"types": {"Orders": "evil"}},
        {"ignore": "Orders"}, {"method": "os.system"}, {"threads": 1}, {"data": "/etc/passwd"}, {"callback": "x"},
        {"column_weights": {"Orders": "2"}}, {"budget": -1}, {"seed": 1.5}, [], "x", {"labels": "Rep"},
    ],
)  # fmt: skip
def test_options_are_of_their_form(served, options):
    said = served.ask("fit", {"table": "crm.csv", "options": options})
    assert isinstance(said, str)
    assert said.startswith("bad-")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"[" * 100_000, b"\xff", b'{"table": 1}', b'{"table": null}']
)
def test_requests_that_make_no_sense_are_refused(served, body):
    assert served.raw("POST", f"/{served.token}/api/columns", body)[0] == 400


def test_much_is_not_taken_at_once(served):
    assert served.raw("POST", f"/{served.token}/api/columns", b" " * (5 * 2**20))[0] == 413
