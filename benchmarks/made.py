"""Tables with known answers: single clouds, groups a given distance apart, stray points, mixed columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

Draws = np.random.Generator


def gaussian(draws: Draws, n: int, d: int) -> np.ndarray:
    return draws.normal(size=(n, d))


def stretched(draws: Draws, n: int, d: int) -> np.ndarray:
    return turned(draws.normal(size=(n, d)) * np.geomspace(1, 20, d), draws)


def uniform(draws: Draws, n: int, d: int) -> np.ndarray:
    return draws.random((n, d))


def student(draws: Draws, n: int, d: int) -> np.ndarray:
    return draws.normal(size=(n, d)) / np.sqrt(draws.chisquare(3, n) / 3)[:, None]


def laplace(draws: Draws, n: int, d: int) -> np.ndarray:
    return draws.normal(size=(n, d)) * np.sqrt(draws.exponential(1, n))[:, None]


def lognormal(draws: Draws, n: int, d: int) -> np.ndarray:
    return np.exp(0.8 * draws.normal(size=(n, d)))


def lognormal_correlated(draws: Draws, n: int, d: int) -> np.ndarray:
    shared = draws.normal(size=(n, 1))
    return np.exp(np.sqrt(0.5) * shared + np.sqrt(0.5) * draws.normal(size=(n, d)))


def curved(draws: Draws, n: int, d: int) -> np.ndarray:
    X = draws.normal(size=(n, d))
    X[:, 1] = 0.5 * X[:, 1] + X[:, 0] ** 2
    return X


CLAIMS = ("solid", "fair")  # verdicts that there are groups
CLOUDS: dict[str, Callable[[Draws, int, int], np.ndarray]] = {
    "gaussian": gaussian,
    "stretched": stretched,
    "uniform": uniform,
    "student": student,
    "laplace": laplace,
    "lognormal": lognormal,
    "lognormal correlated": lognormal_correlated,
    "curved": curved,
}


def turned(X: np.ndarray, draws: Draws) -> np.ndarray:
    return X @ np.linalg.qr(draws.normal(size=(X.shape[1], X.shape[1])))[0]


def parted(seed: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Two to eight groups of unequal size, some stretched, a quarter each heavy-tailed and skewed, no outliers."""
    draws = np.random.default_rng([seed, int(10 * delta)])
    d, k = int(draws.choice([2, 5])), int(draws.integers(2, 9))
    n, aspect = int(draws.choice([100, 300, 1000])), float(draws.choice([1, 5, 20]))
    k = min(k, n // 25)
    shape = draws.choice(["gaussian", "gaussian", "student", "skewed"])
    share = draws.dirichlet(np.full(k, 5.0)) * 0.7 + 0.3 / k
    label = np.repeat(np.arange(k), draws.multinomial(n - 10 * k, share) + 10)
    halves = [
        np.linalg.qr(draws.normal(size=(d, d)))[0] * np.geomspace(1, 1 / np.sqrt(aspect), d) for _ in range(k)
    ]
    centres = draws.normal(size=(k, d))
    centres *= delta / _nearest(centres, halves)
    rows = np.empty((n, d))
    for g in range(k):
        size = int((label == g).sum())
        core = draws.normal(size=(size, d))
        if shape == "student":
            core /= np.sqrt(draws.chisquare(4, size) / 4)[:, None] * np.sqrt(2)
        if shape == "skewed":
            core = (draws.gamma(4, size=(size, d)) - 4) / 2
        rows[label == g] = centres[g] + core @ halves[g].T
    return rows, label


def _nearest(centres: np.ndarray, halves: list[np.ndarray]) -> float:
    covariances = [half @ half.T for half in halves]
    return min(
        float(np.sqrt(away @ np.linalg.solve((covariances[i] + covariances[j]) / 2, away)))
        for i in range(len(centres))
        for j in range(i)
        for away in [centres[i] - centres[j]]
    )


def cigars(seed: int, d: int) -> np.ndarray:
    """Three parallel cigars of aspect 20, six standard deviations apart, 100 rows each."""
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(300, d))
    X[:, 0] *= 20
    X[:, 1] += 6 * np.repeat(np.arange(3), 100)
    return turned(X, draws)


