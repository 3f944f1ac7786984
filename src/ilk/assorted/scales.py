"""The scales on which a number of an assorted table may be read, and what is known of numbers on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from ilk.table.block import FARTHEST, Array


@dataclass(frozen=True)
class NumberScale:
    """A scale that depends on neither shift nor unit: log((x - low)/deviation + shift) or its mirror image."""

    side: str
    shift: float = 0.0

    def place(self, x: Array, number: Number | NumberColumns) -> Array:
        """Values on this scale; values outside the range of the training table count as its ends."""
        if self.side == "plain":
            return x
        return np.log(self._room(x, number)) * (1.0 if self.side == "low" else -1.0)

    def log_slope(self, value: Array, number: Number | NumberColumns) -> Array:
        """Log of the derivative of `place`, where it gives `value`."""
        if self.side == "plain":
            return np.zeros_like(value)
        return np.asarray((-value if self.side == "low" else value) - np.log(number.deviation))

    def undo(self, value: Array, number: Number) -> Array:
        """Encoded values from values on this scale."""
        if self.side == "plain":
            return value
        sign = 1.0 if self.side == "low" else -1.0
        gap = (np.exp(sign * value) - self.shift) * number.deviation
        x = number.low + gap if self.side == "low" else number.high - gap
        return np.asarray(np.clip(x, number.low, number.high))

    def _room(self, x: Array, number: Number | NumberColumns) -> Array:
        x = np.clip(x, number.low, number.high)
        gap = x - number.low if self.side == "low" else number.high - x
        return np.asarray(gap / number.deviation + self.shift)


STEEPEST = 300.0  # log of a slope whose square, times that of a step, is still a number
SCALES = (
    NumberScale("plain"),
    NumberScale("low", 0.05),
    NumberScale("low", 0.2),
    NumberScale("low", 1.0),
    NumberScale("high", 0.2),
    NumberScale("high", 1.0),
)
PLAIN = 0


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number that stays one: where it comes from and what is known of it, in encoded units.

    `unit` is one of the user's in encoded ones, `weight` that of its observed cells, `step` its recording step in
    the user's units; `centre`, `spread` and
    `log_jacobian` hold one figure per scale: mean and deviation there, and the sum over rows of the log of
    d standardised / d user's value.
    """

    name: str
    source: int
    atom: float | None = None
    unit: float = 1.0
    low: float = 0.0
    high: float = 0.0
    deviation: float = 1.0
    weight: float = 0.0
    step: float = 0.0
    centre: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()
    log_jacobian: tuple[float, ...] = ()

    def standardised(self, x: Array, scale: int) -> Array:
        """Encoded values on a scale, with mean 0 and deviation 1 over the training table."""
        return np.asarray((SCALES[scale].place(x, self) - self.centre[scale]) / self.spread[scale])

    def encoded(self, z: Array, scale: int) -> Array:
        """The inverse of `standardised`."""
        return SCALES[scale].undo(z * self.spread[scale] + self.centre[scale], self)

    def log_slope(self, x: Array, scale: int) -> Array:
        """Log of d standardised / d encoded value."""
        value = SCALES[scale].place(x, self)
        return np.asarray(SCALES[scale].log_slope(value, self) - np.log(self.spread[scale]))

    def least_variance(self, scale: int) -> float:
        """The variance below which a cell would be denser than one per recording step, standardised."""
        slope = np.exp(self.log_jacobian[scale] / self.weight)
        return float((self.step * slope) ** 2 / (2 * np.pi))

    def in_words(self, scale: int) -> str:
        if SCALES[scale].side == "plain":
            return "as it is"
        reach = "above its smallest" if SCALES[scale].side == "low" else "below its largest"
        shift = SCALES[scale].shift
        return f"logarithm of the distance {reach} value, plus {shift:g} deviation{'s' if shift != 1 else ''}"


@dataclass(frozen=True)
class NumberColumns:
    """What is known of several numbers as arrays, so that all on one scale are treated at once; `centre`, `spread` and
    `log_jacobian` (numbers, scales)."""

    source: Array
    atom: Array  # NaN where there is none
    low: Array
    high: Array
    deviation: Array
    weight: Array
    step: Array
    centre: Array
    spread: Array
    log_jacobian: Array

    @classmethod
    def of(cls, numbers: Sequence[Number]) -> NumberColumns:
        names = [field.name for field in fields(cls)]
        held = {name: [getattr(number, name) for number in numbers] for name in names}
        held["atom"] = [np.nan if value is None else value for value in held["atom"]]
        arrays = {name: np.array(values, dtype=np.float64) for name, values in held.items()}
        if not len(numbers):
            arrays |= dict.fromkeys(("centre", "spread", "log_jacobian"), np.zeros((0, len(SCALES))))
        return cls(**{**arrays, "source": arrays["source"].astype(np.intp)})

    @property
    def upright(self) -> NumberColumns:
        """With range and deviation as columns, for values (numbers, rows)."""
        low, high, deviation = (values[:, None] for values in (self.low, self.high, self.deviation))
        return replace(self, low=low, high=high, deviation=deviation)

    def __getitem__(self, which: Array) -> NumberColumns:
        return NumberColumns(*(getattr(self, field.name)[which] for field in fields(self)))

    def standardised(self, x: Array, scales: Sequence[int] | Array) -> Array:
        """Encoded values (rows, numbers) on their scales, with mean 0 and deviation 1 over the training table."""
        scale, placed = np.array(scales, dtype=np.intp), np.empty_like(x)
        for one in np.unique(scale):
            here = np.flatnonzero(scale == one)
            mine = self[here]
            values = SCALES[one].place(x[:, here], mine)
            with np.errstate(over="ignore"):
                away = (values - mine.centre[:, one]) / mine.spread[:, one]
            placed[:, here] = np.clip(away, -FARTHEST, FARTHEST, out=away)
        return placed

    def least_variance(self, scales: Sequence[int]) -> Array:
        """The variance below which a cell would be denser than one per recording step, standardised."""
        slope = np.exp(np.minimum(_picked(self.log_jacobian, scales) / self.weight, STEEPEST))
        return np.asarray((self.step * slope) ** 2 / (2 * np.pi))

    @cached_property
    def scale_costs(self) -> Array:
        """What the scales themselves cost (numbers, scales): minus the log-Jacobian, and half a log N for a change."""
        change = np.log(np.maximum(self.weight, 1.0))[:, None] / 2
        return np.asarray(-self.log_jacobian + np.where(np.arange(len(SCALES)) == PLAIN, 0.0, change))

    def scale_cost(self, scales: Sequence[int]) -> float:
        """What the chosen scales cost together."""
        return float(_picked(self.scale_costs, scales).sum())


def _picked(by_scale: Array, scales: Sequence[int]) -> Array:
    """Of each number the figure of its scale."""
    return np.asarray(by_scale[np.arange(len(scales)), np.array(scales, dtype=np.intp)])
