"""Exact order statistics from additive counts: one digit of the answer per pass.

A float64 is mapped to an unsigned key with the same order. Counting, per group, the weight of the keys that
share the digits found so far, by their next digit, tells the next digit of the wanted quantile; eight passes
of eight bits give it exactly. Counts add over blocks, so the passes run on any engine and no value is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilk.table.block import Array

DIGIT_BITS = 8
N_DIGITS = 64 // DIGIT_BITS
BINS = 1 << DIGIT_BITS
_SIGN = np.uint64(1 << 63)


def keys_of(values: Array) -> Array:
    """Unsigned integers in the order of the float64 values; -0.0 counts as 0.0."""
    bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def values_of(keys: Array) -> Array:
    """Inverse of `keys_of`."""
    return np.where(keys & _SIGN, keys & ~_SIGN, ~keys).view(np.float64)


@dataclass(frozen=True, kw_only=True)
class QuantileSearch:
    """The digits found so far of one quantile per group: the smallest value with `share` of the weight at or
    below it.

    `prefix` holds the digits, `below` the weight under them, `at` the weight that shares them, `total` all.

    >>> values = np.array([3.0, 1.0, 2.0, 10.0])
    >>> search = Search.begin(0.5, (1,))
    >>> while not search.done:
    ...     search = search.narrow(search.count(values, np.zeros(4, int), np.ones(4)))
    >>> search.value
    array([2.])
    """

    share: float
    prefix: Array
    below: Array
    at: Array
    total: Array
    n_found: int = 0

    @classmethod
    def begin(cls, share: float, shape: tuple[int, ...]) -> QuantileSearch:
        return cls(
            share=share,
            prefix=np.zeros(shape, np.uint64),
            below=np.zeros(shape),
            at=np.zeros(shape),
            total=np.zeros(shape),
        )

    @property
    def done(self) -> bool:
        return self.n_found == N_DIGITS

    @property
    def value(self) -> Array:
        """The quantiles, once all digits are found; NaN for a group without weight."""
        return np.where(self.at > 0, values_of(self.prefix), np.nan)

    def count(self, values: Array, group: Array, weight: Array) -> Array:
        """Weight by next digit (groups, BINS) of the values that share their group's digits.

        `values`, `group` and `weight` are flat and of equal length; a NaN value counts nowhere.
        """
        keys = keys_of(values) >> np.uint64(DIGIT_BITS * (N_DIGITS - 1 - self.n_found))
        fits = ~np.isnan(values) & (keys >> np.uint64(DIGIT_BITS) == self.prefix.ravel()[group])
        digit = (keys[fits] & np.uint64(BINS - 1)).astype(np.intp)
        size = self.prefix.size * BINS
        counts = np.bincount(group[fits] * BINS + digit, weights=weight[fits], minlength=size)
        return counts.reshape(self.prefix.size, BINS).astype(
            np.float64, copy=False
        )  # whole numbers where none fits

    def shares_digits(self, values: Array) -> Array:
        """Which values have the digits found so far, of a search for a single quantile: others need not be counted."""
        found = keys_of(values) >> np.uint64(DIGIT_BITS * (N_DIGITS - self.n_found))
        return np.asarray((found == self.prefix.ravel()[0]) & ~np.isnan(values))

    def narrow(self, counts: Array) -> QuantileSearch:
        """One more digit: the first whose cumulative weight reaches the share."""
        total = counts.sum(axis=1) if self.n_found == 0 else self.total.ravel()
        cumulative = self.below.ravel()[:, None] + np.cumsum(counts, axis=1)
        reached = (cumulative >= self.share * total[:, None]) & (counts > 0)
        # Where rounding leaves the share just out of reach, the last occupied digit is the answer.
        last = BINS - 1 - np.argmax(counts[:, ::-1] > 0, axis=1)
        digit = np.where(reached.any(axis=1), np.argmax(reached, axis=1), last)
        at = np.take_along_axis(counts, digit[:, None], axis=1)[:, 0]
        below = np.take_along_axis(cumulative, digit[:, None], axis=1)[:, 0] - at
        shape = self.prefix.shape
        prefix = (self.prefix << np.uint64(DIGIT_BITS)) | digit.astype(np.uint64).reshape(shape)
        below, at, total = below.reshape(shape), at.reshape(shape), total.reshape(shape)
        return QuantileSearch(
            share=self.share, prefix=prefix, below=below, at=at, total=total, n_found=self.n_found + 1
        )

    @property
    def share_at(self) -> Array:
        """How much of the weight at the quantile belongs below it, so that exactly `share` of all does."""
        spare = self.share * self.total - self.below
        return np.clip(np.divide(spare, self.at, out=np.ones_like(spare), where=self.at > 0), 0.0, 1.0)
