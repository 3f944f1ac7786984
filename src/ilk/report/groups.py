"""A group and its facts, as results, reports and the terminal tell them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from ilk.report.terms import Rule

Sign = Literal["up", "down", "same"]


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One column of one group, compared with the whole table.

    Attributes
    ----------
    column : str
        Name of the column.
    type : "number" or "category"
        What it is described as.
    used : bool
        Whether the model used it.
    nats : float
        Divergence of the group from the whole table, per row.
    distinctive : bool
        Whether that is worth its price in BIC: nats * weight > free parameters / 2 * log n.
    sign : str
        Whether the group is above, below or like the table.
    value : None or float
        Mean of the group; of a category the share of `category`.
    whole : None or float
        The same of the whole table.
    category : None or str
        The category whose share differs most.
    decimals : int
        Digits with which the values are shown.
    spread : None or float
        Standard deviation in the group.
    whole_spread : None or float
        Standard deviation in the whole table.
    missing : float
        Share of missing values in the group.
    cells : None or int
        Number of rows of the group that have a value there.
    clock : None or dict
        Of dates `kind` "date" and the day from which they count (`origin`, in days since 1970-01-01), of times of day
        "time" and the part of a day from which hours count.

    See Also
    --------
    Group : Holds the facts of a group.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> fact = result.groups[0].facts[0]
    >>> fact.column, fact.value, fact.whole
    ('size', 1.05, 4.55)
    """

    column: str
    type: Literal["number", "category"]
    used: bool
    nats: float
    distinctive: bool
    sign: Sign
    value: float | None
    whole: float | None
    category: str | None = None
    decimals: int = 0
    spread: float | None = None
    whole_spread: float | None = None
    missing: float = 0.0
    cells: int | None = None
    clock: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """What distinguishes a group from the group most like it.

    Attributes
    ----------
    group : str
        Letter of the group that is most like it.
    facts : tuple of Fact
        Columns in which the two differ beyond chance, the clearest first: `whole` is the value in the other group,
        `nats` the Bhattacharyya distance of the two. Empty where no single column does.

    See Also
    --------
    Group : Holds it as `unlike`.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> unlike = result.groups[0].unlike
    >>> unlike.group, unlike.facts[0].value, unlike.facts[0].whole
    ('B', 1.05, 8.05)
    """

    group: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two columns that show a group together where neither does alone.

    Attributes
    ----------
    columns : tuple of str
        The two columns.
    words : str
        What the group is like there.
    nats : float
        Divergence of the group from the whole table in both, per row.

    See Also
    --------
    Group : Holds it as `pair`.

    Examples
    --------
    >>> from ilk.report.groups import Pair
    >>> Pair(columns=("x", "y"), words="high y for its x", nats=0.9).words
    'high y for its x'
    """

    columns: tuple[str, str]
    words: str
    nats: float


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group: its letter, name and size, and the facts about it with the most distinctive column first.

    Attributes
    ----------
    letter : str
        Letter of the group.
    name : str
        What it is like, in a few words.
    rows : int
        Number of rows.
    weight : float
        Sum of their weights.
    share : float
        Their share of the table.
    silhouette : None or float
        Mean silhouette.
    probability : None or float
        Mean probability of its rows to belong to it; None for methods that give no probabilities.
    facts : tuple of Fact
        A fact for each column.
    rule : None or Rule
        A short rule for the group, which prints as a sentence: `terms`, `coverage` (of the group), `purity` (of the
        rows it picks), `base_rate` (share of the group in the table), `rows` and `f`.
    stability : None or float
        Mean Jaccard similarity with the best match in resamples.
    nearest : None or dict
        The group it is least separated from, and the separation.
    unlike : None or Contrast
        The group that is most like it in the columns, and what distinguishes the two.
    pair : None or Pair
        Two columns that show the group together, where no single column does.

    See Also
    --------
    Result : Holds the groups.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> [(group.letter, group.name, group.rows) for group in result.groups]
    [('A', 'low size', 4), ('B', 'high size', 4)]
    """

    letter: str
    name: str
    rows: int
    weight: float
    share: float
    silhouette: float | None
    probability: float | None
    facts: tuple[Fact, ...]
    rule: Rule | None = None
    stability: float | None = None  # mean Jaccard index over bootstrap resamples
    nearest: dict[str, Any] | None = None  # the group it is least separated from, and the separation
    unlike: Contrast | None = None
    pair: Pair | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a plain dictionary.

        Returns
        -------
        dict
            Names and values.
        """
        apart = ("rule", "unlike", "pair")
        rest = {
            one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("facts", *apart)
        }
        held = {name: getattr(self, name) for name in apart}
        plain = {name: None if value is None else asdict(value) for name, value in held.items()}
        return {**rest, "facts": tuple(dict(vars(fact)) for fact in self.facts), **plain}
