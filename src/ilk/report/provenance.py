"""How to get the same result again: the command, the call in Python, versions, trace of the fit."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from ilk import kernels

TRACE_POINTS = 120  # of a longer trace, so many passes at equal steps and the last
STARTS = 60
PACKAGES = ("numpy", "scipy", "pyarrow")


def provenance(
    options: Mapping[str, Any],
    source: str,
    fingerprint: str | None,
    trace: Sequence[float],
    starts: Sequence[float],
    *,
    device: str | None = None,
) -> dict[str, Any]:
    """`trace` is the cost of each pass, `starts` the cost each start ended with, `device` the GPU the rows lay on."""
    trace = [cost for cost in trace if np.isfinite(cost)]
    at = np.unique(np.linspace(0, len(trace) - 1, TRACE_POINTS).astype(int)) if trace else ()
    return {
        "command": command(options, source),
        "python": call(options, source),
        "fingerprint": fingerprint,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": {
            "Python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
            "kernels": kernels.NAMED,
            **({} if device is None else {"GPU": device}),
        },
        "passes": len(trace),
        "trace": [{"pass": int(i) + 1, "cost": float(trace[i])} for i in at],
        "starts": sorted(float(cost) for cost in starts if np.isfinite(cost))[:STARTS],
    }


def _range(k: Any) -> str:
    return f"{min(k)}..{max(k)}" if isinstance(k, (list, tuple)) else str(k)


def command(options: Mapping[str, Any], source: str) -> str:
    """The command line that does the same.

    >>> command({"k": 3, "truth": "my class", "seed": 0}, "a.csv")
    "ilk fit a.csv --k 3 --truth 'my class'"
    """
    words = ["ilk", "fit", source]
    if "labels" in options:
        words = ["ilk", "describe", source, "--labels", str(options["labels"] or "COLUMN")]
    if "known" in options:
        words += ["--known", str(options["known"] or "COLUMN")]
    for name in ("must_link", "cannot_link"):
        for one, other in options.get(name) or ():
            words += [f"--{name.replace('_', '-')}", f"{one},{other}"]
    for name, kind in (options.get("transforms") or {}).items():
        words += ["--transform", f"{name}={kind}"]
    for name, weight in (options.get("column_weights") or {}).items():
        words += ["--column-weight", f"{name}={weight:g}"]
    for name, value in (options.get("reading") or {}).items():
        for text in value if isinstance(value, list) else [value]:
            words += [f"--{name.replace('_', '-')}", str(text)]
    if options.get("k", "auto") != "auto":
        words += ["--k", _range(options["k"])]
    for name, usual in (("method", "auto"), ("weight", None), ("weights_are", None), ("truth", None),
                        ("id", None), ("seed", 0),
                        ("merge", "separation"), ("min_size", None), ("max_size", None),
                        ("match_to", None), ("device", "auto")):  # fmt: skip
        value = options.get(name, usual)
        if value != usual:
            words += [f"--{name.replace('_', '-')}", str(value)]
    for name in ("ignore", "columns"):
        for column in options.get(name) or ():
            words += [f"--{name}", str(column)]
    types = options.get("types")
    if isinstance(types, Mapping):
        for column, kind in types.items():
            words += ["--types", f"{column}={kind}"]
    elif types:
        words += ["--types", str(types)]
    if options.get("scale", "standard") is None:
        words += ["--scale", "none"]
    if options.get("budget"):
        words += ["--budget", f"{options['budget']:g}s"]
    return shlex.join(words)


def call(options: Mapping[str, Any], source: str) -> str:
    """The same in Python."""
    as_it_is = re.search(r"\.\w+$", source) and not options.get("reading")
    given = [repr(source) if as_it_is else "data"]  # what a query gives, or a frame
    k = options.get("k", "auto")
    if k != "auto":
        given.append(f"k=range({min(k)}, {max(k) + 1})" if isinstance(k, (list, tuple)) else f"k={k}")
    for name, usual in (("method", "auto"), ("weight", None), ("weights_are", None), ("truth", None),
                        ("id", None), ("ignore", []), ("columns", None),
                        ("types", None), ("scale", "standard"), ("merge", "separation"), ("min_size", None),
                        ("max_size", None), ("match_to", None), ("seed", 0), ("budget", None),
                        ("device", "auto")):  # fmt: skip
        value = options.get(name, usual)
        if value != usual and value is not None:
            given.append(f"{name}={value!r}")
        elif name == "scale" and value is None:
            given.append("scale=None")
    if "known" in options:
        given.append("known=known" if options["known"] is None else f"known={options['known']!r}")
    given += [f"{name}={options[name]!r}" for name in ("must_link", "cannot_link") if options.get(name)]
    given += [f"{name}={options[name]!r}" for name in ("column_weights", "transforms") if options.get(name)]
    what = "cluster"
    if "labels" in options:
        what = "describe"
        given.insert(1, "labels" if options["labels"] is None else repr(options["labels"]))
    return f'import ilk\nresult = ilk.{what}({", ".join(given)})\nresult.report("report.html")'
