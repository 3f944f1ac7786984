"""The parameters of the assorted family."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ilk.assorted.compiled_update import Update
from ilk.assorted.sharing import LOG_2_PI, ColumnCosts
from ilk.table.block import Array


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """Parameters: shares (K,), means and variances (K, numbers), log shares of levels (K, levels), and the group of
    each cluster in each column (K, columns), named by the group's first member; `made` is the update that gave them,
    with the columns whose costs it counted."""

    mixing: Array
    mean: Array
    variance: Array
    log_level: Array
    group: Array
    status: str = "ok"
    made: tuple[ColumnCosts, Update] | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.mixing)

    def known(self, columns: ColumnCosts) -> Update | None:
        """The update that gave the parameters, where it counted the costs of these columns."""
        return self.made[1] if self.made is not None and self.made[0] is columns else None

    @classmethod
    def of(cls, columns: ColumnCosts, update: Update) -> Clusters:
        """The parameters of an update that counted the costs of these columns."""
        return cls(
            mixing=update.mixing,
            mean=update.mean,
            variance=update.variance,
            log_level=update.log_level,
            group=update.group,
            made=(columns, update),
        )

    @cached_property
    def log_mixing(self) -> Array:
        if self.made is not None and self.made[1].mixing is self.mixing:
            return self.made[1].log_mixing
        with np.errstate(divide="ignore"):
            return np.log(self.mixing)

    @cached_property
    def precision(self) -> Array:
        return 1.0 / self.variance if self.made is None else self.made[1].precision

    @cached_property
    def log_norm(self) -> Array:
        return (
            np.asarray(-(LOG_2_PI + np.log(self.variance)) / 2)
            if self.made is None
            else self.made[1].log_norm
        )
