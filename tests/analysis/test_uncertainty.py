"""Standard errors of the profiles of groups: those of means and shares where groups are far apart, wider where not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ilk
from ilk.errors import UsageError


def far_apart(n_rows=400):
    draws = np.random.default_rng(0)
    group = (np.arange(n_rows) % 5 < 2).astype(int)
    size = np.where(group, 100.0, 0.0) + draws.normal(0, np.where(group, 3.0, 1.0))
    kind = np.array(["a", "b"])[(draws.random(n_rows) < np.where(group, 0.8, 0.3)).astype(int)]
    return pd.DataFrame({"size": size, "kind": kind}), group


@pytest.mark.parametrize("method", ["gaussian", "k-means", "assorted"])
def test_closed_forms_of_groups_far_apart(method):
    table, _ = far_apart()
    columns = ["size", "kind"] if method == "assorted" else ["size"]
    result = ilk.cluster(table[columns], k=2, method=method)
    found = result.standard_errors(150)
    assert list(found.columns) == ["value", "standard_error", "lower", "upper"]
    for number, letter in enumerate(result.model.letters):
        mine = result.labels == number
        line = found.loc[(letter, "size", "")]
        assert line["value"] == pytest.approx(table["size"][mine].mean())
        assert line["value"] == pytest.approx(result.profile.loc[("size", ""), letter])
        assert line["standard_error"] == pytest.approx(
            table["size"][mine].std() / np.sqrt(mine.sum()), rel=0.25
        )
        assert line["lower"] < line["value"] < line["upper"]
        share = found.loc[(letter, "(share)", "")]
        assert share["standard_error"] == pytest.approx(np.sqrt(0.6 * 0.4 / len(table)), rel=0.25)
        if method == "assorted":
            level = found.loc[(letter, "kind", "b")]
            p = (table["kind"][mine] == "b").mean()
            assert level["value"] == pytest.approx(p)
            assert level["standard_error"] == pytest.approx(np.sqrt(p * (1 - p) / mine.sum()), rel=0.25)


def test_the_same_seed_gives_the_same_errors_and_weights_count():
    table, _ = far_apart()
    result = ilk.cluster(table.assign(w=2), k=2, method="assorted", weight="w")
    one, two = result.standard_errors(20), result.standard_errors(20)
    pd.testing.assert_frame_equal(one, two)
    plain = ilk.cluster(table, k=2, method="assorted").standard_errors(150)
    heavy = result.standard_errors(150)
    ratio = heavy["standard_error"] / plain["standard_error"]
    assert ratio[ratio.notna() & (plain["standard_error"] > 0)].median() == pytest.approx(
        np.sqrt(0.5), rel=0.2
    )


def test_groups_without_parameters_are_refused():
    table, group = far_apart(100)
    for result in (ilk.describe(table, group), ilk.cluster(table[["size"]], k=2, method="spectral")):
        with pytest.raises(UsageError, match="no parameters"):
            result.standard_errors(10)
    with pytest.raises(UsageError, match="kind"):
        ilk.cluster(table[["size"]], k=2).standard_errors(10, kind="jackknife")
