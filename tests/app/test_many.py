"""Many rows and many clients: a million rows are paged, sorted and searched, fifty clients are all answered."""

from __future__ import annotations

import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ilk.app.rows import CELLS, Query, rows

ROWS = 1_000_000
PATIENCE = 10  # seconds, on a busy machine


@pytest.fixture(scope="module")
def million(tmp_path_factory):
    """What a run of a million rows keeps of them."""
    folder = tmp_path_factory.mktemp("large.ilk")
    number = np.arange(ROWS)
    cells = {
        "amount": (number * 7919) % 1_000_003 / 100,
        "city": np.array(["Bonn", "Lyon", "Graz"])[number % 3],
    }
    pq.write_table(pa.table(cells), folder / CELLS)
    groups = {"row": number, "group": np.array(["A", "B"])[number % 2], "probability": np.full(ROWS, 0.5)}
    pq.write_table(pa.table(groups), folder / "assignments.parquet")
    return folder


@pytest.mark.parametrize(
    ("query", "total", "first"),
    [
        (Query(), ROWS, "0"),
        (Query(page=19_999), ROWS, "999950"),
        (Query(group="B"), ROWS // 2, "1"),
        (Query(sort="amount", down=True), ROWS, None),
        (Query(search="999999"), None, None),
        (Query(group="A", search="lyon", sort="amount"), ROWS // 6 + 1, None),
        (Query(only=[5, 700_000]), 2, "5"),
    ],
)
def test_a_page_of_a_million_rows_comes_soon(million, query, total, first):
    began = time.monotonic()
    found = rows(million, million, query)
    assert time.monotonic() - began < PATIENCE
    assert total is None or abs(found["total"] - total) <= 1
    assert first is None or found["rows"][0][0] == first
    if query.sort:
        amounts = [float(row[found["columns"].index("amount")]) for row in found["rows"]]
        assert amounts == sorted(amounts, reverse=query.down)


def test_fifty_clients_are_all_answered(served):
    end, seen = time.monotonic() + 3, []

    def client():
        while time.monotonic() < end:
            seen.append(served.raw("GET", f"/{served.token}/api/overview")[0])

    threads = [threading.Thread(target=client) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) >= 50
    assert set(seen) == {200}
