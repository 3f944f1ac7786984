"""Free text as columns, only where it is asked for: topics by their words, the same for new rows."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.feature_extraction.text import TfidfVectorizer

import ilk
from ilk.cli.main import cli
from ilk.errors import DataError, ModelFileError, UsageError
from ilk.export.dialects import dialect_of
from ilk.export.sql import select
from ilk.paradigms.topics import topics_of
from ilk.table.read import read
from ilk.table.schema import Schema, read_types, types_text
from ilk.table.understand import understand
from ilk.table.words import words_of

N = 300
KIND = np.arange(N) % 2
BAD = ["refund", "late", "broken", "damaged", "parcel", "return", "complaint", "angry", "waiting", "lost"]
GOOD = ["great", "love", "thanks", "perfect", "lovely", "friendly", "recommend", "fast", "happy", "quality"]
ANY = ["the", "order", "was", "and", "with", "item", "for", "shop"]


@pytest.fixture(scope="module")
def letters():
    draws = np.random.default_rng(0)
    notes = [
        " ".join([*draws.choice(GOOD if k else BAD, 3, replace=False), *draws.choice(ANY, 4)]) for k in KIND
    ]
    notes[5] = None
    return pd.DataFrame({"notes": notes, "spend": draws.normal(50, 10, N), "age": draws.normal(40, 9, N)})


@pytest.fixture(scope="module")
def result(letters):
    return ilk.cluster(letters, types={"notes": "text"})


def test_words_part_the_groups_and_name_them(result, letters):
    assert result.k == 2
    both = set(zip(result.labels.tolist(), KIND.tolist(), strict=True))
    agree = max((result.labels == KIND).mean(), (result.labels != KIND).mean())
    assert agree > 0.99, both
    bad, good = result.groups[int(result.labels[0])], result.groups[int(result.labels[1])]
    for group, words in ((bad, BAD), (good, GOOD)):
        assert group.name.startswith("notes: ")
        named = group.name.removeprefix("notes: ").split(", ")[:3]
        assert set(named) <= set(words)
    assert result.model.schema["notes"].kind == "left out"
    assert "text-topics" in dict(result.warnings)
    assert "notes: " in str(result)


def test_text_is_never_used_unasked(letters):
    assert [c.name for c in ilk.cluster(letters, k=2).model.schema.used] == ["spend", "age"]


def test_new_rows_get_the_same_topics(result, letters, tmp_path):
    result.save(tmp_path / "m.ilk")
    model = ilk.load(tmp_path / "m.ilk")
    assert model.assign(letters)["group"].tolist() == result.letters.tolist()
    new = pd.DataFrame(
        {"notes": ["Broken, refund!", "LOVELY: thanks"], "spend": [50.0, 50.0], "age": [40.0, 40.0]}
    )
    placed = model.assign(new)["group"].tolist()
    assert placed == [result.letters[0], result.letters[1]]
    assert ilk.check(result, letters)["verdict"]["word"] == "no drift"
    with pytest.raises(DataError, match="lacks 1 column of the model: 'notes'"):
        model.assign(new[["spend", "age"]])
    with pytest.raises(UsageError, match="is made of 'notes', which SQL does not do"):
        select(model, dialect_of("duckdb"), "data")


def test_the_numbers_are_those_of_scikit_learn(letters):
    texts = letters["notes"].dropna().tolist()
    count = TfidfVectorizer(analyzer=words_of, sublinear_tf=True, max_df=0.5, min_df=3, max_features=1000)
    table = count.fit_transform(texts)
    for topic in topics_of(texts, "notes").values():
        own = topic.numbers(read({"t": texts}).column("t")).to_numpy()
        np.testing.assert_allclose(own, table @ np.array(topic.weights), atol=1e-10)


def test_on_the_command_line(letters, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    letters.to_csv("letters.csv", index=False)
    fitted = CliRunner().invoke(cli, ["fit", "letters.csv", "--types", "notes=text"])
    assert fitted.exit_code == 0, fitted.output
    assert "notes: " in fitted.stdout
    placed = CliRunner().invoke(cli, ["assign", "letters.ilk", "letters.csv"]).stdout.splitlines()
    own = pd.read_csv("letters.ilk/assignments.csv")["group"].tolist()
    assert [line.split(",")[1] for line in placed[1:]] == own
    refused = CliRunner().invoke(cli, ["export", "letters.ilk", "--sql", "duckdb"])
    assert "is made of 'notes'" in refused.stderr


def test_what_is_no_text_is_refused():
    with pytest.raises(DataError, match="no words come again") as error:
        ilk.cluster({"notes": [f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(60)], "x": [*range(60)]},
                    types={"notes": "text"})  # fmt: skip
    assert error.value.code == "no-words"
    with pytest.raises(DataError, match="was asked to be text"):
        ilk.cluster({"notes": np.arange(60.0), "x": [*range(60)]}, types={"notes": "text"})


def test_the_types_file_keeps_it(letters, tmp_path):
    schema = understand(read(letters), types={"notes": "text"})
    path = tmp_path / "types.toml"
    path.write_text(types_text(schema))
    assert read_types(path)["notes"] == "text"


def test_a_damaged_topic_is_refused(result):
    plain = json.loads(json.dumps(result.model.schema.to_dict()))
    assert Schema.from_dict(plain) == result.model.schema
    entry = next(c for c in plain["columns"] if c["topic"])
    topic = entry["topic"]
    for damage in (
        [], {"words": topic["words"]}, {**topic, "idf": topic["idf"][1:]}, {**topic, "words": topic["words"][:1] * 9},
        {**topic, "weights": ["a"] * len(topic["weights"])}, {**topic, "weights": [1e300] * len(topic["weights"])},
    ):  # fmt: skip
        with pytest.raises(ModelFileError):
            Schema.from_dict({**plain, "columns": [{**entry, "topic": damage}]})


def test_tables_in_parts_are_refused(letters, tmp_path):
    from ilk.analysis.free_text import refuse_topics

    with pytest.raises(UsageError, match="read in parts") as error:
        refuse_topics(understand(read(letters), types={"notes": "text"}))
    assert error.value.code == "text-in-parts"
