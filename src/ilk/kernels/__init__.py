"""Hot loops over blocks of rows, compiled where a compiler was found, in NumPy elsewhere.

`COMPILED` says which, `INSTRUCTIONS` with what: "avx512", "avx2", "plain", or "numpy"; `NAMED` is that in words. Where
the compiled ones are missing and NumPy was not asked for, `LACKING` says so, and a warning does, once. The environment
variable ILK_KERNELS=numpy asks for NumPy, ILK_INSTRUCTIONS=avx2 (or plain) for narrower instructions than the
processor has.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ilk.kernels import (
    pairs,
    plain,
    plain_hull,
    plain_mixture,
    plain_product,
    plain_student,
    plain_tree,
    sparse,
)
from ilk.kernels.pairs import round_pairs

__all__ = [
    "COMPILED",
    "INSTRUCTIONS",
    "LACKING",
    "NAMED",
    "add_pairs",
    "add_to_bins",
    "column_ranges",
    "content_sums",
    "distances",
    "group_sums",
    "grow_tree",
    "lower_hull",
    "memberships",
    "mixture_ending",
    "mixture_gather",
    "mixture_labels",
    "mixture_scores",
    "mixture_step",
    "nearest",
    "nearest_step",
    "product_labels",
    "product_scores",
    "product_step",
    "product_sums",
    "round_pairs",
    "silhouette_sums",
    "student_labels",
    "student_step",
    "student_tails",
    "tally",
]

COMPILED: bool = False
INSTRUCTIONS: str = "numpy"
LACKING: str = ""
nearest_step = plain.nearest_step
nearest = plain.nearest
distances = plain.distances
silhouette_sums = plain.silhouette_sums
group_sums = plain.group_sums
tally = plain.tally
add_to_bins = plain.add_to_bins
column_ranges = plain.column_ranges
content_sums = plain.content_sums
add_pairs = pairs.add_pairs
memberships = plain_mixture.memberships
mixture_step = plain_mixture.mixture_step
mixture_scores = plain_mixture.mixture_scores
mixture_labels = plain_mixture.mixture_labels
mixture_gather = plain_mixture.mixture_gather
mixture_ending = plain_mixture.mixture_ending
product_scores: Callable[..., pairs.Array] = plain_product.product_scores
product_step: Callable[..., tuple[plain_product.ProductSums, float, float]] = plain_product.product_step
product_sums: Callable[..., plain_product.ProductSums] = plain_product.product_sums
grow_tree = plain_tree.grow_tree
lower_hull = plain_hull.lower_hull

if os.environ.get("ILK_KERNELS", "") != "numpy":
    try:
        import ilk.kernels._compiled as native
        from ilk.kernels import compiled
    except ImportError as error:
        LACKING = (
            f"the compiled kernels are missing ({error}), so NumPy does their work, with the same results and many "
            "times slower. Install ilk again where a C++20 compiler is, or from a wheel"
        )
        warnings.warn(LACKING, stacklevel=2)
    else:
        if "ILK_INSTRUCTIONS" in os.environ:
            native.use_instructions(os.environ["ILK_INSTRUCTIONS"])
        COMPILED = True
        INSTRUCTIONS = native.instructions()
        nearest_step = compiled.nearest_step
        nearest = compiled.nearest
        distances = compiled.distances
        memberships = compiled.memberships
        mixture_step = compiled.mixture_step
        mixture_scores = compiled.mixture_scores
        mixture_labels = compiled.mixture_labels
        mixture_gather = compiled.mixture_gather
        mixture_ending = compiled.mixture_ending
        product_scores = compiled.product_scores
        product_step = compiled.product_step
        product_sums = compiled.product_sums
        silhouette_sums = compiled.silhouette_sums
        group_sums = compiled.group_sums
        tally = compiled.tally
        add_to_bins = compiled.add_to_bins
        column_ranges = compiled.column_ranges
        content_sums = compiled.content_sums
        add_pairs = compiled.add_pairs
        grow_tree = compiled.grow_tree
        lower_hull = compiled.lower_hull

Called = TypeVar("Called", bound=Callable[..., Any])


def _where_rows_lie(kernel: Called) -> Called:
    """The kernel, for rows in memory; those on a device (`gpu/resident.py`) run their own of that name."""
    name = kernel.__name__

    @wraps(kernel)
    def run(raw: Any, *given: Any, **named: Any) -> Any:
        on_device = getattr(raw, "run", None)
        return kernel(raw, *given, **named) if on_device is None else on_device(name, kernel, *given, **named)

    return cast(Called, run)


CODES = 4  # the place of the codes among the arguments of a product
nearest_step = sparse.or_sparse(nearest_step, sparse.nearest_step)
nearest = sparse.or_sparse(nearest, sparse.nearest)
distances = sparse.or_sparse(distances, sparse.distances)
product_scores = sparse.or_sparse(product_scores, sparse.product_scores, CODES)
product_step = sparse.or_sparse(product_step, sparse.product_step, CODES)
product_sums = sparse.or_sparse(product_sums, sparse.product_sums, CODES)


def _or_counts(kernel: Called, plain: Callable[..., Any]) -> Called:
    """The kernel; the one in NumPy where some numbers are counts, which the compiled one does not know."""

    @wraps(kernel)
    def run(*given: Any, counts: Any = None, **named: Any) -> Any:
        return kernel(*given, **named) if counts is None else plain(*given, counts=counts, **named)

    return cast(Called, run)


product_scores = _or_counts(product_scores, plain_product.product_scores)
product_step = _or_counts(product_step, plain_product.product_step)


def product_labels(raw: Any, *given: Any, hard: bool = False, counts: Any = None) -> tuple[Any, Any, Any]:
    """The likeliest component of each row, its score and the cost of the row; components as `product_scores` takes
    them."""
    scores = product_scores(raw, *given, counts=counts)
    return scores.argmax(axis=1).astype(np.int32), scores.max(axis=1), memberships(scores, hard)[1]


nearest_step, nearest = _where_rows_lie(nearest_step), _where_rows_lie(nearest)
distances = _where_rows_lie(distances)
mixture_step, mixture_gather = _where_rows_lie(mixture_step), _where_rows_lie(mixture_gather)
mixture_ending, mixture_labels = _where_rows_lie(mixture_ending), _where_rows_lie(mixture_labels)
product_step, product_labels = _where_rows_lie(product_step), _where_rows_lie(product_labels)
student_tails = _where_rows_lie(plain_student.student_tails)
student_step = _where_rows_lie(plain_student.student_step)
student_labels = _where_rows_lie(plain_student.student_labels)

NAMED: str = f"compiled, {INSTRUCTIONS}" if COMPILED else "NumPy"
