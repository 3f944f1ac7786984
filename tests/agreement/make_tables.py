"""The tables made for the tests of agreement: `python tests/agreement/make_tables.py` writes them to tests/data.

Their generator is fixed, so the same files come out; other programs' figures of them are in `golden/`. They stand
beside tables of R packages, which a clone may not hold: one column, correlated and stretched clouds that overlap,
groups far apart, and answers in categories, some of them missing.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "data"
Generator = np.random.Generator


def write(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with (DATA / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def clouds(name: str, draws: Generator, parts: Sequence[tuple[int, Sequence[float], np.ndarray]]) -> None:
    """Normal groups, each with its size, mean and a matrix that shapes it; two digits after the point."""
    rows: list[list[object]] = []
    for group, (size, mean, shape) in enumerate(parts):
        cells = draws.normal(size=(size, len(mean))) @ shape.T + mean
        rows += [[f"{cell:.2f}" for cell in row] + [f"g{group}"] for row in cells]
    order = draws.permutation(len(rows))
    header = [f"x{j}" for j in range(1, len(parts[0][1]) + 1)]
    write(name, [*header, "target"], (rows[i] for i in order))


def numbers() -> None:
    draws = np.random.default_rng(20261116)
    one = np.eye(1)
    clouds("made_line", draws, [(80, [4.3], 0.4 * one), (50, [6.2], 0.6 * one), (30, [7.6], 0.25 * one)])
    ridge = np.array([[1.2, 0.0], [3.5, 4.0]])
    clouds("made_ridges", draws, [(90, [12, 80], ridge), (90, [7, 55], ridge), (60, [10.5, 62], 0.6 * ridge)])
    shapes = [
        np.tril(draws.normal(0, 0.5, (4, 4))) + np.diag(scale)
        for scale in ([1, 2, 1, 0.5], [2, 1, 1, 1], [1, 1, 3, 1])
    ]
    clouds(
        "made_shapes",
        draws,
        [(60, [0, 0, 0, 0], shapes[0]), (70, [5, 3, 0, 1], shapes[1]), (50, [2, 7, 4, -2], shapes[2])],
    )
    axes = np.linalg.qr(draws.normal(size=(6, 6)))[0] * [3.0, 2.0, 1.5, 1.0, 0.7, 0.5]
    clouds(
        "made_batches",
        draws,
        [(100, [20, 13, 13, 8, 10, 14], axes), (100, [20, 14, 14, 12, 11, 11], 0.7 * axes)],
    )
    places = [[20, 60], [45, 145], [95, 115], [70, 20]]
    clouds(
        "made_places",
        draws,
        [(size, at, 9 * np.eye(2)) for size, at in zip([20, 23, 17, 15], places, strict=True)],
    )


def answers() -> None:
    draws = np.random.default_rng(391)
    agree = np.array([[0.9] * 7, [0.1] * 7, [0.9, 0.2, 0.8, 0.1, 0.5, 0.15, 0.85]])
    label = draws.choice(3, 160, p=[0.4, 0.35, 0.25])
    cells = 1 + (draws.random((160, 7)) < agree[label])
    write("made_raters", [f"r{j}" for j in range(1, 8)], cells.tolist())

    label = draws.choice(3, 300, p=[0.5, 0.3, 0.2])
    chance = [draws.dirichlet(np.full(levels, 0.5), 3) for levels in (2, 3, 4, 3, 2, 5)]
    columns = [["abcde"[draws.choice(len(p[g]), p=p[g])] for g in label] for p in chance]
    empty = draws.random((300, 6)) < 0.08
    empty[empty.all(axis=1)] = False
    rows = [
        ["" if gone else cell for cell, gone in zip(row, gaps, strict=True)]
        for row, gaps in zip(zip(*columns, strict=True), empty, strict=True)
    ]
    write("made_answers", [f"q{j}" for j in range(1, 7)], rows)

    label = draws.choice(3, 240, p=[0.4, 0.35, 0.25])
    size = draws.normal(np.array([10.0, 16.0, 22.0])[label], 2.0)
    mass = draws.normal(np.array([3.0, 7.0, 4.0])[label], 1.0)
    words = [
        ["abc"[draws.choice(3, p=p[g])] for g in label]
        for p in (draws.dirichlet(np.full(3, 0.6), 3) for _ in range(3))
    ]
    cells = [
        [f"{s:.2f}", f"{m:.2f}", *w] for s, m, w in zip(size, mass, zip(*words, strict=True), strict=True)
    ]
    empty = draws.random((240, 5)) < 0.06
    empty[empty.all(axis=1)] = False
    rows = [
        ["" if gone else cell for cell, gone in zip(row, gaps, strict=True)]
        for row, gaps in zip(cells, empty, strict=True)
    ]
    write("made_mixed", ["size", "mass", "colour", "form", "taste"], rows)

    rows = [
        [
            *draws.integers(0, 2, 3),
            draws.integers(1, 5),
            draws.integers(1, 4),
            draws.integers(1, 17),
            5 * draws.integers(4, 40),
            5 * draws.integers(2, 13),
        ]
        for _ in range(20)
    ]
    write("made_garden", [f"V{j}" for j in range(1, 9)], rows)


if __name__ == "__main__":
    numbers()
    answers()
