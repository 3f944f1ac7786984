"""Drawing in SVG: elements with short numbers, scales, and axes. Every chart is static markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

from ilk.report.html import Html, tag


def num(value: float) -> str:
    """A coordinate with at most two decimals.

    >>> num(3.0), num(2.128), num(-0.001)
    ('3', '2.13', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def svg(
    width: float,
    height: float,
    *children: Any,
    label: str | None = None,
    class_: str = "",
    stretch: bool = False,
) -> Html:
    """A drawing; without a label it is decoration beside text that says the same."""
    spoken: dict[str, Any] = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return tag(
        "svg",
        children,
        width=None if stretch else num(width),
        viewBox=f"0 0 {num(width)} {num(height)}",
        class_=class_ or None,
        preserveAspectRatio="none" if stretch else None,
        **spoken,
    )


def rect(x: float, y: float, width: float, height: float, class_: str, title: str | None = None) -> Html:
    """A rectangle; `title` is what a pointer is told."""
    return tag(
        "rect",
        x=num(x),
        y=num(y),
        width=num(max(width, 0.0)),
        height=num(max(height, 0.0)),
        class_=class_,
        data_tip=title,
    )


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    return tag("path", d=f"M{num(x1)} {num(y1)}L{num(x2)} {num(y2)}", class_=class_)


def polyline(points: Iterable[tuple[float, float]], class_: str) -> Html:
    return tag("path", d="M" + "L".join(f"{num(x)} {num(y)}" for x, y in points), class_=class_)


def circle(x: float, y: float, radius: float, class_: str, title: str | None = None) -> Html:
    return tag("circle", cx=num(x), cy=num(y), r=num(radius), class_=class_, data_tip=title)


def text(x: float, y: float, content: Any, class_: str = "", anchor: str = "start") -> Html:
    return tag(
        "text",
        content,
        x=num(x),
        y=num(y),
        class_=class_ or None,
        text_anchor=None if anchor == "start" else anchor,
    )


@dataclass(frozen=True)
class Axis:
    """From values to coordinates, along a straight line."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        width = self.high - self.low
        return self.start + (value - self.low) / width * (self.end - self.start) if width else self.start

    def ticks(self, most: int = 5) -> list[float]:
        """Round values inside the scale.

        >>> Scale(0.0, 1.0, 0.0, 100.0).ticks()
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        """
        raw = (self.high - self.low) / most
        if not raw > 0:
            return [self.low]
        size = 10.0 ** floor(log10(raw))
        step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
        first = int(-(-self.low // step))
        made = [round(i * step, 12) for i in range(first, first + most + 2)]
        return [v for v in made if self.low - 1e-9 * step <= v <= self.high + 1e-9 * step]


def spread_apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Positions for labels, at least `gap` apart, near where they are wanted, in the same order.

    >>> spread_apart([10.0, 20.0, 80.0], 20.0)
    [5.0, 25.0, 80.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [wanted[i] for i in order]
    for _ in range(50):
        moved = False
        for j in range(1, len(placed)):
            short = gap - (placed[j] - placed[j - 1])
            if short > 1e-9:
                placed[j - 1] -= short / 2
                placed[j] += short / 2
                moved = True
        if not moved:
            break
    for j in range(1, len(placed)):
        placed[j] = max(placed[j], placed[j - 1] + gap)
    result = [0.0] * len(wanted)
    for j, i in enumerate(order):
        result[i] = round(placed[j], 3)
    return result
