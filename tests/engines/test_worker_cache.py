"""Packs on the disks of workers, where there is no room for them."""

from __future__ import annotations

import errno
from pathlib import Path

from ilk.engines import worker_cache as shelf
from ilk.engines.packed import PackLayout


def test_a_pack_that_finds_no_room_leaves_no_rest(monkeypatch, tmp_path):
    def short(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shelf, "_root", lambda: tmp_path)
    monkeypatch.setattr(Path, "write_bytes", short)
    full = shelf.WorkerCache()
    full.put(0, 0, b"8 bytes.")
    assert not [*Path(tmp_path, full.name).iterdir()]


def test_a_shelf_that_is_asked_no_more_keeps_nothing_more(monkeypatch, tmp_path):
    monkeypatch.setattr(shelf, "_root", lambda: tmp_path)
    found, layout = shelf.WorkerCache(), PackLayout("float64", 1)
    for lacking in (True, False, True):
        found.learn(lacking)
    found.shipped().put(0, 0, b"8 bytes.")
    assert found.shipped().get(0, 0, 1, layout) is not None
    found.learn(True)
    assert not found.serves
    found.shipped().put(0, 1, b"8 bytes.")
    assert found.shipped().get(0, 1, 1, layout) is None
