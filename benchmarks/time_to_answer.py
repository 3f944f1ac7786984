"""Processor time of `ilk.cluster` on 53 small tables, beside another checkout (`python -m benchmarks.time_to_answer`).

    python -m benchmarks.time_to_answer --before FOLDER/src --rounds 3
    python -m benchmarks.time_to_answer penguins votes mixed-1000 569x30 4600x57

Each checkout answers in a process of its own, table by table in turn, so that both see the same busy machine; of
several rounds the least time counts. `--before` is the `src` folder of another checkout with its compiled kernels.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
# fmt: off
SHARED = [
    "penguins", "votes", "zoo", "soybean_small", "heart_cleveland", "credit_approval", "iris", "wine",
    "banknote_swiss", "diabetes_reaven", "faithful", "ruspini", "xclara", "acidity",
    "seven_normals_outliers", "craft_binary_disjoint", "craft_numeric_overlap", "breast_cancer_wisconsin",
    "carcinoma", "flower", "monk3_full",
]
# fmt: on
N_MADE = 32
ALL = [*SHARED, *(f"made-{seed}" for seed in range(N_MADE))]
NEAR = 2.0  # BIC within which two answers count as the same
WARM_UP = {"size": [1.0, 2, 3, 9, 10, 11], "kind": list("xxxyyy")}


def made(seed: int) -> dict[str, Any]:
    """100 to 800 rows of numbers, categories or both, in 1 to 6 groups that differ in about half of the columns."""
    draws = np.random.default_rng(50_000 + seed)
    n, k = int(draws.choice([100, 200, 400, 800])), int(draws.integers(1, 7))
    n_numbers, n_categories = [(6, 0), (0, 8), (5, 5), (10, 4)][seed % 4]
    label, apart = draws.integers(0, k, n), draws.uniform(0.8, 2.5)
    columns: dict[str, Any] = {}
    for j in range(n_numbers):
        x = draws.normal(0, 1, n)
        x = x + (draws.normal(0, apart, k)[label] if draws.random() < 0.6 else 0)
        columns[f"x{j}"] = np.exp(x / 2) if draws.random() < 0.2 else x
    for j in range(n_categories):
        m = int(draws.integers(2, 5))
        tells = draws.random() < 0.6
        share = (
            draws.dirichlet(np.full(m, 0.7), k) if tells else np.repeat(draws.dirichlet(np.ones(m), 1), k, 0)
        )
        columns[f"c{j}"] = _drawn(draws, share[label])
    return columns


def mixed(n: int, seed: int = 0, k: int = 5) -> dict[str, Any]:
    """`n` rows of ten numbers and ten categories; six of each differ between five groups."""
    draws = np.random.default_rng(seed)
    label = draws.integers(0, k, n)
    columns: dict[str, Any] = {}
    for j in range(10):
        columns[f"x{j}"] = draws.normal(0, 1, n) + (draws.normal(0, 2, k)[label] if j < 6 else 0)
    for j in range(10):
        share = draws.dirichlet(np.ones(4), k if j < 6 else 1)
        columns[f"c{j}"] = _drawn(draws, (share if j < 6 else np.repeat(share, k, 0))[label])
    return columns


def _drawn(draws: np.random.Generator, share: Any) -> list[str]:
    """A letter a row, by its row of shares."""
    code = (draws.random(len(share))[:, None] > share.cumsum(axis=1)).sum(axis=1)
    return [*np.array(list("abcdef"))[np.minimum(code, share.shape[1] - 1)]]


def cells_of_tumours() -> dict[str, Any]:
    """569 x 30 numbers: breast cancer of Wisconsin (diagnostic), as scikit-learn has it."""
    from sklearn.datasets import load_breast_cancer

    return {f"x{j}": column for j, column in enumerate(load_breast_cancer().data.T)}


def amounts() -> dict[str, Any]:
    """4,600 x 57 skewed numbers."""
    from benchmarks.budgets import skewed

    return skewed()


NUMBERS: dict[str, Callable[[], dict[str, Any]]] = {"569x30": cells_of_tumours, "4600x57": amounts}


def shared(name: str) -> tuple[str, dict[str, Any]]:
    """File and options of a shared table: its truth is no column, and what is no number is a category."""
    about = json.loads((DATA / "manifest.json").read_text())[name]
    file = DATA / about["file"]
    with file.open() as lines:
        there = {name.strip().strip('"') for name in lines.readline().split(",")}
    other = {c["name"] for c in about["columns"] if c["kind"] != "numeric"} & there
    kinds = dict.fromkeys(sorted(other - {"target"}), "categorical")
    return str(file), {"ignore": sorted({"target"} & there), "types": kinds}


def table_of(name: str) -> tuple[Any, dict[str, Any]]:
    """The data of a table and the options it is read with."""
    if name.startswith("made-"):
        return made(int(name.removeprefix("made-"))), {}
    if name.startswith("mixed-"):
        return mixed(int(name.removeprefix("mixed-"))), {}
    if name in NUMBERS:
        return NUMBERS[name](), {}
    return shared(name)


def missing(name: str) -> str:
    """Why a table cannot be had here; empty where it can."""
    if name.startswith(("made-", "mixed-")) or name in NUMBERS:
        return ""
    return "" if (DATA / "manifest.json").exists() else "no shared tables beside the checkout"


def answered(name: str) -> dict[str, Any]:
    """The answer of the ilk of this process, with the processor time it took."""
    import ilk

    data, options = table_of(name)
    began = time.process_time()
    result = ilk.cluster(data, threads=1, **options)
    spent = time.process_time() - began
    least = min((c.bic for c in result.candidates if c.bic is not None and c.eligible), default=None)
    return {
        "cpu": spent,
        "k": result.k,
        "pieces": result.verdict.components,
        "word": result.verdict.word,
        "bic": least,
    }


def serve(source: Path) -> None:
    """Answers of the ilk of a source folder, one a line, for the names of tables that come in."""
    if source != ROOT / "src":  # an editable install of this checkout would come first
        sys.meta_path[:] = [finder for finder in sys.meta_path if "_editable" not in type(finder).__module__]
    import ilk

    assert Path(ilk.__file__).is_relative_to(source), f"{ilk.__file__} is not that of {source}"
    ilk.cluster(WARM_UP, k=2, threads=1)
    for line in sys.stdin:
        print(json.dumps(answered(line.strip())), flush=True)


class Checkout:
    """A process that answers with the ilk of one source folder."""

    def __init__(self, source: Path) -> None:
        paths = f"{source.resolve()}{os.pathsep}{ROOT}"
        environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.time_to_answer", "--serve", str(source.resolve())]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )

    def answer(self, name: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        return told

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measured(names: Sequence[str], sources: Sequence[Path], rounds: int) -> Iterator[list[dict[str, Any]]]:
    """Per table the answer of each checkout, its time the least of the rounds, which take turns."""
    checkouts = [Checkout(source) for source in sources]
    for name in names:
        told = [[checkout.answer(name) for checkout in checkouts] for _ in range(rounds)]
        yield [min(answers, key=lambda answer: answer["cpu"]) for answers in zip(*told, strict=True)]
    for checkout in checkouts:
        checkout.close()


def line_of(name: str, answers: Sequence[dict[str, Any]]) -> str:
    """A table in one line: times and ratio, K, word and BIC, and what differs."""
    now, then = answers[-1], answers[0]
    bic = "" if now["bic"] is None else f"{now['bic']:.1f}"
    text = f"{name:26}{now['cpu']:8.2f} s  K {now['k']} ({now['pieces']})  {now['word']:6} {bic:>11}"
    if len(answers) == 1:
        return text
    notes = [f"{key} was {then[key]}" for key in ("k", "word") if then[key] != now[key]]
    if abs(rise := _rise(then, now)) > NEAR:
        notes.append(f"BIC {rise:+.1f}")
    return f"{text}  was {then['cpu']:.2f} s, {then['cpu'] / now['cpu']:.2f}x  {', '.join(notes)}".rstrip()


def _rise(then: dict[str, Any], now: dict[str, Any]) -> float:
    if then["bic"] is None or now["bic"] is None:
        return 0.0
    return float(now["bic"] - then["bic"])


def totals(pairs: Sequence[Sequence[dict[str, Any]]]) -> str:
    """Both sides of all tables in a few lines."""
    then, now = ([pair[side] for pair in pairs] for side in (0, 1))
    spent = [sum(answer["cpu"] for answer in side) for side in (then, now)]
    ratios = [math.log(a["cpu"] / b["cpu"]) for a, b in zip(then, now, strict=True)]
    rises = [_rise(a, b) for a, b in pairs]
    same = [sum(a[key] == b[key] for a, b in pairs) for key in ("k", "word")]
    return (
        f"{len(pairs)} tables: {spent[0]:.1f} -> {spent[1]:.1f} s, {spent[0] / spent[1]:.2f}x; "
        f"geometric mean of the ratios {math.exp(sum(ratios) / len(ratios)):.2f}x\n"
        f"same K {same[0]}, same word {same[1]}, BIC lower by more than {NEAR:g} in "
        f"{sum(rise < -NEAR for rise in rises)}, higher in {sum(rise > NEAR for rise in rises)}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.time_to_answer", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="tables, 569x30, 4600x57, mixed-1000; all 53 if none is given"
    )
    parser.add_argument("--before", type=Path, help="the src folder of the checkout to compare with")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.serve:
        return serve(chosen.serve)
    names = []
    for name in chosen.names or ALL:
        if why := missing(name):
            print(f"{name:26}skipped: {why}")
        else:
            names.append(name)
    sources = [*([chosen.before] if chosen.before else []), ROOT / "src"]
    pairs = []
    for name, answers in zip(names, measured(names, sources, chosen.rounds), strict=True):
        print(line_of(name, answers), flush=True)
        pairs.append(answers)
    if len(sources) == 2 and pairs:
        print(totals(pairs))
    return None


if __name__ == "__main__":
    main()
