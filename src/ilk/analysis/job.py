"""What a user asked for, however it was said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from ilk.selection.progress import Progress

if TYPE_CHECKING:
    from ilk.analysis.checkpoint import Checkpoint


@dataclass(frozen=True)
class Job:
    """What the user asked for."""

    data: Any
    _: KW_ONLY
    k: Any = "auto"
    method: str = "auto"
    weight: Any = None  # the name of a column, or a weight for each row
    weights_are: str | None = None
    types: Any = None
    truth: str | None = None
    id: str | None = None
    ignore: str | Sequence[str] = ()
    columns: str | Sequence[str] | None = None  # those to use; None for all
    scale: str | None = "standard"
    seed: int = 0
    budget: float | None = None
    threads: int | None = None
    device: str = "auto"
    callback: Callable[[Progress], None] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    merge: str = "separation"
    min_size: int | None = None
    max_size: int | None = None
    match_to: Any = None  # a model, or where one is
    memory: Any = None
    labels: Any = None  # of groups that came from elsewhere: the name of a column, or one for each row
    column_weights: Mapping[str, float] | None = None
    transforms: Mapping[str, str] | None = None
    known: Any = None  # labels of some rows, in the same way
    must_link: Any = None
    cannot_link: Any = None
    checkpoint: Checkpoint | None = None

    @property
    def keeps(self) -> bool:
        """Whether something is known of rows that has to be kept."""
        return any(given is not None for given in (self.known, self.must_link, self.cannot_link))

    @property
    def asked(self) -> int | None:
        """The number of groups, where a single one was asked for."""
        if isinstance(self.k, str):
            return None
        wanted = self.k if isinstance(self.k, (range, list, tuple)) else [self.k]
        return int(wanted[0]) if len(wanted) == 1 else None
