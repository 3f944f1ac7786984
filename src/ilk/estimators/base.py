"""What every estimator shares: checking what the user gave, and turning arrays into rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from ilk.engines.base import Rows
from ilk.engines.devices import AUTO_CELLS, asked_rows, check_device, may_be_on_device
from ilk.engines.memory import MemoryRows
from ilk.errors import DataError, UsageError, warn
from ilk.estimators.frames import check_count, frame_rows, is_frame, opened, read_numbers, without_weight
from ilk.table.block import Array
from ilk.table.condition import encoding_of, precision_cautions, survey
from ilk.table.read import Table
from ilk.table.sparse import SPARSE_ESTIMATORS, compressed, is_sparse_input
from ilk.table.sparse import encoding_of as sparse_encoding
from ilk.table.sparse import survey as sparse_survey
from ilk.table.weights import check_weight, conditioned_weight


def whole_number(name: str, value: object, *, least: int = 1) -> int:
    """A count such as `n_clusters`: 3 and 3.0 are fine; True, "3" and 2.5 are not."""
    number = value.item() if isinstance(value, np.generic) else value
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool) and np.isfinite(number)
    is_whole = is_number and number == int(number)  # type: ignore[arg-type]
    if not is_whole or number < least:  # type: ignore[operator]
        raise UsageError(f"bad-{name}", f"{name}={value!r}", do=f"Give a whole number of {least} or more")
    return int(number)  # type: ignore[arg-type]


def real_number(name: str, value: object, least: float, below: float) -> float:
    """A real option in [least, below)."""
    is_real = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))
    if not is_real or not least <= value < below:  # type: ignore[operator]
        bound = f"a number of {least:g} or more" + (f", below {below:g}" if below < np.inf else "")
        raise UsageError(f"bad-{name}", f"{name}={value!r}", do=f"Give {bound}")
    return float(value)  # type: ignore[arg-type]


def checked_array(estimator: Any, X: Any, *, reset: bool) -> Array:
    """X as a float64 or float32 array; the array itself where it is one already."""
    if may_be_on_device(X):
        from ilk.engines.gpu import fetched

        X = fetched(X)
    found = opened(X)
    if is_frame(found):
        raise UsageError(
            "cluster-frame",
            f"this needs numbers in memory, and {found.source} is larger or elsewhere",
            do="Give a sample of it, or use predict, which takes such tables",
        )
    if isinstance(found, Table):
        return _named_numbers(estimator, found, reset=reset)
    refuse_sparse(estimator, X)
    array: Array = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        accept_large_sparse=False,
    )
    return array


def takes_sparse(estimator: Any, X: Any) -> bool:
    """Whether X is a sparse matrix that this estimator takes as it is; one that it does not take is refused."""
    if not is_sparse_input(X):
        return False
    if not getattr(estimator, "_takes_sparse", False):
        refuse_sparse(estimator, X)
    return True


def refuse_sparse(estimator: Any, X: Any) -> None:
    """Say which estimators take a sparse matrix; nothing where X is none."""
    if not is_sparse_input(X):
        return
    size = 8 * X.shape[0] * X.shape[-1] / 1e6
    raise UsageError(
        "sparse-input",
        f"{type(estimator).__name__} takes no sparse matrix",
        do=f"Use one of {', '.join(SPARSE_ESTIMATORS)}, or make it an array with .toarray() (about {size:,.0f} MB)",
    )


def checked_sparse(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A sparse matrix of any format as CSR of float64 or float32."""
    found = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse=["csr", "csc", "coo", "bsr", "dia", "lil", "dok"],
        dtype=None,
        ensure_all_finite=False,
    )
    return compressed(found)


def _named_numbers(estimator: Any, table: Table, *, reset: bool) -> Array:
    """The numbers of a table that was read, by the names of its columns."""
    if table.n_rows == 0:
        raise DataError("no-rows", f"{table.source} has no rows", do="Give at least one row")
    if reset:
        estimator.n_features_in_ = table.n_columns
        estimator.feature_names_in_ = np.array(table.names, dtype=object)
    if hasattr(estimator, "feature_names_in_"):
        return read_numbers(table, estimator.feature_names_in_)
    check_count(estimator, table.source, table.names)
    return read_numbers(table, table.names)


def training_rows(
    estimator: Any,
    X: Any,
    sample_weight: Any,
    *,
    scale: str | None,
    threads: int | None,
    k: int,
    device: str = "cpu",
    gaps: bool = False,
    pays_from: int = AUTO_CELLS,
) -> Rows:
    """The rows of a fit, checked and conditioned; where the data lie decides the engine, and `device`. `gaps` says that
    the method takes missing cells there, `pays_from` for how many cells "auto" is a device."""
    check_device(device)
    if device != "cpu" and may_be_on_device(X):
        from ilk.engines.gpu import is_on_device

        if is_on_device(X):
            options: Any = {"scale": scale, "threads": threads, "k": k, "gaps": gaps}
            return _device_rows(estimator, X, sample_weight, **options)
    X = opened(X)
    if is_frame(X):
        return frame_rows(estimator, X, sample_weight, scale=scale, threads=threads, k=k)
    if isinstance(X, Table) and isinstance(sample_weight, str):
        X, sample_weight = without_weight(X, sample_weight)
    sparse = takes_sparse(estimator, X)
    raw = (checked_sparse if sparse else checked_array)(estimator, X, reset=True)
    n_rows = raw.shape[0]
    weight, unit = given_weight(sample_weight, n_rows)
    _check_count(n_rows, weight, k)
    facts = sparse_survey(raw, weight) if sparse else survey(raw, weight=weight)
    for caution in precision_cautions(facts):
        caution.warn(depth=5)
    encoding = (sparse_encoding if sparse else encoding_of)(raw, facts, scale=scale, weight=weight)
    encoding = replace(encoding, weight_unit=unit)
    rows = MemoryRows(raw, encoding, weight=weight, complete=facts.complete, threads=threads)
    return asked_rows(rows, device, gaps=gaps, pays_from=pays_from)


