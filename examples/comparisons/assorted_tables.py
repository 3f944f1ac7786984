"""
Labelled tables and other programs
==================================

AssortedMixture on labelled tables, compared with other programs: ARI with K given, K found and its ARI, and why. ::

    python examples/comparisons/assorted_tables.py [DATA [TABLE ...]] [--seeds 5]

DATA holds manifest.json (kinds of columns), tables/ (CSV, the label in `target`) and peer_scores.csv; without it, a
few of the tables that come with the tests are shown, one seed each, types by ilk's own rules. Labels are used
for scoring alone: no fit sees them. Rows with missing values are kept; the peers dropped them.
"""

from __future__ import annotations

import argparse
import csv
import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import ilk

TABLES = [
    *("heart_cleveland", "credit_approval", "zoo", "votes", "soybean_small", "monk3_full", "penguins"),
    *("breast_cancer_wisconsin", "wine", "iris", "splice", "diabetes_reaven", "banknote_swiss"),
    *("seven_normals_outliers", "craft_binary_disjoint", "craft_numeric_overlap"),
]
BUNDLED = Path(__file__).parents[2] / "tests" / "data"
SHOWN = ["penguins", "wine", "votes", "craft_numeric_overlap"]
KINDS = {"numeric": "numeric", "binary": "binary", "nominal": "categorical", "ordinal": "categorical"}
LEFT_OUT = {"penguins": ["year"]}  # the year of the survey
PEERS = ("sklearn KMeans", "kmodes", "stepmix")


def load(data: Path, name: str) -> tuple[pd.DataFrame, np.ndarray, dict[str, str] | None]:
    """A table without its label, the label, and the kinds of its columns where its source states them."""
    if not (data / "tables").exists():
        table = pd.read_csv(data / f"{name}.csv")
        target = table.pop("target").astype(str).to_numpy()
        return table.drop(columns=LEFT_OUT.get(name, [])), target, None
    manifest = json.loads((data / "manifest.json").read_text())
    table = pd.read_csv(data / "tables" / f"{name}.csv", dtype=str)
    target = table.pop("target").to_numpy()
    table = table.drop(columns=LEFT_OUT.get(name, []))
    table = table[[column for column in table.columns if table[column].nunique() > 1]]
    kinds = {c["name"]: KINDS[c["kind"]] for c in manifest[name]["columns"] if c["name"] in table.columns}
    for column, kind in kinds.items():
        if kind == "numeric":
            table[column] = table[column].astype(float)
    return table, target, kinds


def peers(data: Path) -> dict[tuple[str, str], float]:
    """Best ARI of each peer on each table."""
    best: dict[tuple[str, str], float] = {}
    if not (data / "peer_scores.csv").exists():
        return best
    with (data / "peer_scores.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            peer = next(p for p in PEERS if row["method"].startswith(p))
            key = (row["table"], peer)
            best[key] = max(best.get(key, -1.0), float(row["ari"]))
    return best


def scores(
    table: pd.DataFrame,
    target: np.ndarray,
    types: dict[str, str] | None,
    seeds: Iterable[int],
    **options: Any,
) -> dict[str, Any]:
    k = len(set(target))
    given = [ilk.AssortedMixture(k, types=types, random_state=s, **options).fit(table) for s in seeds]
    found = ilk.AssortedMixture(types=types, random_state=0, **options).fit(table)
    complete = table.notna().all(axis=1).to_numpy()
    from_classes = found.objective_from(target)
    return {
        "k": k,
        "why": why(k, found, target, from_classes),
        "ari": np.mean([adjusted_rand_score(target, m.labels_) for m in given]),
        "complete": np.mean([adjusted_rand_score(target[complete], m.labels_[complete]) for m in given]),
        "numbers": given[0].numbers_,
        "found": found.n_components_,
        "ari_found": adjusted_rand_score(target, found.labels_),
    }


def why(k: int, found: ilk.AssortedMixture, target: np.ndarray, from_classes: float) -> str:
    """One line on K found: whether the model prefers its clusters to the classes, and how the two lie to each other."""
    n_found, less = found.n_components_, from_classes - found.objective_
    if n_found == k and adjusted_rand_score(target, found.labels_) >= 0.95:
        return "the classes"
    if less < -0.5:
        return f"missed by the search: a fit from the classes costs {-less:.0f} nats less"
    if less < 0.5:
        return "what a fit from the classes ends in: the classes overlap in these columns"
    inside = purity(target, found.labels_)
    return f"costs {less:.0f} nats less than a fit from the classes; {inside:.0%} of rows in their cluster's class"


def purity(target: np.ndarray, labels: np.ndarray) -> float:
    """Share of the rows that are of the commonest class of their cluster."""
    return float(pd.crosstab(labels, target).max(axis=1).sum() / len(target))


def line(name: str, s: dict[str, Any], known: dict[tuple[str, str], float]) -> str:
    others = "  ".join(f"{known[name, peer]:7.3f}" if (name, peer) in known else "      -" for peer in PEERS)
    return (
        f"{name:24} {s['k']:2}  {s['ari']:6.3f}  {s['complete']:8.3f}  {s['numbers']:5}  "
        f"{s['found']:3}  {s['ari_found']:6.3f}   {others}"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("data", type=Path, nargs="?")
    arguments.add_argument("tables", nargs="*")
    arguments.add_argument("--seeds", type=int)
    asked = arguments.parse_args()
    data = asked.data or BUNDLED
    names, n_seeds = (
        asked.tables or (TABLES if asked.data else SHOWN),
        asked.seeds or (5 if asked.data else 1),
    )
    known = peers(data)
    print(f"{'':24} {'K':>2}  {'ARI':>6}  {'complete':>8}  model  K^   ARI^    k-means   kmodes  StepMix")
    every = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ilk.errors.IlkWarning)
        for name in names:
            every[name] = scores(*load(data, name), range(n_seeds))
            print(line(name, every[name], known), flush=True)
    print("\nWhy K was found so")
    for name, s in every.items():
        print(f"{name:24} K {s['k']:2}, found {s['found']:2}: {s['why']}")
    for peer in PEERS:
        shared = [name for name in every if (name, peer) in known]
        if shared:
            ours = np.mean([every[name]["ari"] for name in shared])
            theirs = np.mean([known[name, peer] for name in shared])
            print(f"mean of the {len(shared)} tables of {peer}: ours {ours:.3f}, theirs {theirs:.3f}")


if __name__ == "__main__":
    main()
