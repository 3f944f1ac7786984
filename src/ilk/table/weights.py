"""Row weights: which may be given, and the power of two by which numeric code sees them.

Whole weights count repeated rows and stay as they are. All others tell how rows count beside each other, whatever
their unit: a power of two brings the weight of a typical row, sum(w^2) / sum(w), next to 1, so that they add up to
about the number of rows they stand for (Kish, Survey Sampling, 1965). What adds up goes out in the user's unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from math import sqrt
from operator import add
from typing import Any, TypeVar

import numpy as np

from ilk.errors import DataError, rows_shown
from ilk.table.block import Array
from ilk.table.spool import Sliceable

LARGEST_WEIGHT_RATIO = 2.0**53
"""Beyond this ratio the smallest weights cannot change a sum with the largest."""
MOST_COUNTED = 2.0**53
"""Whole weights of this sum or more are no counts: float64 does not hold every whole number from here on."""

ValueT = TypeVar("ValueT", float, Array)


@dataclass(frozen=True)
class WeightFacts:
    """What one pass tells of weights; those of parts add up. Sums are in units of 2^unit, so that none runs over."""

    counting: int = 0  # above 0
    faulty: int = 0  # missing, infinite or negative
    least: float = np.inf  # above 0
    most: float = 0.0
    whole: bool = True
    unit: int = 0
    total: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, weight: Array) -> WeightFacts:
        good = np.isfinite(weight) & (weight >= 0)
        positive = weight[good & (weight > 0)]
        if not len(positive):
            return cls(faulty=int((~good).sum()))
        least, most = float(positive.min()), float(positive.max())
        unit = int(np.frexp(most)[1])
        small = np.ldexp(positive, -unit)
        return cls(
            len(positive),
            int((~good).sum()),
            least,
            most,
            bool((positive == np.round(positive)).all()),
            unit,
            float(small.sum()),
            float(small @ small),
        )

    def __add__(self, other: WeightFacts) -> WeightFacts:
        if not self.counting or not other.counting:
            kept, lost = (other, self) if other.counting else (self, other)
            return WeightFacts(kept.counting, kept.faulty + lost.faulty, *_told(kept))
        unit = max(self.unit, other.unit)
        mine, theirs = 2.0 ** (self.unit - unit), 2.0 ** (other.unit - unit)
        return WeightFacts(
            self.counting + other.counting,
            self.faulty + other.faulty,
            min(self.least, other.least),
            max(self.most, other.most),
            self.whole and other.whole,
            unit,
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
        if not np.isfinite(in_unit(self.total, -self.unit)):
            raise DataError(
                "bad-weight", "the sum of the weights is infinite", do="Divide all weights by one number"
            )

    @property
    def exponent(self) -> int:
        """Numeric code sees weights times 2^exponent: 0 for counts."""
        if not self.counting or (self.whole and in_unit(self.total, -self.unit) < MOST_COUNTED):
            return 0
        digits, exponent = np.frexp(self.squares / self.total)  # of the weight of a typical row
        return -(self.unit + int(exponent) - int(digits < sqrt(0.5)))


def _told(facts: WeightFacts) -> tuple[Any, ...]:
    return facts.least, facts.most, facts.whole, facts.unit, facts.total, facts.squares


def in_unit(value: ValueT, exponent: int) -> ValueT:
    """What adds up over weights times 2^exponent, in the unit of the weights themselves: infinite where it runs over.

    >>> in_unit(3.0, 1), in_unit(3.0, -2000)
    (1.5, inf)
    """
    if not exponent:
        return value
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(value, -exponent)
    return scaled if isinstance(value, np.ndarray) else float(scaled)


def conditioned_weight(weight: Array) -> tuple[Array, int]:
    """Checked weights as numeric code sees them, and the exponent of the power of two that made them so.

    >>> conditioned_weight(np.array([3e-300, 4e-300]))[0].round(2).tolist(), conditioned_weight(np.array([3.0, 4.0]))[1]
    ([0.81, 1.07], 0)
    """
    exponent = WeightFacts.of(weight).exponent
    return in_unit(weight, -exponent), exponent


class Scaled:
    """Weights on disk, times 2^exponent."""

    def __init__(self, weight: Sliceable, exponent: int) -> None:
        self._weight, self._exponent = weight, exponent
        self.dtype, self.shape = weight.dtype, weight.shape

    def __len__(self) -> int:
        return len(self._weight)

    def __getitem__(self, which: Any) -> Array:
        return in_unit(self._weight[which], -self._exponent)


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