def strewn(seed: int, delta: float, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The groups of `parted` and stray points over a field half as wide again; those are labelled -1."""
    X, label = parted(seed, delta)
    draws = np.random.default_rng([seed, 99])
    low, wide = X.min(axis=0), np.ptp(X, axis=0)
    stray = draws.uniform(low - wide / 4, low + 5 * wide / 4, (round(share * len(X)), X.shape[1]))
    return np.vstack([X, stray]), np.append(label, np.full(len(stray), -1))


MIXED_CLOUDS = ("categories", "categories of one trait", "gaussian", "uniform", "lognormal", "one trait")
LEVELS = np.array(list("abcdef"))


def mixed_cloud(kind: str, seed: int, n: int) -> pd.DataFrame:
    """Numbers and categories without groups: independent columns, or all of them led by one continuous trait."""
    draws = np.random.default_rng([seed, n])
    of_categories = kind.startswith("categories")
    n_numbers = 0 if of_categories else int(draws.integers(2, 5))
    n_codes = 8 if of_categories else int(draws.integers(2, 6))
    if kind.endswith("trait"):
        trait = draws.normal(size=n)
        numbers = 0.7 * (trait[:, None] + draws.normal(size=(n, n_numbers)))
        odds = 1.5 * (trait[:, None] - draws.normal(size=n_codes))
        return _frame(numbers, (draws.random((n, n_codes)) < 1 / (1 + np.exp(-odds))).astype(int))
    clouds = {"uniform": uniform, "lognormal": lognormal}
    numbers = clouds.get(kind, gaussian)(draws, n, n_numbers)
    shares = [draws.dirichlet(np.full(draws.integers(2, 5), 3.0)) for _ in range(n_codes)]
    return _frame(numbers, np.stack([draws.choice(len(p), n, p=p) for p in shares], axis=1))


def mixed_parted(seed: int, overlap: tuple[float, float]) -> tuple[pd.DataFrame, np.ndarray]:
    """Two to five groups in numbers and categories; the sum of both error rates of the two that are nearest lies within
    `overlap` (Gaussian groups four standard deviations apart have .046)."""
    for attempt in range(5000):
        draws = np.random.default_rng([seed, attempt, 7])
        model = _MixedModel(draws)
        if overlap[0] <= model.overlap(draws) <= overlap[1]:
            n = int(draws.choice([150, 300, 1000]))
            share = draws.dirichlet(np.full(model.k, 5.0)) * 0.7 + 0.3 / model.k
            label = np.repeat(np.arange(model.k), draws.multinomial(n - 15 * model.k, share) + 15)
            return _frame(*model.draw(label, draws)), label
    raise RuntimeError("no such table was drawn")


class _MixedModel:
    """Groups with independent columns."""

    def __init__(self, draws: Draws) -> None:
        self.k, n_numbers, n_codes = (int(draws.integers(*ends)) for ends in ((2, 6), (1, 5), (2, 6)))
        self.mean = draws.normal(size=(self.k, n_numbers)) * draws.choice([1, 2, 3])
        self.deviation = draws.uniform(0.7, 1.4, (self.k, n_numbers))
        self.shares = [self._shares(draws) for _ in range(n_codes)]

    def _shares(self, draws: Draws) -> np.ndarray:
        """Of the levels of one column in each group; some groups are near to even."""
        n_levels = int(draws.integers(2, 5))
        even = np.where(draws.random(self.k) < 0.6, 0.6, 50.0)
        return np.stack([draws.dirichlet(np.full(n_levels, e)) for e in even]) * 0.94 + 0.06 / n_levels

    def draw(self, label: np.ndarray, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
        numbers = self.mean[label] + self.deviation[label] * draws.normal(
            size=(len(label), self.mean.shape[1])
        )
        reached = [np.cumsum(p, axis=1)[label][:, :-1] for p in self.shares]
        codes = [(draws.random((len(label), 1)) > below).sum(axis=1) for below in reached]
        return numbers, np.stack(codes, axis=1)

    def overlap(self, draws: Draws) -> float:
        label = np.repeat(np.arange(self.k), 400)
        numbers, codes = self.draw(label, draws)
        away = (numbers[:, None, :] - self.mean) / self.deviation
        score = -(away**2 / 2 + np.log(self.deviation)).sum(axis=2)
        score += sum(np.log(p[:, codes[:, j]].T) for j, p in enumerate(self.shares))
        lost = np.array(
            [
                [(score[label == a, b] > score[label == a, a]).mean() for b in range(self.k)]
                for a in range(self.k)
            ]
        )
        return float((lost + lost.T).max())


def _frame(numbers: np.ndarray, codes: np.ndarray) -> pd.DataFrame:
    columns = {f"n{j}": column for j, column in enumerate(numbers.T)}
    return pd.DataFrame({**columns, **{f"c{j}": LEVELS[column] for j, column in enumerate(codes.T)}})
