"""The model file: canonical bytes, round trip, and a refusal of everything that is not one of ours."""

from __future__ import annotations

import doctest
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import ilk.store.container as container
from ilk.errors import IlkWarning, ModelFileError, UsageError
from ilk.store import load, pack, save, unpack

GOLDEN = Path(__file__).parent / "data" / "version_1_0.ilk"
DOCUMENT = {"k": 2, "names": ["a", "é"], "tolerance": 1e-8, "nothing": None, "nested": {"yes": True}}
ARRAYS = {
    "mean": np.array([[0.1, -0.0], [np.pi, np.inf]]),
    "codes": np.array([-1, 0, 2**31 - 1], dtype=np.int32),
    "sizes": np.array([3, 2**62], dtype=np.int64),
    "single": np.float32(1.5) * np.ones((1, 1, 2), dtype=np.float32),
    "bytes": np.arange(5, dtype=np.uint8),
    "empty": np.zeros((0, 7)),
    "scalar": np.array(4.25),
}
DATA = pack("golden", DOCUMENT, ARRAYS)


def assert_golden(packed):
    assert packed.kind == "golden"
    assert packed.version == (1, 0)
    assert packed.document == DOCUMENT
    assert packed.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        found = packed.arrays[name]
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
        assert found.flags.writeable
        assert found.flags.aligned


