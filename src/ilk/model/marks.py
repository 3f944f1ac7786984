"""What a model writes beside rows: the marks and names of their groups, probability, second group, novelty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ilk.model.columns import WHOLE, free_names
from ilk.model.no_prediction_rule import NO_PREDICTION_RULE
from ilk.model.placed import Placed
from ilk.model.registry import is_soft
from ilk.table.block import Array


class Marked:
    """Groups with letters and names, as columns."""

    family: str
    letters: tuple[str, ...]
    names: tuple[str, ...]
    options: Mapping[str, Any]

    @property
    def has_rule(self) -> bool:
        """Whether new rows can be placed; methods of distances have no rule for that."""
        return self.family != NO_PREDICTION_RULE.name

    @property
    def segmented(self) -> bool:
        """Whether there were no clear groups, and letters, names and sizes are those of segments of a single group."""
        return bool(self.options.get("segmented", False))

    @property
    def named(self) -> bool:
        """Whether names were given by the user."""
        return bool(self.options.get("named", False))

    def output_names(self) -> tuple[str, ...]:
        """Return the names of the columns that `assign` gives, before any is renamed.

        Returns
        -------
        tuple of str
            In their order.
        """
        figures = ("probability", "second", "novelty") if is_soft(self.family) else ("second", "novelty")
        return (*self._marked(), *figures) if self.has_rule else tuple(self._marked())

    def columns_for(self, placed: Placed, taken: tuple[str, ...] = ()) -> dict[str, Array]:
        """Return the output columns under names that the table does not use itself.

        Parameters
        ----------
        placed : Placed
            Where the rows belong.
        taken : tuple of str, default=()
            Names of the columns of the table.

        Returns
        -------
        dict
            Names and arrays.
        """
        values = {
            **self._marks_of(placed.group),
            "probability": np.round(placed.probability, 4),
            "second": self._texts(self.letters, placed.second),
            "novelty": np.round(placed.novelty, 4),
        }
        if not is_soft(self.family):
            del values["probability"]
        return dict(zip(free_names(taken, tuple(values)), values.values(), strict=True))

    def label_columns(self, labels: Array, taken: tuple[str, ...]) -> dict[str, Array]:
        """Return the output column of known labels, for groups without a rule.

        Parameters
        ----------
        labels : int array of shape (n_rows,)
            Group number of each row.
        taken : tuple of str
            Names of the columns of the table.

        Returns
        -------
        dict
            Name and array.
        """
        values = self._marks_of(labels)
        return dict(zip(free_names(taken, tuple(values)), values.values(), strict=True))

    def _marked(self) -> dict[str, tuple[str, ...]]:
        """What each column that tells of a row's group holds for each group of the model."""
        marked = (
            {"group": (WHOLE,) * len(self.letters), "segment": self.letters}
            if self.segmented
            else {"group": self.letters}
        )
        return marked | ({"name": self.names} if self.named else {})

    def _marks_of(self, number: Array) -> dict[str, Array]:
        return {name: self._texts(texts, number) for name, texts in self._marked().items()}

    def _texts(self, texts: tuple[str, ...], number: Array) -> Array:
        """The text of each row's group, as objects where a row has none."""
        if (number >= 0).all():
            return np.array(texts, dtype=str)[number]
        return np.array([*texts, None], dtype=object)[number]  # -1 picks the last
