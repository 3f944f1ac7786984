"""Figures of StepMix for the tables in tests/data: `python tests/agreement/make_golden.py` writes golden/stepmix.json.

Needs `pip install stepmix` in an environment of its own. The best of many starts, to a tight tolerance; missing cells
drop out of the likelihood (`_nan`), as they do here.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from stepmix import StepMix

HERE = Path(__file__).parent
CASES = {  # table: its numeric columns, those that are left out, and the numbers of classes
    "made_raters": ((), (), (1, 2, 3)),
    "made_answers": ((), (), (1, 2, 3)),
    "made_mixed": (("size", "mass"), (), (1, 2, 3)),
    "votes": ((), ("target",), (2,)),
    "penguins": (
        ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"),
        ("target", "year"),
        (2, 3),
    ),
}
STARTS = 60


def columns_of(name: str) -> tuple[pd.DataFrame, list[str], list[str]]:
    """The cells as numbers (categories as codes in the order of their names), and which columns are which."""
    numeric, dropped, _ = CASES[name]
    table = pd.read_csv(
        HERE.parent / "data" / f"{name}.csv", dtype=str, keep_default_na=False, na_values=[""]
    )
    table = table.drop(columns=list(dropped)).dropna(how="all")
    for column in table:
        if column in numeric:
            cells = table[column].astype(float)
            table[column] = (cells - cells.mean()) / cells.std(ddof=0)  # its covariances get 1e-6 added
        else:
            codes = pd.Categorical(table[column]).codes.astype(float)
            table[column] = np.where(codes < 0, np.nan, codes)
    return table, list(numeric), [c for c in table if c not in numeric]


def scale_of(name: str) -> float:
    """What the log-likelihood of standardised columns is too large by: a log of the unit for each cell."""
    table = pd.read_csv(HERE.parent / "data" / f"{name}.csv")
    return sum(table[c].notna().sum() * float(np.log(table[c].std(ddof=0))) for c in CASES[name][0])


def figures_of(name: str, k: int) -> dict[str, object]:
    table, numeric, words = columns_of(name)
    measurement = {}
    if words:
        measurement["words"] = {"model": "categorical_nan", "n_columns": len(words)}
    if numeric:
        measurement["numbers"] = {"model": "gaussian_diag_nan", "n_columns": len(numeric)}
    model = StepMix(
        k,
        measurement=measurement,
        n_init=STARTS if k > 1 else 1,
        abs_tol=1e-11,
        max_iter=5000,
        random_state=0,
        progress_bar=0,
    )
    data = table[[*words, *numeric]]
    model.fit(data)
    n_values = {c: int(table[c].nunique()) for c in words}
    return {
        "table": name,
        "K": k,
        "rows": len(table),
        "numeric_columns": numeric,
        "dropped_columns": list(CASES[name][1]),
        "loglik": float(model.score(data) * len(data) - scale_of(name)),
        "npar": k - 1 + k * (sum(n_values.values()) - len(words)) + 2 * k * len(numeric),
        "class_shares": sorted(model.weights_.tolist(), reverse=True),
    }


def main() -> None:
    sets = [figures_of(name, k) for name, (_, _, ks) in CASES.items() for k in ks]
    told = {
        "made_with": {package: version(package) for package in ("stepmix", "scikit-learn", "numpy")},
        "conventions": f"best of {STARTS} random starts; rows without any cell left out; Gaussian numbers, independent",
        "sets": sets,
    }
    (HERE / "golden" / "stepmix.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