def _device_rows(
    estimator: Any,
    X: Any,
    sample_weight: Any,
    *,
    scale: str | None,
    threads: int | None,
    k: int,
    gaps: bool,
) -> Rows:
    """The same of cells that lie on a GPU already."""
    from ilk.engines.gpu import rows_on_device

    if len(X.shape) != 2:
        raise DataError("bad-shape", f"the array has shape {tuple(X.shape)}", do="Give rows and columns")
    estimator.n_features_in_ = int(X.shape[1])
    vars(estimator).pop("feature_names_in_", None)
    weight, unit = given_weight(sample_weight, int(X.shape[0]))
    _check_count(int(X.shape[0]), weight, k)
    return rows_on_device(X, weight=weight, unit=unit, scale=scale, threads=threads, gaps=gaps)


def _check_count(n_rows: int, weight: Array | None, k: int) -> None:
    n_counting = n_rows if weight is None else int(np.count_nonzero(weight))
    if n_counting < k:
        raise DataError(
            "fewer-rows-than-groups",
            f"n_samples={n_counting} rows with weight are fewer than the {k} groups asked for",
            do="Ask for fewer groups",
        )


def given_weight(sample_weight: Any, n_rows: int) -> tuple[Array | None, float]:
    """Weights checked and conditioned, and the user's weight in one of theirs."""
    return (None, 1.0) if sample_weight is None else conditioned_weight(check_weight(sample_weight, n_rows))


def number_type(rows: Rows) -> np.dtype[Any]:
    """Of the numbers the user gave."""
    return rows.take(np.arange(0)).raw.dtype


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(
            f"bad-{name}", f"{name}={value!r}", do=f"Choose one of {', '.join(map(repr, allowed))}"
        )


def numbered(names: Array) -> tuple[int, Array]:
    """How many different names there are, and the rank of each row's among them.

    >>> numbered(np.array([7, 5, 7, 9]))
    (3, array([1, 0, 1, 2], dtype=int32))
    """
    if names.dtype.kind == "i" and len(names):
        lowest, highest = int(names.min()), int(names.max())
        if highest - lowest < len(names):  # counting is faster than sorting
            place = np.subtract(names, lowest, dtype=np.int64) if lowest else names
            there = np.bincount(place) > 0
            if there.all():
                return len(there), place.astype(np.int32)
            return int(there.sum()), (np.cumsum(there, dtype=np.int32) - np.int32(1))[place]
    found, rank = np.unique(names, return_inverse=True)
    return len(found), rank.astype(np.int32)


def given_start(init: Any, rows: Rows, k: int) -> Array:
    """Centres (K, columns) or one label per row, as the user gave them, checked; an array of its own."""
    start = np.asarray(init)
    if start.shape == (rows.n_rows,) and start.ndim == 1:
        n_names, label = numbered(start)
        if n_names == k:
            return label
        raise UsageError(
            "bad-start",
            f"init has {n_names} different labels for {k} groups",
            do="Give as many labels as groups",
        )
    if start.shape != (k, rows.n_columns):
        raise UsageError(
            "bad-start",
            f"init has shape {start.shape}",
            do=f"Give centres of shape ({k}, {rows.n_columns}), one label per row, or the name of a start",
        )
    start = start.astype(np.float64)
    if not np.isfinite(start).all():
        raise UsageError("bad-start", "init holds NaN or infinite centres", do="Give finite centres")
    return start


Callback = Callable[[Any], None]

REASONS = {
    "degenerate": (
        "degenerate",
        'ended in a degenerate component ({status}); use prior="default", fewer '
        "components or another structure",
    ),
    "pass limit": ("not-converged", "did not converge within max_iter={max_iter} passes; raise max_iter"),
    "interrupted": ("interrupted", "was interrupted; this is the best found so far"),
    "time limit": ("time-limit", "reached its time limit; this is the best found so far"),
}


def warn_of(estimator: Any, fit: Any) -> None:
    """Say what a user should know of how the fit ended; the same facts are fields of `fit_`."""
    name = type(estimator).__name__
    if fit.reason in REASONS:
        code, text = REASONS[fit.reason]
        told = text.format(max_iter=getattr(estimator, "max_iter", "?"), status=fit.status)
        warn(code, f"{name} {told}.", depth=4)
    if fit.status == "component_vanished" and fit.reason != "degenerate":
        found = len(fit.size)
        warn(
            "component-vanished",
            f"{name} lost components that had too few rows wherever they were put; it returns {found} groups of "
            f'the {estimator.n_components} asked for. Ask for fewer, or use membership="soft".',
            depth=4,
        )
    if fit.status == "fewer_distinct_rows":
        found = len(fit.size)
        warn(
            "fewer-distinct-rows",
            f"{name} found {found} distinct rows, fewer than the groups asked for; it returns {found} groups.",
            depth=4,
        )
