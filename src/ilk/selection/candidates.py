"""What a search tried, cell by cell, and what it chose."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any

from ilk.engines.memory import MemoryRows
from ilk.errors import UsageError
from ilk.families.gaussian import Gaussian, Mixture
from ilk.fitting.fit import Fit
from ilk.fitting.restarts import Recipe
from ilk.selection.kept_fits import KeptFit
from ilk.selection.sharpness import Sharpness

Model = tuple[Gaussian, Mixture]

OK = "ok"
EXACT = "ok_exact"
SINGULAR = "singular"
REFERENCE = "reference"
ELIGIBLE = frozenset({OK, EXACT, "ok_iteration_limit", "ok_time_limit", "ok_interrupted"})


@dataclass(frozen=True)
class Candidate:
    """One model that was tried: a method, a structure and a number of groups, with what was measured.

    All criteria are lower-is-better, and None where there is no finite value. After a search on a sample the
    criteria are those of the sample.

    Attributes
    ----------
    method : str
        Name of the method.
    structure : None or str
        Covariance structure of a mixture.
    k : int
        Number of components.
    status : str
        "ok", or why there is no answer.
    loglik : None or float
        Log-likelihood.
    parameters : None or int
        Number of free parameters.
    bic : None or float
        Bayesian information criterion.
    icl : None or float
        Integrated completed likelihood, of a mixture.
    aic : None or float
        Akaike's criterion, of a mixture.
    adjusted_bic : None or float
        Sample-size adjusted BIC, of a mixture.
    bic_all_rows : None or float
        BIC of the whole table, for candidates that were fitted to it after a search on a sample.
    cost : None or float
        What was minimised.
    silhouette : None or float
        Mean silhouette.
    silhouette_error : None or float
        Its standard error, where it was measured on a sample.
    n_starts : int
        Number of starts.
    n_starts_at_best : int
        Starts that reached the best cost.
    n_passes : int
        Passes of the best start.
    seconds : float
        Time it took.
    eligible : bool
        Whether it may be chosen.
    last_bic : float
        BIC on all rows where the candidate was fitted to them, else `bic`; infinite where there is none.

    See Also
    --------
    Search : All candidates, and the choice.

    Examples
    --------
    >>> import ilk
    >>> found = ilk.select([[0.0], [1.0], [2.0], [7.0]], k=range(1, 3), structures="E")
    >>> [(candidate.structure, candidate.k) for candidate in found.candidates]
    [('E', 1), ('E', 2)]
    """

    method: str
    structure: str | None
    k: int
    status: str
    _: KW_ONLY
    loglik: float | None = None
    parameters: int | None = None
    bic: float | None = None
    icl: float | None = None
    aic: float | None = None
    adjusted_bic: float | None = None
    bic_all_rows: float | None = None
    cost: float | None = None
    silhouette: float | None = None
    silhouette_error: float | None = None
    n_starts: int = 0
    n_starts_at_best: int = 0
    n_passes: int = 0
    seconds: float = 0.0
    _make: Callable[[], Any] | None = field(
        default=None, repr=False, compare=False
    )  # the estimator of the chosen

    def estimator(self) -> Any:
        """Return the chosen mixture of `select` as a fitted `GaussianMixture`.

        Returns
        -------
        GaussianMixture
            At the parameters of the search: it predicts, tells its BIC and can be pickled. Of other candidates no
            fit is kept.
        """
        if self._make is None:
            raise UsageError(
                "not-chosen",
                f"no fit is kept of {self.structure or self.method} with K={self.k}",
                do="Use select(...).chosen, or fit ilk.GaussianMixture with this structure and K",
            )
        return self._make()

    @property
    def eligible(self) -> bool:
        """Whether it may be chosen."""
        return self.status in ELIGIBLE

    @property
    def last_bic(self) -> float:
        """BIC on all rows where the candidate was fitted to them, else `bic`; infinite where there is none."""
        known = (value for value in (self.bic_all_rows, self.bic) if value is not None)
        return next(known, math.inf)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a plain dictionary.

        Returns
        -------
        dict
            Names and values.
        """
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "_make"}


