"""Groups of a run changed by hand: two joined, one divided, others named or coloured; told as any run is."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ilk.analysis.assemble import answer_of
from ilk.analysis.findings import Findings
from ilk.analysis.folder import find_model, find_summary
from ilk.analysis.given import in_memory, labelled
from ilk.analysis.job import Job
from ilk.analysis.other_k import Searched, at_k, read_fit
from ilk.analysis.prepare import Input, Seen, prepare
from ilk.analysis.restore import restored
from ilk.analysis.result import Result
from ilk.analysis.run import run as run_job
from ilk.analysis.shown import shown_rows
from ilk.engines.memory import MemoryRows
from ilk.errors import Caution, DataError, UsageError, shown
from ilk.fitting.deadline import Deadline
from ilk.fitting.restarts import Recipe
from ilk.methods import METHODS
from ilk.model.grouped import Grouped
from ilk.model.model import Model
from ilk.report.html import COLOURS
from ilk.table.block import Array
from ilk.table.read import Table, from_arrow

LEAST_DIVIDED = 4  # rows of a group that can be divided
NOT_OF_THE_TABLE = ("k", "labels", "known", "must_link", "cannot_link", "match_to", "min_size", "max_size")


def regroup(
    run: str | os.PathLike[str],
    data: Any = None,
    *,
    merge: str | Sequence[str] = (),
    split: str | None = None,
    k: int | None = None,
    names: Mapping[str, str] | None = None,
    colours: Mapping[str, int] | None = None,
) -> Result:
    """Change the groups of a run by hand: merge some, split one in two, take another number, give names or colours.

    Merged groups keep the rule that gives new rows their group. A group of several components is split between them,
    and keeps it too; another is divided by a fit with two groups to its rows, and the answer has no rule for new rows.
    Another number of groups is the fit that the search had with it, which the run keeps: nothing is fitted.

    Parameters
    ----------
    run : path
        Folder of a run.
    data : None, frame, array, list, mapping or path, default=None
        The table of the run; needed to merge or split, and for another number of groups.
    merge : str or sequence of str, default=()
        Letters of groups that become one, as a list or as "A,B".
    split : None or str, default=None
        Letter of the group that becomes two.
    k : None or int, default=None
        Number of groups, one of those that the search tried.
    names : None or mapping of str to str, default=None
        New names by letter.
    colours : None or mapping of str to int, default=None
        Number of the colour of a group in the report, from 1 to 6, by letter.

    Returns
    -------
    Result
        The groups after the change, described anew.

    See Also
    --------
    cluster : Finds the groups.
    Result.rename : Names the groups of a result in memory.

    Examples
    --------
    >>> import ilk, tempfile, os
    >>> from ilk.analysis.run_folder import write_run
    >>> table = {"size": [1.0, 1.1, 1.2, 0.9, 4.0, 4.2, 4.1, 3.9, 8.0, 8.2, 8.1, 7.9]}
    >>> folder = os.path.join(tempfile.mkdtemp(), "sizes.ilk")
    >>> written = write_run(ilk.cluster(table, k=3), folder)
    >>> ilk.regroup(folder, table, merge=["A", "B"]).labels.tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    """
    old = _Old.of(os.fspath(run))
    joined = [part.strip() for part in merge.split(",")] if isinstance(merge, str) and merge else list(merge)
    old.check([*joined, *([] if split is None else [split]), *(names or ()), *(colours or ())])
    if bool(joined) + (split is not None) + (k is not None) > 1:
        raise UsageError(
            "one-change", "groups are merged, one is split, or K is another", do="Do one after the other"
        )
    result = old.result
    if k is not None:
        result = _at_k(old, old.table_of(data), Path(run), k)
    elif joined or split is not None:
        table = old.table_of(data)
        result = _merged(old, table, joined) if joined else _split(old, table, str(split))
    if names:
        result = result.rename({mark: name for mark, name in names.items() if mark in result.model.letters})
    return _coloured(result, {**(old.summary.get("colours") or {}), **(colours or {})})


@dataclass(frozen=True, eq=False)
class _Old:
    """A run as it is."""

    model: Model
    summary: dict[str, Any]
    result: Result

    @classmethod
    def of(cls, folder: str) -> _Old:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is not restored is made anew
            return cls(find_model(folder), find_summary(folder), restored(folder))

    def check(self, letters: Sequence[str]) -> None:
        unknown = [mark for mark in letters if mark not in self.model.letters]
        if unknown:
            raise UsageError(
                "unknown-group",
                f"there is no group {shown(unknown[0])!r}",
                do=f"The groups are {', '.join(self.model.letters)}",
            )

    def job(self, table: Table) -> Job:
        """The job of the run, of this table, without what it asked of the number of groups."""
        return replace(self.asked(table, NOT_OF_THE_TABLE), method=self.method)

    def asked(self, table: Table, without: Sequence[str]) -> Job:
        """The options of the run, without some, of this table."""
        given = self.summary["options"]
        names = {field.name for field in fields(Job)} - {*without, "reading", "data"}
        return Job(table, **{name: value for name, value in given.items() if name in names})

    @property
    def method(self) -> str:
        """The method that was chosen, without its structure."""
        return str(self.summary["chosen"]["method"])

    def table_of(self, data: Any) -> Table:
        if data is None:
            raise UsageError(
                "no-table", "the table of the run is needed", do="Give it as the second argument"
            )
        reading = self.summary["options"].get("reading") or {}
        path = isinstance(data, (str, os.PathLike))
        table = in_memory(Job(data, reading=reading if path else {}), "groups are changed")
        if table.n_rows != len(self.finest):
            raise DataError(
                "other-table",
                f"the run has {len(self.finest)} rows and {shown(table.source, 80)} has {table.n_rows}",
                do="Give the table that the run was made from",
            )
        return table

    @property
    def finest(self) -> Array:
        return self.result.finest()


def _merged(old: _Old, table: Table, letters: Sequence[str]) -> Result:
    model = old.model
    places = sorted({model.letters.index(mark) for mark in letters})
    if len(places) < 2 or len(places) == model.k:
        raise UsageError(
            "bad-merge", "two groups or more are merged, and one at least is left", do="Name other letters"
        )
    new = np.arange(model.k)
    new[places] = places[0]
    note = Caution(
        "groups-changed", f"groups {' and '.join(model.letters[p] for p in places)} were merged by hand"
    )
    labels = np.where(old.finest >= 0, new[old.finest], -1)
    if not model.has_rule:
        return _labelled(old, table, labels, note)
    return _by_rule(old, table, labels, new[list(model.group_of)], note)


def _split(old: _Old, table: Table, letter: str) -> Result:
    model = old.model
    place = model.letters.index(letter)
    own = np.flatnonzero(old.finest == place)
    mine = np.flatnonzero(np.array(model.group_of) == place)
    note = Caution("groups-changed", f"group {letter} was split by hand")
    if model.has_rule and len(mine) > 1:
        group_of = _divided(old, table, mine, place)
        grouped = replace(model.grouped, group_of=np.array(group_of))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = model._read_rows(table, "error")
        fresh = np.concatenate([*rows.scan(_visit_labels, grouped)])
        labels = np.where(np.isin(np.arange(len(old.finest)), own), fresh, old.finest)
        labels[own] = np.where(np.isin(fresh[own], (place, model.k)), fresh[own], place)
        if len(np.unique(labels[own])) == 2:
            return _by_rule(old, table, labels, np.array(group_of), note)
    if len(own) < LEAST_DIVIDED:
        raise UsageError("too-small", f"group {letter} has {len(own)} rows", do="Split a larger one")
    names = [name for name in table.names if name not in table.problems]
    few = from_arrow(table.arrow.select(names).take(own), table.source)
    by = old.method if METHODS[old.method].k == "fixed" and METHODS[old.method].search != "none" else "auto"
    halves = run_job(replace(old.job(few), method=by, k=2, merge="none")).finest()
    labels = old.finest.copy()
    labels[own[halves == 1]] = model.k
    if not (halves == 1).any():
        raise DataError("not-divided", f"group {letter} could not be split in two", do="Split another")
    return _labelled(old, table, labels, note)


def _at_k(old: _Old, table: Table, run: Path, k: int) -> Result:
    """The fit that the search had with K groups."""
    return at_k(_searched(old, table), read_fit(run, k), old.model)


def searched_again(run: Path, data: Any) -> tuple[Searched, Model]:
    """A table with what the search of its run has tried on it, and the model of the run."""
    old = _Old.of(os.fspath(run))
    return _searched(old, old.table_of(data)), old.model


def _searched(old: _Old, table: Table) -> Searched:
    job = old.asked(table, ("k", "merge", "match_to"))
    n_rows = int(old.summary["search"]["rows"])
    return Searched(job, prepare(job), old.result.candidates, n_rows)


def _visit_labels(grouped: Grouped, block: Any) -> Array:
    return grouped.label(block)


def _divided(old: _Old, table: Table, mine: Array, place: int) -> list[int]:
    """The components of a group in two: the last of its components that was merged leaves it."""
    group_of = list(old.model.group_of)
    path = (old.summary.get("merge") or {}).get("path") or ()
    both = [set(mine.tolist())]
    for step in path:
        sides = [set(side) for side in step["merged"]]
        if set().union(*sides) == both[0]:
            both = sides
            break
    leaving = both[1] if len(both) == 2 else {int(mine[-1])}
    for component in leaving:
        group_of[component] = old.model.k
    return group_of


def _by_size(labels: Array, group_of: Array | None) -> tuple[Array, Array | None]:
    """Groups 0, 1, ..., larger ones first, rows and components alike."""
    present, first, size = np.unique(labels[labels >= 0], return_index=True, return_counts=True)
    rank = np.full(int(max(labels.max(), 0 if group_of is None else group_of.max())) + 2, -1)
    rank[present[np.lexsort((first, -size))]] = np.arange(len(present))
    return rank[labels], None if group_of is None else rank[group_of]  # -1 stays: the last place


def _by_rule(old: _Old, table: Table, labels: Array, group_of: Array, note: Caution) -> Result:
    """The answer whose components belong to other groups."""
    from ilk.selection.given_labels import examined  # imports scikit-learn, which takes a second

    model, job = old.model, old.job(table)
    labels, places = _by_size(labels, group_of)
    assert places is not None
    given = prepare(job)
    used = given.numbers_of(np.arange(given.rows.n_rows))
    given = given.only(np.flatnonzero(labels[used] >= 0), "in no group")
    used = given.numbers_of(np.arange(given.rows.n_rows))
    rows = _model_rows(model, table, used, given)
    search = _search_of(old, labels[used], rows.take(np.arange(rows.n_rows)).weights)
    search, grouping = examined(
        given.rows, given.used, search, job.seed
    )  # as labels are: not as a model sees rows
    if old.summary["chosen"].get("silhouette") is None:  # a mixture is told by its probabilities
        search = replace(search, sharpness=None)
    grouping = replace(grouping, grouped=replace(model.grouped, group_of=places))
    findings = Findings(
        job=job,
        given=given,
        seen=Seen(rows, model.encoding, model.treat, old.summary["table"].get("treatment") or {}),
        search=search,
        grouping=grouping,
        notes=(note,),
        earlier=model,
        clock=Deadline.none(),
        search_seconds=0.0,
    )
    return answer_of(findings, shown_rows(given, findings.seen, grouping.labels, job.seed))


def _model_rows(model: Model, table: Table, used: Array, given: Input) -> MemoryRows:
    """The rows that are used as the model sees them, with their weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        block = model._read_rows(table, "error").take(used)
    return MemoryRows.of_block(replace(block, weight=given.weight), given.rows.threads)


