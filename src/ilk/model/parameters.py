"""The parameters of each family as a tree of arrays and numbers, and what they may be in a model file: all that placing
a row and exporting take for granted.

Encoded numbers are of the order of one, so `FAR` and the like are no limits of any fit; they keep squares and
exponentials finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ilk.assorted.blended import Blend
from ilk.assorted.family import Clusters
from ilk.assorted.problem import ColumnTransform
from ilk.assorted.transform import TransformPlan
from ilk.families.centroid import Centroids
from ilk.families.covariance import Covariance, Structure
from ilk.families.dirichlet import POSTERIORS, Posteriors
from ilk.families.gaussian import Mixture
from ilk.model.levels import Levels
from ilk.paradigms.bottleneck import Bottleneck
from ilk.store.check import anything, array, listed, need, number, places, record, rises, whole
from ilk.table.block import Array
from ilk.table.schema import Schema

FAR = 1e100  # where a mean or a centre may lie
TINY, HUGE = 1e-250, 1e250  # variances, weights and such
LOG_VARIANCE = 700.0  # so that a variance and its inverse are numbers
ROUNDING = 1e-6  # of sums that are one
NARROW = 1e-14  # least eigenvalue of correlations that a triangle can be made of
MOST_SPREAD = 2**25  # numbers in the covariances of all components

Tree = Mapping[str, Any]
Params = Centroids | Mixture | Clusters | Blend | Posteriors | Levels | None


def shares(k: int, least: float = 0.0) -> Any:
    """Shares of k components."""
    inner = array((k,), least, 1 + ROUNDING)

    def check(value: Any, name: str) -> Array:
        made = inner(value, name)
        need(abs(float(made.sum()) - 1) < ROUNDING, name, "the shares do not add up to 1")
        return np.asarray(made)

    return check


def centroids_tree(params: Centroids) -> dict[str, Any]:
    return {"centre": params.centre, "weight": params.weight}


def centroids(tree: Tree, k: int, n_columns: int) -> Centroids:
    fields = record({"centre": array((k, n_columns), -FAR, FAR), "weight": array((k,), 0.0)})(tree, "")
    return Centroids(fields["centre"], fields["weight"])


def mixture_tree(params: Mixture) -> dict[str, Any]:
    covariance = params.covariance
    return {
        "mixing": params.mixing,
        "mean": params.mean,
        "log_variance": covariance.log_variance,
        "axes": covariance.axes,
    }


def mixture(tree: Tree, k: int, n_columns: int, structure: str) -> Mixture:
    fields = record(
        {
            "mixing": shares(k),
            "mean": array((k, n_columns), -FAR, FAR),
            "log_variance": array((k, n_columns), -LOG_VARIANCE, LOG_VARIANCE),
        },
        {"axes": anything},
    )(tree, "")
    axes = fields.get("axes")
    if axes is not None:
        d, orientation = n_columns, Structure.parse(structure).orientation
        shape = {"I": (0,), "E": (d, d), "V": (k, d, d)}[orientation]
        need(orientation != "I", "axes", "the structure has none")
        axes = array(shape, -1 - ROUNDING, 1 + ROUNDING)(axes, "axes")
        product = axes.swapaxes(-1, -2) @ axes
        need(np.allclose(product, np.eye(d), atol=ROUNDING), "axes", "they are not orthogonal")
    else:
        along = Structure.parse(structure).for_columns(n_columns).orientation == "I"
        need(along or n_columns == 1, "axes", "they are not there")
    covariance = Covariance(fields["log_variance"], axes)
    if axes is not None:
        _definite(covariance)
    return Mixture(fields["mixing"], fields["mean"], covariance)


def _definite(covariance: Covariance) -> None:
    """Whether every covariance has a triangle, in whatever units: that of its correlations."""
    k, d = covariance.log_variance.shape
    need(k * d * d <= MOST_SPREAD, "log_variance", f"{k} covariances of {d} columns are too many")
    for one in range(k):  # one at a time, so that no more memory is taken than the file has
        matrix = covariance.select([one]).matrices()[0]
        deviation = np.sqrt(np.diagonal(matrix))
        need((deviation > 0).all(), "log_variance", "a covariance is not positive definite")
        correlation = matrix / deviation / deviation[:, None]
        least = float(np.linalg.eigvalsh((correlation + correlation.T) / 2)[0])
        need(least > NARROW, "log_variance", "a covariance is not positive definite")


def clusters_tree(params: Clusters) -> dict[str, Any]:
    return {name: getattr(params, name) for name in ("mixing", "mean", "variance", "log_level", "group")}


def clusters(tree: Tree, k: int, plan: TransformPlan) -> Clusters:
    n_numbers, n_levels = len(plan.numbers), int(plan.level_start[-1])
    fields = record(
        {
            "mixing": shares(k),
            "mean": array((k, n_numbers), -FAR, FAR),
            "variance": array((k, n_numbers), TINY, HUGE),
            "log_level": array((k, n_levels), -1e6, ROUNDING),
            "group": places((k, len(plan.names)), k),
        }
    )(tree, "")
    return Clusters(**fields)


def blend_tree(params: Blend) -> dict[str, Any]:
    return {"numbers": mixture_tree(params.numbers), "levels": clusters_tree(params.levels)}


def blend(tree: Tree, k: int, treat: ColumnTransform) -> Blend:
    for part in ("numbers", "levels"):
        need(isinstance(tree.get(part), dict), "parameters", f"the {part} are not there")
    numbers, plan = tree["numbers"], treat.plan
    # The shares are those of the numbers; the others are not looked at.
    categories = clusters({**tree["levels"], "mixing": numbers.get("mixing")}, k, replace(plan, numbers=()))
    block = mixture(numbers, k, len(plan.numbers), treat.numbers)
    return Blend(block, replace(categories, mixing=np.ones(k)))


def posteriors_tree(params: Posteriors) -> dict[str, Any]:
    return {name: getattr(params, name) for name in POSTERIORS}


def posteriors(tree: Tree, k: int, schema: Schema) -> Posteriors:
    d, n_levels = len(schema.numeric), int(schema.level_start[-1])
    beliefs = {name: array((k, d), TINY, HUGE) for name in ("strength", "shape", "rate")}
    fields = record(
        {
            "mixing": array((k,), 0.0, 1 + ROUNDING),
            "mean": array((k, d), -FAR, FAR),
            "log_share": array((k,), -HUGE, ROUNDING),
            "stick": array((k, 2), TINY, HUGE),
            **beliefs,
            "level": array((k, n_levels), 0.0, HUGE),
        }
    )(tree, "")
    level = fields["level"]
    need(((level > 0).all(axis=0) | (level == 0).all(axis=0)).all(), "level", "a component lacks one")
    with np.errstate(over="ignore"):
        precision = fields["shape"] / fields["rate"]
    need((precision < HUGE).all(), "rate", "a precision is too large")
    return Posteriors(**fields)


def levels_tree(params: Levels) -> dict[str, Any]:
    ends = np.cumsum([len(knots) for knots in params.knots])
    return {
        "share": params.groups.share,
        "given": params.groups.given,
        "beta": params.groups.beta,
        "knots": np.concatenate([*params.knots, np.empty(0)]),
        "knot_ends": [int(end) for end in ends],
    }


def levels(tree: Tree, k: int, schema: Schema, deterministic: bool) -> Levels:
    fields = record({"beta": number(0.0, HUGE), "knot_ends": listed(whole(1)), "knots": anything})(tree, "")
    edges = [0, *fields["knot_ends"]]
    rises(edges, "knot_ends")
    need(len(edges) == len(schema.numeric) + 1, "knot_ends", "they are not those of the numeric columns")
    knots = array((edges[-1],), -FAR, FAR)(fields["knots"], "knots")
    each = tuple(knots[a:b] for a, b in pairwise(edges))
    need(all((np.diff(one) > 0).all() for one in each), "knots", "they do not rise")
    shape = (k, edges[-1] + int(schema.level_start[-1]))
    groups = record({"share": shares(k, TINY), "given": array(shape, 0.0, 1 + ROUNDING)})(tree, "")
    total = groups["given"].sum(axis=1)
    need(np.allclose(total, 1, atol=ROUNDING), "given", "the shares of a group do not add up to 1")
    bottleneck = Bottleneck(groups["share"], groups["given"], fields["beta"], deterministic)
    return Levels(bottleneck, each, schema.level_start)
