"""Row weights: which may be given, and the unit in which numeric code sees them.

Whole weights count repeated rows and stay as they are, in a table unless they are far too large for that (persons that
a row of a survey stands for). All others tell how rows count beside each other, whatever
their unit: division by a power of two brings the weight of a typical row, sum(w^2) / sum(w), next to 1, so that they
add up to about the number of rows they stand for (Kish, Survey Sampling, 1965); where all are alike, they become 1.
What adds up goes out in the user's unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from math import sqrt
from operator import add
from typing import Any, TypeVar

import numpy as np

from ilk.errors import Caution, DataError, Option, rows_shown, shown
from ilk.table.block import Array
from ilk.table.out_of_core.disk import Sliceable

LARGEST_WEIGHT_RATIO = 2.0**53
"""Beyond this ratio the smallest weights cannot change a sum with the largest."""
LARGEST_EXPONENT = 1023
MEANINGS = ("counts", "sampling")
"""What weights may be: numbers of repeated rows, or how rows of a sample stand for others."""
MODEST_MEAN, MODEST_SUM = 100.0, 10_000.0
"""Whole weights count rows where they are no more than this on average, or in all: beyond, a survey's persons."""
MOST_COUNTED = 2.0**53
"""Whole weights of this sum or more are no counts: float64 does not hold every whole number from here on."""

ValueT = TypeVar("ValueT", float, Array)


@dataclass(frozen=True)
class WeightFacts:
    """What one pass tells of weights; those of parts add up. Sums are in units of 2^exponent: none runs over."""

    counting: int = 0  # above 0
    faulty: int = 0  # missing, infinite or negative
    least: float = np.inf  # above 0
    most: float = 0.0
    whole: bool = True
    exponent: int = 0
    total: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, weight: Array) -> WeightFacts:
        good = np.isfinite(weight) & (weight >= 0)
        positive = weight[good & (weight > 0)]
        if not len(positive):
            return cls(faulty=int((~good).sum()))
        least, most = float(positive.min()), float(positive.max())
        exponent = int(np.frexp(most)[1])
        small = np.ldexp(positive, -exponent)
        return cls(
            len(positive),
            int((~good).sum()),
            least,
            most,
            bool((positive == np.round(positive)).all()),
            exponent,
            float(small.sum()),
            float(small @ small),
        )

    def __add__(self, other: WeightFacts) -> WeightFacts:
        if not self.counting or not other.counting:
            kept, lost = (other, self) if other.counting else (self, other)
            return WeightFacts(kept.counting, kept.faulty + lost.faulty, *_told(kept))
        exponent = max(self.exponent, other.exponent)
        mine, theirs = 2.0 ** (self.exponent - exponent), 2.0 ** (other.exponent - exponent)
        return WeightFacts(
            self.counting + other.counting,
            self.faulty + other.faulty,
            min(self.least, other.least),
            max(self.most, other.most),
            self.whole and other.whole,
            exponent,
            self.total * mine + other.total * theirs,
            self.squares * mine**2 + other.squares * theirs**2,
        )

    def check(self) -> None:
        """Refuse weights that cannot be weights; each fault has its own text."""
        if self.faulty:
            raise DataError(
                "bad-weight",
                f"{self.faulty} weights are missing, infinite or negative",
                do="Give a number of 0 or more per row",
            )
        if not self.counting:
            raise DataError("bad-weight", "all weights are zero", do="At least one row must count")
        if self.most / LARGEST_WEIGHT_RATIO > self.least:
            raise DataError(
                "bad-weight",
                f"weights range from {self.least:.3g} to {self.most:.3g}; the smallest would be lost in rounding",
                do="Give the smallest ones weight 0, or bring the weights closer together",
            )
        if not np.isfinite(self._sum):
            raise DataError(
                "bad-weight", "the sum of the weights is infinite", do="Divide all weights by one number"
            )

    @property
    def _sum(self) -> float:
        with np.errstate(over="ignore"):
            return float(np.ldexp(self.total, self.exponent))

    @property
    def meaning(self) -> str:
        """What the weights of a table are taken for where nobody says."""
        modest = self._sum <= max(MODEST_SUM, MODEST_MEAN * self.counting)
        return "counts" if self.whole and modest else "sampling"

    @property
    def effective_rows(self) -> float:
        """Kish's number: how many rows of equal weight would tell as much."""
        return self.total**2 / self.squares if self.counting else 0.0

    @property
    def unit(self) -> float:
        """What numeric code divides weights by where whole ones are counts: 1 for those."""
        return 1.0 if self.whole and self._sum < MOST_COUNTED else self.sampling_unit

    def unit_as(self, meaning: str | None) -> float:
        """What numeric code divides weights of some meaning by; None: of the meaning they seem to have."""
        if (meaning or self.meaning) == "sampling":
            return self.sampling_unit
        if self._sum >= MOST_COUNTED:
            option = Option("weights_are", "sampling")
            raise DataError(
                "bad-weight",
                f"the weights add up to {self._sum:.3g}, which is no number of rows",
                do=f"Say what they are: {option}",
                options=[option],
            )
        return 1.0

    def cautions(self, meaning: str | None, name: str) -> list[Caution]:
        """That weights were taken for those of a sample, where nobody said so."""
        if meaning is not None or self.meaning == "counts":
            return []
        option = Option("weights_are", "counts")
        text = (
            f"the weights {shown(name)!r} add up to {self._sum:,.6g} on {self.counting:,} rows and are taken as "
            f"sampling weights: K and trust rest on {self.effective_rows:,.0f} effective rows (Kish); if they "
            f"count repeated rows: {option}"
        )
        return [Caution("sampling-weights", text, [option])]

    @property
    def sampling_unit(self) -> float:
        """The power of two that brings the weight of a typical row next to 1; where all are alike, that weight."""
        if not self.counting:
            return 1.0
        if self.least == self.most:
            return self.most
        digits, exponent = np.frexp(self.squares / self.total)  # of the weight of a typical row
        nearest = self.exponent + int(exponent) - int(digits < sqrt(0.5))
        return float(np.ldexp(1.0, min(nearest, LARGEST_EXPONENT)))


