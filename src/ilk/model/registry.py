"""The families by which a model places rows: one record each, in which stands all that a saved model needs of one.

What is no entry here can be fitted, but makes no model. A family is found by the name in the model file; the Gaussians
are one family of fourteen structures, whose name follows that of the family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from ilk.assorted.family import Assorted
from ilk.assorted.problem import BLOCKS, ColumnTransform
from ilk.errors import UsageError, shown
from ilk.families.base import Family
from ilk.families.centroid import Means, Medians
from ilk.families.covariance import Structure
from ilk.families.dirichlet import DirichletProcess, process_of
from ilk.families.gaussian import Gaussian
from ilk.model import parameters
from ilk.model.levels import HARD_LEVELS, SOFT_LEVELS
from ilk.model.no_prediction_rule import NO_PREDICTION_RULE
from ilk.table.schema import Schema


@dataclass(frozen=True)
class Setting:
    """What parameters stand in: the columns of the model, what is made of them, and the structure in its name."""

    schema: Schema
    treat: ColumnTransform | None = None
    structure: str = ""

    @property
    def treated(self) -> ColumnTransform:
        assert self.treat is not None
        return self.treat

    @property
    def n_numbers(self) -> int:
        """Columns of a method of numbers: a column of two levels is one."""
        binary = [c for c in self.schema.coded if c.kind == "binary" and len(c.levels or ()) == 2]
        return len(self.schema.numeric) + len(binary)


@dataclass(frozen=True, kw_only=True)
class SavedFamily:
    """What is known of a family: how it places rows, how its parameters are written and read, and what they are for.

    `family` makes it of its parameters and their setting; `tree` writes parameters as a tree of arrays and numbers,
    `read` checks such a tree of k components and makes parameters of it. `takes` is "numbers", "codes" where
    categories are levels and not numbers, "treated" where a treatment stands before the family. `fitted` says how a
    resample is fitted anew, `formula` what an export writes for a row: None where there is no formula for it.
    """

    name: str
    family: Callable[[Any, Setting], Family[Any]]
    tree: Callable[[Any], dict[str, Any]]
    read: Callable[[Mapping[str, Any], int, Setting], Any]
    soft: bool = False
    structured: bool = False
    takes: Literal["numbers", "codes", "treated"] = "numbers"
    fitted: Literal["recipe", "mixture", "growth"] = "recipe"
    formula: Literal["squares", "distances", "gaussians", "cells", "blocks"] | None = None


FAMILIES: dict[str, SavedFamily] = {}


def register(*families: SavedFamily) -> None:
    """Make families known by their names."""
    for family in families:
        FAMILIES[family.name] = family


def saved(name: str) -> SavedFamily | None:
    """The family of that name, None for one that this version does not save."""
    stem, _, structure = name.partition(" ")
    found = FAMILIES.get(name)
    if found is None and stem in FAMILIES and FAMILIES[stem].structured:
        try:
            Structure.parse(structure)
        except UsageError:
            return None
        return FAMILIES[stem]
    return None if found is None or found.structured else found


def setting_of(name: str, schema: Schema, treat: ColumnTransform | None = None) -> Setting:
    """The setting of the parameters of the family of that name."""
    return Setting(schema, treat, name.partition(" ")[2])


def known(name: str) -> SavedFamily:
    """The family of a model; refused where it has no record, so that no model can be made of it."""
    found = saved(name)
    if found is None:
        raise UsageError(
            "family-not-registered",
            f"no model can be made of the family {shown(name)}, which has no record",
            do="Register it: ilk.model.registry.register(SavedFamily(...))",
        )
    return found


def is_soft(name: str) -> bool:
    """Whether the family gives probabilities."""
    found = saved(name)
    return found is not None and found.soft


def fitted_as(name: str) -> str:
    """How a family is fitted anew: as a "mixture", by "growth", or by a "recipe" like any other."""
    found = saved(name)
    return "recipe" if found is None else found.fitted


def _gaussian(params: Any, setting: Setting) -> Family[Any]:
    return Gaussian(Structure.parse(setting.structure), np.ones(1))


def _fixed(family: Family[Any], params: Any, setting: Setting) -> Family[Any]:
    return family


def _levels(tree: Mapping[str, Any], k: int, setting: Setting, deterministic: bool) -> Any:
    return parameters.levels(tree, k, setting.schema, deterministic)


register(
    *(
        SavedFamily(
            name=family.name,
            family=partial(_fixed, family),
            tree=parameters.centroids_tree,
            read=lambda tree, k, setting: parameters.centroids(tree, k, setting.n_numbers),
            formula="squares" if family.name == Means.name else "distances",
        )
        for family in (Means(), Medians())
    ),
    SavedFamily(
        name="gaussian",
        structured=True,
        family=_gaussian,
        tree=parameters.mixture_tree,
        read=lambda tree, k, setting: parameters.mixture(tree, k, setting.n_numbers, setting.structure),
        soft=True,
        fitted="mixture",
        formula="gaussians",
    ),
    SavedFamily(
        name=Assorted.name,
        family=lambda params, setting: setting.treated.family,
        tree=parameters.clusters_tree,
        read=lambda tree, k, setting: parameters.clusters(tree, k, setting.treated.plan),
        soft=True,
        takes="treated",
        fitted="growth",
        formula="cells",
    ),
    *(
        SavedFamily(
            name=f"{Assorted.name} {structure}",
            family=lambda params, setting: setting.treated.family,
            tree=parameters.blend_tree,
            read=lambda tree, k, setting: parameters.blend(tree, k, setting.treated),
            soft=True,
            takes="treated",
            fitted="growth",
            formula="blocks",
        )
        for structure in BLOCKS
    ),
    SavedFamily(
        name=DirichletProcess.name,
        family=lambda params, setting: process_of(params, setting.schema.level_start),
        tree=parameters.posteriors_tree,
        read=lambda tree, k, setting: parameters.posteriors(tree, k, setting.schema),
        soft=True,
        takes="codes",
    ),
    *(
        SavedFamily(
            name=family.name,
            family=partial(_fixed, family),
            tree=parameters.levels_tree,
            read=partial(_levels, deterministic=not soft),
            soft=soft,
            takes="codes",
        )
        for family, soft in ((SOFT_LEVELS, True), (HARD_LEVELS, False))
    ),
    SavedFamily(
        name=NO_PREDICTION_RULE.name,
        family=partial(_fixed, NO_PREDICTION_RULE),
        tree=lambda params: {},
        read=lambda tree, k, setting: None,
    ),
)
