"""Groups that keep what a user knows: labels of some rows, rows that are together or apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ilk.analysis.findings import Findings
from ilk.analysis.given import in_memory, label_cells, name_of
from ilk.analysis.job import Job
from ilk.analysis.matching import earlier
from ilk.analysis.prepare import Input, Seen, prepare
from ilk.engines.memory import MemoryRows
from ilk.errors import Caution, Option, UsageError
from ilk.fitting.constraints import Known, known_codes, pairs_of
from ilk.fitting.deadline import Deadline
from ilk.methods import AUTO, GAUSSIAN, K_MEANS
from ilk.table.block import Array

MOST_GROUPS = 9  # that are tried where K is left open, or this many more than there are labels


def kept(job: Job, clock: Deadline) -> tuple[Findings, list[str | None]]:
    """What was found with everything kept, by K-means or a Gaussian mixture; and the labels that groups have."""
    from ilk.selection.given_labels import examined  # imports scikit-learn, which takes a second
    from ilk.selection.kept import search_kept

    table = in_memory(job, "what is known of rows can be kept")
    labels = label_cells(job.known, table, "known") if job.known is not None else None
    given = _prepared(replace(job, data=table), labels)
    known = _among(given, labels, job)
    assert isinstance(given.rows, MemoryRows)
    n_labels = len(known_codes(known.labels, given.rows.n_rows)[1])
    ks = _ks(job.k, n_labels, given.rows.n_rows)
    found = search_kept(given.rows, given.method, ks, job.seed, known)
    search, grouping = examined(given.rows, given.used, found, job.seed)
    names = known.of_groups(grouping.labels, grouping.n_groups)
    findings = Findings(
        job=job,
        given=given,
        seen=Seen(given.rows, given.encoding),
        search=search,
        grouping=grouping,
        notes=(_told(known, n_labels),),
        earlier=None if job.match_to is None else earlier(job.match_to),
        clock=clock,
        search_seconds=clock.spent,
    )
    return findings, [None if name is None else name_of(name, job.known) for name in names]


def _prepared(job: Job, labels: Any) -> Input:
    """The rows as the method sees them; "auto" is a Gaussian mixture where it can keep all, else K-means."""
    from ilk.selection.kept import METHODS_KEPT

    aside = (job.known,) if isinstance(job.known, str) else ()
    ignore = (job.ignore,) if isinstance(job.ignore, str) else tuple(job.ignore or ())
    job = replace(job, ignore=(*ignore, *aside))
    if job.method not in (AUTO, *METHODS_KEPT):
        named = Option("method", job.method)
        raise UsageError(
            "not-with-constraints",
            f"{named} cannot keep what is known of rows",
            do=f"Use {' or '.join(METHODS_KEPT)}",
            options=[named],
        )
    hard = job.cannot_link is not None
    if job.method == GAUSSIAN and hard:
        raise UsageError(
            "not-with-constraints",
            "cannot_link forbids whole assignments, and those of a Gaussian mixture are probabilities",
            do=f"Use {K_MEANS.name}",
        )
    given = prepare(job)
    if given.method == GAUSSIAN and not hard:
        return given
    return given if given.method == K_MEANS.name else prepare(replace(job, method=K_MEANS.name))


def _among(given: Input, labels: Any, job: Job) -> Known:
    """What is known, by the places of the rows that are used."""
    used = given.numbers_of(np.arange(given.rows.n_rows))
    place = np.full(given.table.n_rows, -1)
    place[used] = np.arange(len(used))
    some = None if labels is None else [labels[row] for row in used]
    pairs = {name: _placed(name, getattr(job, name), place) for name in ("must_link", "cannot_link")}
    return Known(some, **pairs)


def _placed(name: str, given: Any, place: Array) -> Array | None:
    if given is None:
        return None
    pairs = pairs_of(name, given, len(place))
    lost = pairs[place[pairs] < 0]
    if len(lost):
        raise UsageError(
            f"bad-{name}",
            f"{name} names row {lost[0]}, which has no value in the columns used",
            do="Leave its pairs out",
        )
    return np.asarray(place[pairs])


def _ks(k: Any, n_labels: int, n_rows: int) -> tuple[int, ...]:
    if isinstance(k, str):
        return tuple(range(max(n_labels, 2), min(max(MOST_GROUPS, n_labels + MOST_GROUPS), n_rows) + 1))
    return tuple(k) if isinstance(k, (range, list, tuple)) else (int(k),)


def _told(known: Known, n_labels: int) -> Caution:
    parts = []
    if known.labels is not None:
        codes, _ = known_codes(known.labels, len(known.labels))
        parts.append(f"{n_labels} labels of {int((codes >= 0).sum())} rows")
    for name, pairs in (("must-link", known.must_link), ("cannot-link", known.cannot_link)):
        if pairs is not None:
            parts.append(f"{len(np.asarray(pairs))} {name} pairs")
    return Caution("constraints-kept", f"{', '.join(parts)} were kept; components are not merged to groups")