def _told(facts: WeightFacts) -> tuple[Any, ...]:
    return facts.least, facts.most, facts.whole, facts.exponent, facts.total, facts.squares


def in_unit(value: ValueT, unit: float) -> ValueT:
    """What adds up over weights that were divided by `unit`, in the user's unit; infinite where it runs over.

    >>> in_unit(3.0, 0.5), in_unit(3.0, 1e308)
    (1.5, inf)
    """
    if unit == 1:
        return value
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.multiply(value, unit)
    return scaled if isinstance(value, np.ndarray) else float(scaled)


def conditioned_weight(weight: Array, unit: float | None = None) -> tuple[Array, float]:
    """Checked weights as numeric code sees them, and their unit: by default whole weights are counts.

    >>> conditioned_weight(np.array([3e-300, 4e-300]))[0].round(2).tolist(), conditioned_weight(np.array([3.0, 4.0]))[1]
    ([0.81, 1.07], 1.0)
    """
    unit = WeightFacts.of(weight).unit if unit is None else unit
    return weight if unit == 1 else weight / unit, unit


class Divided:
    """Weights on disk, divided by their unit."""

    def __init__(self, weight: Sliceable, unit: float) -> None:
        self._weight, self._unit = weight, unit
        self.dtype, self.shape = weight.dtype, weight.shape

    def __len__(self) -> int:
        return len(self._weight)

    def __getitem__(self, which: Any) -> Array:
        return np.asarray(self._weight[which] / self._unit)


def check_weight(weight: Any, n_rows: int) -> Array:
    """Row weights as float64, refused when they cannot be weights; each fault has its own text.

    >>> check_weight([1, 2], 2).tolist()
    [1.0, 2.0]
    """
    try:
        heft = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("bad-weight", "the weights are not numbers") from None
    if heft.ndim != 1 or heft.shape[0] != n_rows:
        shape = "x".join(map(str, heft.shape)) or "one number"
        raise DataError("bad-weight", f"the weights have shape {shape} and the table has {n_rows} rows")
    if n_rows:
        check_weights([heft])
    return heft


def check_weights(parts: Iterable[Array]) -> WeightFacts:
    """Refuse weights that cannot be weights; they come in parts, in row order."""
    first_row, met = 0, list[WeightFacts]()
    for heft in parts:
        _check_cells(heft, first_row)
        first_row += len(heft)
        met.append(WeightFacts.of(heft))
    facts = reduce(add, met, WeightFacts())
    facts.check()
    return facts


def _check_cells(heft: Array, first_row: int) -> None:
    for fault, rows in (
        ("missing", np.isnan(heft)),
        ("infinite", np.isinf(heft)),
        ("negative", heft < 0),
    ):
        if rows.any():
            where = rows_shown((first_row + np.flatnonzero(rows)).tolist())
            raise DataError(
                "bad-weight", f"weights are {fault}", where=where, do="Give a number of 0 or more per row"
            )
