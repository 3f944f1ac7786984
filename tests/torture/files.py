"""Mutated tables in files: CSV, JSON lines and Parquet are read or refused with a code, soon."""

from __future__ import annotations

import io
import json
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ilk.errors import IlkError
from ilk.table.read import read
from ilk.table.schema import infer
from tests.torture.tally import IN_MEMORY, Clock, Tally, TooSlow, limited, named

CORPUS = Path(__file__).parent / "corpus" / "files"
SECONDS = 5.0  # of the processor, for one file
CSV_BITS = [b",", b";", b"\t", b"|", b'"', b'""', b"\n", b"\r\n", b"\r", b"\\", b"\0", b"\xff", b"\xef\xbb\xbf",
            b"1e999", b"-1e308", b"NA", b"nan", b"=1+1", b"\xe2\x80\xae", b"\xed\xa0\x80", b" " * 300, b"9" * 400, b"#",
            b"1.234,5", b"2024-02-30", b"\x1b[31m", b"\x1a"]  # fmt: skip
JSON_BITS = [b"{", b"}", b"[", b"]", b":", b",", b'"', b"\\ud800", b"1e400", b"9" * 5000, b"NaN", b"-Infinity", b"null",
             b"true", b'{"a":' * 30, b"\n", b"\0", b"\xff", b"\\u0000", b'"a":1,']  # fmt: skip


def csv_base(draw: random.Random) -> bytes:
    sep = draw.choice([",", ";", "\t", "|"])
    columns = draw.randrange(1, 6)
    rows = [sep.join(draw.choice(["1", "2.5", "x", '"a b"', "", "2024-01-05"]) for _ in range(columns))
            for _ in range(draw.randrange(0, 30))]  # fmt: skip
    return "\n".join([sep.join(f"c{j}" for j in range(columns)), *rows, ""]).encode()


def json_base(draw: random.Random) -> bytes:
    pools = [[1, 2, 3], [2.5, 3.5, None], ["x", "y"], [True, False], [[1, 2], {"d": 1}]]
    cells = {key: draw.choice(pools) for key in "abc"}
    rows = [
        {key: draw.choice(pool) for key, pool in cells.items() if draw.random() < 0.9}
        for _ in range(draw.randrange(5, 20))
    ]
    text = [json.dumps(row) for row in rows]
    return ("[" + ",".join(text) + "]" if draw.random() < 0.3 else "\n".join(text) + "\n").encode()


def parquet_base(draw: random.Random) -> bytes:
    n = draw.randrange(1, 50)
    table = pa.table({"a": np.arange(float(n)), "b": [f"x{i % 3}" for i in range(n)], "c": list(range(n))})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression=draw.choice(["none", "snappy", "zstd"]))
    return sink.getvalue()


KINDS: dict[str, tuple[Callable[[random.Random], bytes], list[bytes]]] = {
    "csv": (csv_base, CSV_BITS),
    "jsonl": (json_base, JSON_BITS),
    "parquet": (parquet_base, [b"PAR1", b"\0" * 8, b"\xff" * 8]),
}


def mutated(data: bytes, bits: list[bytes], draw: random.Random) -> bytes:
    """The bytes with one to six changes."""
    made = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 3, 6])):
        at, how = draw.randrange(len(made) + 1), draw.randrange(6)
        if how == 0:
            made[at:at] = draw.choice(bits) * draw.choice([1, 1, 1, 50])
        elif how == 1 and made:
            made[at % len(made)] ^= 1 << draw.randrange(8)
        elif how == 2:
            del made[at : at + draw.choice([1, 4, 40])]
        elif how == 3:
            made[at:at] = made[at : at + draw.randrange(1, 60)]
        elif how == 4:
            del made[at:]
        else:
            other = draw.randrange(len(made) + 1)
            made[at : at + 9], made[other : other + 9] = made[other : other + 9], made[at : at + 9]
    return bytes(made)


def attempt(path: Path) -> str:
    """Read and type it; what escapes is a failure."""
    try:
        with limited(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            infer(read(str(path)))
    except IlkError:
        return "refused"
    except TooSlow:
        raise AssertionError("more processor time than a small file may take") from None
    return "read"


@contextmanager
def one_database() -> Iterator[None]:
    """DuckDB opened once, since that takes longer than to read a small file; a reader has a connection of its own."""
    opens, opened = duckdb.connect, list[Any]()

    def connect(path: str = ":memory:", **how: Any) -> Any:
        if path != ":memory:":
            return opens(path, **how)
        if not opened:
            opened.append(opens(path, **how))
        return opened[0].cursor()

    with mock.patch.object(duckdb, "connect", connect), mock.patch.object(tempfile, "tempdir", IN_MEMORY):
        yield
    for one in opened:
        one.close()


def run(clock: Clock, first: int = 0, keep: Path | None = None) -> Tally:
    """Files until the time is over."""
    tally, seed = Tally("CSV, JSON and Parquet files, mutated"), first
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder, one_database():
        while clock.more():
            draw = random.Random(f"{seed}")
            kind = draw.choice(["csv", "csv", "jsonl", "parquet"])
            base, bits = KINDS[kind]
            path = Path(folder, f"t.{kind}")
            path.write_bytes(mutated(base(draw), bits, draw))
            try:
                tally.ended[f"{kind} {attempt(path)}"] += 1
            except Exception as error:
                tally.ended[f"{kind} failed"] += 1
                if named(error) not in tally.failures and keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{seed}.{kind}").write_bytes(smallest(path, named(error)))
                tally.failed(named(error), seed)
            seed += 1
    tally.seconds = clock.spent
    return tally


def smallest(path: Path, how: str) -> bytes:
    """The file without every run of bytes that the failure does not need."""
    data, step = path.read_bytes(), max(len(path.read_bytes()) // 2, 1)
    while step:
        at = 0
        while at < len(data):
            path.write_bytes(data[:at] + data[at + step :])
            try:
                attempt(path)
            except Exception as error:
                if named(error).split(" @ ")[-1] == how.split(" @ ")[-1]:
                    data = data[:at] + data[at + step :]
                    continue
            at += step
        step //= 2
    return data