def _search_of(old: _Old, labels: Array, weight: Array) -> Any:
    """The search of the run, its fit that of the groups as they are now."""
    from ilk.selection.from_partition import search_of
    from ilk.selection.paradigms import Parting

    model = old.model
    bare = search_of(METHODS[old.method], Parting(labels), labels, 0.0, None)
    candidates = old.result.candidates or bare.candidates
    best = [i for i, c in enumerate(candidates) if c.bic is not None]
    return replace(
        bare,
        candidates=candidates,
        winner=min(best, key=lambda i: candidates[i].bic or 0.0) if best else 0,
        runner_up=None,
        recipe=Recipe(model.method, model.grouped.family),
        fit=replace(bare.fit, params=model.params, size=np.bincount(labels, weight).astype(np.float64)),
    )


def _labelled(old: _Old, table: Table, labels: Array, note: Caution) -> Result:
    """The same of groups without a rule."""
    job = replace(old.job(table), labels=_by_size(labels, None)[0], method="auto")
    job = replace(job, match_to=old.model if old.model.has_rule else None)
    findings, _ = labelled(job, Deadline.none())
    findings = replace(findings, notes=(*findings.notes, note))
    shown_now = shown_rows(findings.given, findings.seen, findings.grouping.labels, job.seed)
    return answer_of(findings, shown_now)


def _coloured(result: Result, colours: Mapping[str, Any]) -> Result:
    kept = {mark: number for mark, number in colours.items() if mark in result.model.letters}
    wrong = [number for number in kept.values() if not isinstance(number, int) or not 1 <= number <= COLOURS]
    if wrong:
        raise UsageError(
            "bad-colour", f"{shown(wrong[0])!r} is no colour", do=f"Give a number from 1 to {COLOURS}"
        )
    if not kept:
        return result
    return replace(result, _summary={**result.summary(), "colours": kept})
