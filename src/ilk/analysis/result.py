"""What a job gives back: the groups, what they are, how far to trust them, and the model that gives new rows theirs."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ilk.analysis.cautions import STOPPED
from ilk.errors import Caution, UsageError, shown
from ilk.model.model import Model
from ilk.model.placed import Placed
from ilk.report.explanation import without_rows
from ilk.report.groups import Group
from ilk.selection.candidates import Candidate
from ilk.selection.verdict import Verdict
from ilk.table.block import Array
from ilk.table.out_of_core.table import PieceTable
from ilk.table.read import Table


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """Groups found in a table by `cluster`.

    Where components have no density dip between them there are no clear groups: `k` is 1, all labels are 0, and
    `segments`, `groups`, `probabilities` and `placed` tell of the components, arbitrary segments of a single group.

    Attributes
    ----------
    labels : int array of shape (n_rows,)
        Group number of each row of the table, larger groups first; -1 for a row without a value in the columns used.
    segments : None or int array of shape (n_rows,)
        Segment of each row, where there are no clear groups.
    probabilities : None or array of shape (n_rows, number of groups)
        Probability of each group for each row. None for methods that give none, for tables read in parts, and for
        large tables whose run was interrupted; in these two cases `assign` has them.
    k : int
        Number of groups.
    components : int
        Number of components that make the groups.
    groups : tuple of Group
        What each group is.
    candidates : tuple of Candidate
        All that was tried; `pandas.DataFrame(result.candidates)` shows it.
    verdict : Verdict
        How far to trust the groups.
    warnings : tuple of (str, str)
        Cautions: a stable code and a sentence each.
    model : Model
        Gives new rows their groups.
    table : Table
        The table as it was read.
    placed : None or Placed
        Group, second group, probability and novelty of each row, as `assign` gives them; None where groups have no
        rule, for tables read in parts, and for large tables whose run was interrupted.
    interrupted : bool
        Whether the run was interrupted, and this is the best found until then.
    letters : array of shape (n_rows,)
        Letter of each row's group; None for a row without one.
    profile : pandas.DataFrame
        What is in the groups: means of numbers and shares of categories, in the whole table and in each group.
    importance : pandas.DataFrame
        How much each column tells the groups apart, in nats per row, the most telling first.

    See Also
    --------
    cluster : Makes it.
    Model : What is needed to give new rows their groups.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> result.k, result.verdict.word
    (2, 'fair')
    >>> result.assign({"size": [7.5]})["group"].to_pylist()
    ['B']
    """

    labels: Array
    segments: Array | None = None
    probabilities: Array | None
    k: int
    components: int
    groups: tuple[Group, ...]
    candidates: tuple[Candidate, ...]
    verdict: Verdict
    warnings: tuple[Caution, ...]
    model: Model
    table: Table | PieceTable = field(repr=False)
    placed: Placed | None = field(repr=False)
    _summary: dict[str, Any] = field(repr=False)

    @property
    def interrupted(self) -> bool:
        """Whether the run was interrupted, and this is the best found until then."""
        return bool(self._summary["interrupted"])

    @property
    def letters(self) -> Array:
        """Letter of each row's group; None for a row without one."""
        column: Array = self.model.label_columns(self.finest(), ())["group"]
        return column

    @property
    def profile(self) -> Any:
        """What is in the groups: means of numbers and shares of categories, in the whole table and in each group."""
        from ilk.analysis.frames import frame_of_profile

        return frame_of_profile(self._summary)

    @property
    def importance(self) -> Any:
        """How much each column tells the groups apart, in nats per row, the most telling first."""
        from ilk.analysis.frames import frame_of_importance

        return frame_of_importance(self._summary)

    def finest(self) -> Array:
        """Return the number of each row's group, or of its segment where there are no clear groups.

        Returns
        -------
        int array of shape (n_rows,)
            `segments` where there are some, else `labels`.
        """
        return self.labels if self.segments is None else self.segments

    def to_frame(self) -> Any:
        """Return the rows of the table with their groups, as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            The user's rows, with their index where a pandas frame was given, and `group` (its letter), `name`,
            `probability` (where the method gives one), `second` and `novelty`; also `segment` where there are no
            clear groups. A column that is there already is kept, and ours is named `group_ilk`, with a warning.
        """
        from ilk.analysis.frames import frame_of_rows

        return frame_of_rows(self)

    def standard_errors(
        self,
        n: int = 100,
        *,
        kind: str = "nonparametric",
        level: float = 0.95,
        random_state: Any = 0,
    ) -> Any:
        """Return standard errors and intervals of the profiles of the groups, by bootstrap resamples of the rows.

        The model is fitted again to each resample from its own parameters, so that groups correspond, and its groups
        are described. The number of groups and the structure of the model stay what they are.

        Parameters
        ----------
        n : int, default=100
            Number of resamples.
        kind : "nonparametric" or "weighted-likelihood", default="nonparametric"
            Rows drawn with replacement, or weighted by a flat Dirichlet draw.
        level : float, default=0.95
            Share of the resamples within the intervals.
        random_state : None, int, Generator, RandomState or SeedSequence, default=0
            Seed of the random draws.

        Returns
        -------
        pandas.DataFrame
            A line for each group, column and category: `value`, `standard_error`, `lower` and `upper`. The column
            "(share)" is the share of the rows.
        """
        from ilk.analysis.uncertainty import profile_errors

        return profile_errors(self, n, kind, level, random_state)

    def stopped(self) -> Result:
        """Return the same result, said to be that of a run that was interrupted.

        Returns
        -------
        Result
            The result, with the warning.
        """
        if self.interrupted:
            return self
        told = self.cautioned(STOPPED)
        return replace(told, _summary={**told._summary, "interrupted": True})

    def cautioned(self, caution: Caution) -> Result:
        """Return the same result with one more warning.

        Parameters
        ----------
        caution : Caution
            A stable code and a sentence.

        Returns
        -------
        Result
            The result, with the warning.
        """
        told = [*self._summary["warnings"], caution.to_dict()]
        return replace(self, warnings=(*self.warnings, caution), _summary={**self._summary, "warnings": told})

    def summary(self) -> dict[str, Any]:
        """Return everything as one plain document, the content of `summary.json`.

        Returns
        -------
        dict
            A copy; its form is described by a JSON schema.
        """
        return copy.deepcopy(self._summary)

    def report(self, path: str | os.PathLike[str], *, rows: bool = True, overwrite: bool = True) -> None:
        """Write the report: one HTML file that needs nothing else.

        Parameters
        ----------
        path : str or path
            Where to write it.
        rows : bool, default=True
            False leaves single rows out of it.
        overwrite : bool, default=True
            Whether a file that is there is replaced.
        """
        from ilk.report.page import page
        from ilk.store import write_atomically

        summary = self._summary if rows else without_rows(self._summary)
        write_atomically(path, page(summary).encode(), overwrite=overwrite)

    def _repr_html_(self) -> str:
        from ilk.report.notebook import fragment

        return fragment(self._summary)

    def plot(self, kind: str | None = None, *, ax: Any = None) -> Any:
        """Draw the result with matplotlib: the rows on a map with their groups, or another block of the report.

        Parameters
        ----------
        kind : None or str, default=None
            "map", "groups", "importance", "profile", "pair", "selection", "silhouettes", "separation", "stability" or
            "uncertainty"; also a block of the report ("answer", "why", "quality", "rows"). None draws the map where
            there is one.
        ax : None or Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        Display
            The display of that kind (`MapDisplay`, ...), with `ax_` and `figure_`.
        """
        from ilk.analysis.asked import known
        from ilk.report.displays import BLOCKS, KINDS, first_kind

        if kind is None:
            kind = first_kind(self._summary)
        known("kind", kind, (*KINDS, *BLOCKS))
        return KINDS[BLOCKS.get(kind, kind)].from_result(self, ax=ax)

    def rename(self, names: Mapping[str, str]) -> Result:
        """Return the same result with other names for its groups, which `assign` then gives, too.

        Parameters
        ----------
        names : mapping of str to str
            New names by letter, such as {"A": "large ones"}.

        Returns
        -------
        Result
            The result with these names.
        """
        unknown = set(names) - set(self.model.letters)
        if unknown:
            raise UsageError(
                "unknown-group",
                f"there is no group {shown(min(unknown))!r}",
                do=f"The groups are {', '.join(self.model.letters)}",
            )
        groups = tuple(replace(g, name=names.get(g.letter, g.name)) for g in self.groups)
        summary = self.summary()
        for entry in summary["groups"]:
            entry["name"] = names.get(entry["letter"], entry["name"])
        summary["names"] = {**summary.get("names", {}), **names}
        options = {**self.model.options, "named": True}
        model = replace(self.model, names=tuple(g.name for g in groups), options=options)
        return replace(self, groups=groups, model=model, _summary=summary)

    def assign(self, data: Any, *, absent: str = "error") -> Any:
        """Return the groups of new rows; see `Model.assign`.

        Parameters
        ----------
        data : frame, array, list, mapping or path
            New rows with the columns of the table.
        absent : "error" or "missing", default="error"
            Whether a column that is not there is refused, or every value in it is taken as missing.

        Returns
        -------
        frame
            Columns `group`, `probability`, `second` and `novelty`, in a frame of the caller's kind.
        """
        return self.model.assign(data, absent=absent)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to one file, to be read by `load`.

        Parameters
        ----------
        path : str or path
            Where to write it.
        overwrite : bool, default=False
            Whether a file that is there is replaced.
        """
        self.model.save(path, overwrite=overwrite)

    def __repr__(self) -> str:
        from ilk.text.layout import Surface
        from ilk.text.summary import render

        return render(self._summary, Surface(width=100))
