"""Groups without a rule: methods of distances say of the rows they saw where they belong, and nothing of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from ilk.errors import UsageError
from ilk.families.base import Trim
from ilk.methods import GIVEN
from ilk.table.block import Array, Block


def no_rule(method: str = "") -> UsageError:
    """The refusal of new rows; `method` is the one that a model says its groups come from."""
    if method == GIVEN:
        return UsageError(
            "no-rule",
            "the labels were given, and ilk does not know how new rows get theirs",
            do="Give new rows their labels as the others got them, or fit a model: ilk.cluster, ilk fit",
        )
    return UsageError(
        "no-rule",
        "this method groups the rows it is given and cannot assign new ones",
        do="Fit again with the new rows, or use k-means, k-medians or a mixture method",
    )


@dataclass(frozen=True)
class NoPredictionRule:
    """A family only in name: whatever it is asked, it has no parameters to answer with."""

    name: str = "none"
    starts_from_partition: ClassVar[bool] = False
    n_phases: ClassVar[int] = 1
    shares_blocks: ClassVar[bool] = False
    device_rows: ClassVar[str] = ""
    runs_compiled: ClassVar[bool] = False

    def refuse(self) -> NoReturn:
        raise no_rule()

    def start(self, centres: Array) -> NoReturn:
        self.refuse()

    def step(self, params: Any, block: Block, cut: Trim) -> NoReturn:
        self.refuse()

    def assign(self, params: Any, block: Block) -> tuple[Array, Array]:
        self.refuse()

    def cost(self, params: Any, block: Block) -> Array:
        self.refuse()

    def update(self, params: Any, sums: Mapping[str, Any]) -> NoReturn:
        self.refuse()

    def centres(self, params: Any) -> NoReturn:
        self.refuse()

    def vacant(self, params: Any) -> NoReturn:
        self.refuse()

    def move(self, params: Any, which: Array, centres: Array) -> NoReturn:
        self.refuse()

    def select(self, params: Any, which: Array | Sequence[int]) -> NoReturn:
        self.refuse()

    def same(self, one: Any, other: Any) -> NoReturn:
        self.refuse()

    def status(self, params: Any) -> NoReturn:
        self.refuse()

    def penalty(self, params: Any) -> NoReturn:
        self.refuse()


NO_PREDICTION_RULE = NoPredictionRule()
