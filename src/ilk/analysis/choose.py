"""Which method for which data: the table of the lecture notes, and what a table at hand calls for.

Data are vectors or similarities of pairs, K is known or comes out, groups are hard or soft. What the rows look like
decides the rest: categories and blanks, many rows, weights, groups that wind around each other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ilk.analysis.job import Job
from ilk.analysis.prepare import Input, prepare
from ilk.analysis.shown import columns_at, first_places
from ilk.errors import quoted, shown
from ilk.methods import METHODS, by_search
from ilk.paradigms.distance import MOST_ROWS
from ilk.report.facts import Described
from ilk.report.figures import plural
from ilk.text.layout import Piece, Surface, line, words_of, wrap

LOOKED_ROWS = 800  # rows on which is seen whether groups wind around each other
LEAST_ROWS = 30  # fewer show no shape
FEW_LEVELS = 3  # columns from which a table of whole numbers may be a table of counts


@dataclass(frozen=True)
class Entry:
    """One line of the guide."""

    method: str
    data: Literal["vectors", "similarities"]
    k: Literal["known or found", "found"]
    membership: Literal["hard", "soft"]
    when: str


def entries() -> tuple[Entry, ...]:
    """The guide, methods of centres first."""
    listed = [method for method in METHODS.values() if method.when]
    return tuple(
        Entry(
            method.name,
            method.data,
            "known or found" if method.k == "fixed" else "found",
            "soft" if method.soft else "hard",
            method.when,
        )
        for method in sorted(listed, key=lambda method: method.search != "recipe")
    )


@dataclass(frozen=True)
class Advice:
    """Methods with the reason for each: the best first; and those that cannot be, with why not."""

    facts: str
    good: tuple[tuple[str, str], ...]
    ruled_out: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "facts": self.facts,
            "good": [{"method": method, "why": why} for method, why in self.good],
            "ruled_out": [{"method": method, "why": why} for method, why in self.ruled_out],
        }


def guide(surface: Surface) -> str:
    """The whole table, for a terminal."""
    lines, listed = [], entries()
    widest = max(len(entry.method) for entry in listed) + 2
    for data, told in (
        ("vectors", "Methods on the columns"),
        ("similarities", "Methods on similarities of pairs of rows"),
    ):
        lines.append(surface.paint(f"{told}", "bold"))
        for entry in listed:
            if entry.data == data:
                words: list[Piece] = [(f"K {entry.k}, {entry.membership};", "dim"), (entry.when, "")]
                head = surface.paint(f"  {entry.method:<{widest}}", "bold")
                lines += wrap(head, widest + 2, words_of(words), widest + 2, surface)
        lines.append("")
    lines += line(
        "",
        [("Similarities are computed from any table: Euclidean distance, or Gower's for mixed columns.", "")],
        surface,
    )
    return surface.fit(
        "\n".join([*lines, *line("next", [("ilk choose TABLE, ilk fit TABLE --method NAME", "")], surface)])
    )


def advise(job: Job) -> Advice:
    """What the table of a job calls for, and what it rules out."""
    given = prepare(job)
    columns = given.columns or columns_at(given, first_places(given, job.seed))[1]
    numbers, coded = len(given.schema.numeric), len(given.schema.coded)
    blanks = sum(column.missing for column in given.schema.used)
    n_rows = given.rows.n_rows
    facts = f"{plural(n_rows, 'row')}, {plural(numbers, 'column')} of numbers and {coded} of categories"
    facts += f", {plural(blanks, 'missing value')}"
    mixed = bool(coded or blanks)
    if matrix_of_pairs(given, columns):
        return Advice(
            facts + "; square and symmetric with a constant diagonal: similarities or distances of pairs",
            (
                ("typical-cuts", 'ilk.TypicalCuts(metric="precomputed") in Python, of the distances'),
                ("spectral", 'ilk.SpectralClustering(metric="precomputed") in Python, of the distances'),
            ),
            (("k-means", "its columns are rows, not measurements"),),
        )
    good = [_first(given, mixed)]
    gap = None if mixed or n_rows < LEAST_ROWS or given.weight is not None else _winding(given, job.seed)
    if gap is not None:
        why = (
            "groups wind around each other: no straight line separates them, but a gap of "
            f"{gap:.1f} times the distance of neighbouring rows does"
        )
        good.insert(0, ("typical-cuts", why))
        good.insert(1, ("spectral", "the same, where groups are of similar density"))
    if not mixed and counts_like(columns):
        good.append(("information-bottleneck", "if the values are counts: rows with similar profiles"))
    good.append(("dirichlet-process", "K by a prior on how many groups there are, up to a limit"))
    if given.weight is None and n_rows <= MOST_ROWS and gap is None:
        kind = "Gower's dissimilarity" if mixed else "Euclidean distances"
        good.append(("average-linkage", f"a tree of groups, by {kind}"))
    return Advice(facts, tuple(good), tuple(_ruled_out(given, mixed)))


def _first(given: Input, mixed: bool) -> tuple[str, str]:
    """What "auto" takes."""
    why = {
        "assorted": "categories or missing values: one model for all columns, with feature selection per group",
        "gaussian": "numbers without missing values: elongated groups of any size, covariance structure and K by BIC",
        "k-means": "few distinct rows: groups have no variance to model",
    }
    return given.method, why.get(given.method, "as asked") + " (auto)"


def _ruled_out(given: Input, mixed: bool) -> list[tuple[str, str]]:
    made: list[tuple[str, str]] = []
    if mixed:
        names = [name for name, method in by_search("parts").items() if method.takes == "numbers"]
        made.append((", ".join(names), "need numbers without missing values"))
    if given.rows.n_rows > MOST_ROWS:
        names = [entry.method for entry in entries() if entry.data == "similarities"]
        made.append((", ".join(names), f"compare all pairs; at most {MOST_ROWS} rows"))
    if given.weight is not None:
        made.append((", ".join(by_search("parts")), "cannot use weights"))
    return made


def matrix_of_pairs(given: Input, columns: Sequence[Described]) -> bool:
    """Whether the table is a square symmetric matrix with one value on its diagonal."""
    numbers = [column.values for column in columns if column.is_number]
    if given.schema.coded or len(numbers) < 3 or len(numbers) != given.rows.n_rows:
        return False
    matrix = np.column_stack(numbers)
    return bool(np.allclose(matrix, matrix.T) and np.ptp(np.diag(matrix)) == 0)


def counts_like(columns: Sequence[Described]) -> bool:
    """Whether all columns are whole numbers from 0."""
    values = [column.values for column in columns if column.is_number]
    whole = all(bool(((v >= 0) & (v == np.floor(v))).all()) for v in values)
    return whole and len(values) >= FEW_LEVELS


def _winding(given: Input, seed: int) -> float | None:
    from ilk.selection.from_partition import winding  # imports scikit-learn, which takes a second

    return winding(given.rows, given.used, LOOKED_ROWS, seed)


def told(advice: Advice, source: str, surface: Surface) -> str:
    """The advice as text, with the command to type."""
    lines = line(shown(os.path.basename(source), 40), [(advice.facts, "")], surface)
    for number, (method, why) in enumerate(advice.good):
        lines += line(
            "use" if number == 0 else "or" if number == 1 else "",
            [(f"{method}:", "bold"), (why, "")],
            surface,
        )
    for number, (names, why) in enumerate(advice.ruled_out):
        lines += line("not for it" if number == 0 else "", [(f"{names}:", ""), (why, "dim")], surface)
    method = advice.good[0][0]
    auto = advice.good[0][1].endswith("(auto)")
    command = f"ilk fit {quoted(shown(source, 80))}" + ("" if auto else f" --method {method}")
    return surface.fit("\n".join([*lines, *line("next", [(command, "")], surface)]))