@dataclass(frozen=True, kw_only=True)
class Search:
    """Everything that `select` tried, and the choice. It prints as a table of BIC.

    Attributes
    ----------
    candidates : tuple of Candidate
        All that was tried.
    winner : int
        Number of the chosen candidate.
    runner_up : None or int
        Number of the next best.
    fit : Fit
        The fit of the chosen candidate.
    recipe : Recipe
        How it was fitted.
    sharpness : None or Sharpness
        Silhouettes of the chosen candidate, of methods that are not mixtures.
    n_rows_searched : int
        Rows on which candidates were compared; fewer than the table has where it is large.
    interrupted : bool
        Whether the search was interrupted.
    few : None or MemoryRows
        The rows on which mixtures were searched, in the units of the winner.
    ended_by : None or str
        "limit" or "time" where that ended the search while more groups lowered the BIC; "no dips" where the groups
        of K-means lie side by side, and more would only cut a cloud finer; "weak merge" where more components merge
        into weak groups.
    rivals : tuple of Model
        Mixtures that came near the winner.
    models : dict of int and Model
        The best mixture of every K, as the rows of the search left it.
    kept : dict of int and KeptFit
        The best model of every K, of any method, with the units and the treatment of the rows that it takes.
    chosen : Candidate
        The chosen candidate.
    single : None or int
        Number of the candidate of one group, of the winner's method.

    See Also
    --------
    select : Makes it.
    Candidate : One entry.

    Examples
    --------
    >>> import ilk
    >>> found = ilk.select([[0.0], [1.0], [2.0], [3.0]], k=range(1, 3), structures="E")
    >>> found.chosen.k, found.margin(found.runner_up) > 0
    (1, True)
    """

    candidates: tuple[Candidate, ...]
    winner: int
    runner_up: int | None
    fit: Fit
    recipe: Recipe
    sharpness: Sharpness | None
    n_rows_searched: int
    interrupted: bool
    few: MemoryRows | None = None  # on which mixtures were searched, in the units of the winner
    ended_by: str | None = None  # what ended the search where more groups might have paid
    rivals: tuple[Model, ...] = ()  # mixtures that came near, for a contest where there are more rows
    models: Mapping[int, Model] = field(default_factory=dict)  # the best mixture of every K
    kept: Mapping[int, KeptFit] = field(default_factory=dict)  # the best model of every K, of any method

    def __repr__(self) -> str:
        """BIC by structure and K, the best marked; a cell without one shows its status."""
        rows = list(dict.fromkeys(c.structure or c.method for c in self.candidates))
        columns = sorted({c.k for c in self.candidates})
        cells = {(c.structure or c.method, c.k): c for c in self.candidates}
        lines = ["BIC (lower is better)", "".join(f"{text:>11}" for text in ["K", *map(str, columns)])]
        for row in rows:
            line = f"{row:>11}"
            for k in columns:
                cell = cells.get((row, k))
                text = "" if cell is None else cell.status[:9] if cell.bic is None else f"{cell.bic:.1f}"
                line += f"{text + ('*' if cell is self.chosen else ''):>11}"
            lines.append(line)
        return "\n".join(lines)

    @property
    def chosen(self) -> Candidate:
        """The chosen candidate."""
        return self.candidates[self.winner]

    def margin(self, other: int | None) -> float | None:
        """Return by how much a candidate has the higher BIC than the chosen one.

        Parameters
        ----------
        other : None or int
            Number of the candidate, such as `runner_up`.

        Returns
        -------
        None or float
            The difference, on all rows where both were fitted to them; None where there is none.
        """
        if other is None:
            return None
        one, rival = self.chosen, self.candidates[other]
        if one.bic_all_rows is not None and rival.bic_all_rows is not None:
            return rival.bic_all_rows - one.bic_all_rows
        return None if rival.bic is None or one.bic is None else rival.bic - one.bic

    @property
    def single(self) -> int | None:
        """Number of the candidate of one group, of the winner's method; None where there is none."""
        same = (i for i, c in enumerate(self.candidates) if c.k == 1 and c.method == self.chosen.method)
        return next((i for i in same if self.candidates[i].bic is not None), None)
