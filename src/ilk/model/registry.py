"""The families by which a model places rows: by name, as it is saved, and their parameters as a tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from ilk.assorted.blended import Blend
from ilk.assorted.family import Assorted, Clusters
from ilk.assorted.problem import BLOCKS
from ilk.families.base import Family
from ilk.families.centroid import Centroids, Means, Medians
from ilk.families.covariance import Structure
from ilk.families.dirichlet import POSTERIORS, DirichletProcess, Posteriors
from ilk.families.gaussian import Gaussian, Mixture
from ilk.model.levels import LEVELLED, SOFT_LEVELS, Levels
from ilk.model.no_prediction_rule import NO_PREDICTION_RULE

Params = Centroids | Mixture | Clusters | Blend | Posteriors | Levels | None
ASSORTED = (Assorted.name, *(f"{Assorted.name} {structure}" for structure in BLOCKS))
PROCESS = DirichletProcess(Structure.parse("VVI"), np.ones(1))


def family_of(name: str) -> Family[Any] | None:
    """The family of a saved model by its name, None for one that this version does not know."""
    if name.startswith("gaussian "):
        return Gaussian(Structure.parse(name.removeprefix("gaussian ")), np.ones(1))
    others: dict[str, Family[Any]] = {
        "means": Means(),
        "medians": Medians(),
        PROCESS.name: PROCESS,
        NO_PREDICTION_RULE.name: NO_PREDICTION_RULE,
        **LEVELLED,
    }
    return others.get(name)


def is_soft(family: str) -> bool:
    """Whether the family gives probabilities."""
    return family.startswith("gaussian ") or family in (*ASSORTED, PROCESS.name, SOFT_LEVELS.name)


def takes_codes(family: str) -> bool:
    """Whether categories are levels to the family, and not numbers."""
    return family in (PROCESS.name, *LEVELLED)


def parameter_tree(params: Params) -> dict[str, Any]:
    """Parameters as a tree of arrays and numbers."""
    if params is None:
        return {}
    if isinstance(params, Centroids):
        return {"centre": params.centre, "weight": params.weight}
    if isinstance(params, Clusters):
        return {name: getattr(params, name) for name in ("mixing", "mean", "variance", "log_level", "group")}
    if isinstance(params, Blend):
        return {"numbers": parameter_tree(params.numbers), "levels": parameter_tree(params.levels)}
    if isinstance(params, Posteriors):
        return {name: getattr(params, name) for name in POSTERIORS}
    if isinstance(params, Levels):
        ends = np.cumsum([len(knots) for knots in params.knots])
        return {
            "share": params.groups.share,
            "given": params.groups.given,
            "beta": params.groups.beta,
            "knots": np.concatenate([*params.knots, np.empty(0)]),
            "knot_ends": [int(end) for end in ends],
        }
    covariance = params.covariance
    return {
        "mixing": params.mixing,
        "mean": params.mean,
        "log_variance": covariance.log_variance,
        "axes": covariance.axes,
    }