def forged(header: dict | bytes, body: bytes = b"") -> bytes:
    """A file with any header and a digest that fits: what somebody who knows the format can make."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-(16 + len(text)) % 64)
    front = container.MAGIC + len(text).to_bytes(8, "little") + text + body
    return front + hashlib.sha256(front).digest()


def plain(**changes) -> dict:
    return {"arrays": [], "document": {}, "kind": "x", "version": [1, 0], **changes}


def one(shape, dtype="f8", name="a") -> dict:
    return plain(arrays=[{"dtype": dtype, "name": name, "shape": shape}])


@pytest.mark.badinput("H3")
def test_the_first_version_stays_readable_and_is_still_written_alike():
    assert_golden(load(GOLDEN))
    assert GOLDEN.read_bytes() == DATA


def test_round_trip_on_disk_and_second_save(tmp_path):
    save(tmp_path / "m.ilk", "golden", DOCUMENT, ARRAYS)
    packed = load(tmp_path / "m.ilk")
    assert_golden(packed)
    save(tmp_path / "n.ilk", packed.kind, packed.document, packed.arrays)
    assert (tmp_path / "m.ilk").read_bytes() == (tmp_path / "n.ilk").read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        save(tmp_path / "m.ilk", "golden", DOCUMENT, ARRAYS)
    save(tmp_path / "m.ilk", "golden", {}, {}, overwrite=True)


def test_the_same_content_gives_the_same_bytes():
    shuffled = {name: ARRAYS[name] for name in reversed(ARRAYS)}
    layouts = {**shuffled, "mean": np.asfortranarray(ARRAYS["mean"]).astype(">f8")}
    document = dict(reversed(DOCUMENT.items()))
    assert pack("golden", document, layouts) == DATA


def test_arrays_lie_on_multiples_of_64():
    assert DATA.find(ARRAYS["mean"].tobytes()) % 64 == 0
    assert (len(DATA) - 32) % 64 == 0


@settings(deadline=None, max_examples=150)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=9),
        st.sampled_from(["<f8", "<f4", "<i8", "<i4", "|u1"]).flatmap(
            lambda dtype: nps.arrays(dtype, nps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
        ),
        max_size=5,
    ),
    st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()),
)
def test_round_trip(arrays, document):
    data = pack("any", document, arrays)
    packed = unpack(data)
    assert packed.document == document
    assert {k: (a.dtype, a.shape, a.tobytes()) for k, a in packed.arrays.items()} == {
        k: (a.dtype, a.shape, a.tobytes()) for k, a in arrays.items()
    }
    assert pack(packed.kind, packed.document, packed.arrays) == data


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.zeros(3))
    return file.getvalue()


@pytest.mark.badinput("H1")
@pytest.mark.parametrize(
    ("data", "looks"),
    [
        (pickle.dumps({"a": 1}), "a Python pickle"),
        (_npz(), "a zip archive"),
        (b"\x93NUMPY" + bytes(100), "a NumPy array"),
        (b'{"a": 1}', "a JSON file"),
        (b"a,b\n1,2\n", ""),
        (b"", ""),
        (b"\x89ilk\n\x1a\n" + bytes(100), ""),
    ],
    ids=["pickle", "npz", "npy", "json", "csv", "empty", "newlines changed"],
)
def test_other_files_are_not_models(tmp_path, data, looks):
    (tmp_path / "m.ilk").write_bytes(data)
    with pytest.raises(ModelFileError, match=rf"not a model file of ilk.*{looks}.*m\.ilk") as caught:
        load(tmp_path / "m.ilk")
    assert caught.value.exit_code == 6


@pytest.mark.badinput("H2")
def test_a_newer_major_version_names_both():
    with pytest.raises(ModelFileError, match=r"version 2\.3, this program reads up to 1"):
        unpack(forged(plain(version=[2, 3], novelty=1)))


@pytest.mark.badinput("H2")
def test_a_newer_minor_version_is_read_with_a_warning():
    data = forged(plain(version=[1, 7], novelty=1, document={"k": 1}))
    with pytest.warns(
        IlkWarning, match=r"version 1\.7, this program writes 1\.0; left out: novelty"
    ) as caught:
        packed = unpack(data)
    assert packed.document == {"k": 1}
    assert packed.version == (1, 7)
    assert caught[0].message.code == "model-newer"


@pytest.mark.badinput("H4")
def test_truncated_at_every_byte(tmp_path):
    for length in range(len(DATA)):
        with pytest.raises(ModelFileError):
            unpack(DATA[:length])
    for length in range(0, len(DATA), 97):
        (tmp_path / "m.ilk").write_bytes(DATA[:length])
        with pytest.raises(ModelFileError):
            load(tmp_path / "m.ilk")
    with pytest.raises(ModelFileError):
        unpack(DATA + b"\x00")


@pytest.mark.badinput("H5")
def test_one_bit_flipped_at_every_byte():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for position in range(len(DATA)):
            for bit in range(8):
                damaged = bytearray(DATA)
                damaged[position] ^= 1 << bit
                with pytest.raises(ModelFileError):
                    unpack(bytes(damaged))


def test_the_forging_hand_can_make_a_good_file():
    assert unpack(forged(one([2], "i4"), np.array([1, 2], "<i4").tobytes() + bytes(56))).arrays[
        "a"
    ].tolist() == [1, 2]


DEEP = b'{"arrays":[],"document":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b'},"kind":"x","version":[1,0]}'
HOSTILE = {
    "header of 2 GB": container.MAGIC + (2**31).to_bytes(8, "little") + bytes(200),
    "header of 2^64": container.MAGIC + b"\xff" * 8 + bytes(200),
    "header not a multiple": container.MAGIC + (49).to_bytes(8, "little") + bytes(200),
    "depth": forged(DEEP),
    "depth 17": forged(plain(document={"x": json.loads("[" * 15 + "]" * 15)})),
    "unclosed string": forged(b'{"arrays":"' + b'\\"' * 400_000),
    "duplicate keys": forged(b'{"arrays":[],"document":{"a":1,"a":2},"kind":"x","version":[1,0]}'),
    "duplicate header keys": forged(b'{"arrays":[],"kind":"y","document":{},"kind":"x","version":[1,0]}'),
    "1e5 arrays": forged(plain(arrays=[0] * 100_000)),
    "shape product overflow": forged(one([2**32, 2**32, 2])),
    "shape product wraps to 0": forged(one([2**32, 2**32])),
    "empty with huge sides": forged(one([0, 2**62, 2**62])),
    "negative size": forged(one([-1])),
    "two negative sizes": forged(one([-1, -8])),
    "NaN size": forged(
        b'{"arrays":[{"dtype":"f8","name":"a","shape":[NaN]}],"document":{},"kind":"x","version":[1,0]}'
    ),
    "float size": forged(one([1.0])),
    "true size": forged(one([True]), bytes(64)),
    "text size": forged(one(["1"])),
    "shape no list": forged(one(1)),
    "nine dimensions": forged(one([1] * 9), bytes(64)),
    "bytes too many": forged(one([1]), bytes(128)),
    "bytes too few": forged(one([9]), bytes(64)),
    "padding not zero": forged(one([1]), bytes(63) + b"x"),
    "object dtype": forged(one([1], "O"), bytes(64)),
    "big-endian dtype": forged(one([1], ">f8"), bytes(64)),
    "dtype no text": forged(one([1], ["f8"]), bytes(64)),
    "array no object": forged(plain(arrays=[7])),
    "array with offset": forged(plain(arrays=[{"dtype": "f8", "name": "a", "shape": [0], "offset": 0}])),
    "name empty": forged(one([0], name="")),
    "name long": forged(one([0], name="x" * 201)),
    "name no text": forged(one([0], name=1)),
    "same name twice": forged(plain(arrays=[{"dtype": "f8", "name": "a", "shape": [0]}] * 2)),
    "arrays no list": forged(plain(arrays={})),
    "Infinity": forged(b'{"arrays":[],"document":{"a":Infinity},"kind":"x","version":[1,0]}'),
    "1e999": forged(b'{"arrays":[],"document":{"a":1e999},"kind":"x","version":[1,0]}'),
    "5000 digits": forged(b'{"arrays":[],"document":{"a":' + b"9" * 5000 + b'},"kind":"x","version":[1,0]}'),
    "not ASCII": forged('{"arrays":[],"document":{"a":"é"},"kind":"x","version":[1,0]}'.encode()),
    "not JSON": forged(b"{nonsense"),
    "JSON but a list": forged(b"[1, 2]"),
    "space before": forged(b'  {"arrays":[],"document":{},"kind":"x","version":[1,0]}'),
    "spaces after": forged(json.dumps(plain()).encode() + b" " * 128),
    "two documents": forged(b"{} {}"),
    "nothing": forged({}),
    "no kind": forged({"arrays": [], "document": {}, "version": [1, 0]}),
    "kind no text": forged(plain(kind=3)),
    "document a list": forged(plain(document=[])),
    "unknown field": forged(plain(extra=1)),
    "version 0": forged(plain(version=[0, 9])),
    "version text": forged(plain(version="1.0")),
    "version true": forged(plain(version=[True, 0])),
    "version negative": forged(plain(version=[1, -1])),
    "version of three": forged(plain(version=[1, 0, 0])),
    "huge version": forged(plain(version=[10**30, 0])),
}


@pytest.mark.badinput("H6")
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused_before_memory_is_asked_for(data):
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError) as caught:
            unpack(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A header is at most 1 MiB; its text and its parsed form stand beside it for a moment.
    assert peak < 10 * 2**20
    assert len(str(caught.value)) < 400


@pytest.mark.badinput("H6")
@settings(deadline=None, max_examples=300)
@given(st.data())
def test_mutated_headers_with_a_fitting_digest_never_do_anything_else_than_load_or_refuse(data):
    header = bytearray(DATA[16 : DATA.rindex(b"}") + 1])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(header) - 1))
        header[start : start + data.draw(st.integers(0, 3))] = data.draw(
            st.sampled_from(
                [b"", b"0", b"-", b"9" * 20, b"[", b"]", b'"', b"{", b"null", b"1e9", b",", b"\\"]
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IlkWarning)
        try:
            packed = unpack(forged(bytes(header), DATA[-32 - 7 * 64 : -32]))
        except ModelFileError:
            return
    assert isinstance(packed.document, dict)


@pytest.mark.badinput("H9")
def test_a_file_that_changes_while_it_is_read_is_refused():
    for size in (len(DATA) - 64, len(DATA) + 64):
        with pytest.raises(ModelFileError):
            container._FileReader(io.BytesIO(DATA).read, size, "").run()
    grown = io.BytesIO(DATA + b"more")
    with pytest.raises(ModelFileError):
        container._FileReader(grown.read, len(DATA), "").run()


def test_reading_in_small_pieces_is_the_same():
    file = io.BytesIO(DATA)
    assert_golden(container._FileReader(lambda n: file.read(min(n, 5)), len(DATA), "").run())


@pytest.mark.badinput("D16")
def test_paths_that_are_no_plain_file(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        load(tmp_path / "gone.ilk")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a plain file"):
        load(tmp_path / "pipe")
    (tmp_path / "m.ilk").write_bytes(DATA)
    with pytest.raises(ModelFileError, match="more than 100"):
        load(tmp_path / "m.ilk", max_bytes=100)


@pytest.mark.parametrize(
    ("document", "arrays", "text"),
    [
        ({"a": float("nan")}, {}, "finite"),
        ({"a": object()}, {}, "cannot be saved"),
        ({1: 2}, {}, "key that is not text"),
        ({"a": [{2: 1}]}, {}, "key that is not text"),
        ({"a": json.loads("[" * 20 + "]" * 20)}, {}, "nested"),
        ({"a": "x" * 2_000_000}, {}, "document takes"),
        ({}, {"a": np.zeros(2, dtype=np.float16)}, "float16 cannot be saved .array a"),
        ({}, {"a": np.array(["x"])}, "cannot be saved"),
        ({}, {"a": np.array([None])}, "object cannot be saved"),
        ({}, {"a": [1, 2]}, "list cannot be saved"),
        ({}, {"a": np.zeros((1,) * 9)}, "shape"),
        ({}, {"": np.zeros(1)}, "no name"),
        ({}, {3: np.zeros(1)}, "no name"),
        ({}, {f"a{i}": np.zeros(1) for i in range(4097)}, "4097 arrays"),
    ],
)
def test_what_cannot_be_packed_is_named(document, arrays, text):
    with pytest.raises(UsageError, match=text):
        pack("x", document, arrays)


AUDIT = """
import sys, warnings
from ilk.store import load
seen = []
FORBIDDEN = {"import", "exec", "compile", "marshal", "pickle", "socket", "subprocess", "ctypes"}
def hook(event, arguments):
    writing = event == "open" and any(mark in str(arguments[1] or "r") for mark in "wax+")
    if writing or event.split(".")[0] in FORBIDDEN:
        seen.append((event, str(arguments)[:80]))
sys.addaudithook(hook)
for path in sys.argv[1:]:
    try:
        load(path)
    except ValueError:
        pass
print(seen)
"""


@pytest.mark.badinput("H10")
def test_loading_imports_runs_and_writes_nothing(tmp_path):
    (tmp_path / "flipped.ilk").write_bytes(DATA[:-1] + b"?")
    (tmp_path / "pickle.ilk").write_bytes(pickle.dumps(print))
    files = [GOLDEN, tmp_path / "flipped.ilk", tmp_path / "pickle.ilk"]
    source = str(Path(container.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run(
        [sys.executable, "-c", AUDIT, *map(str, files)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"


def test_examples():
    assert doctest.testmod(container).failed == 0
