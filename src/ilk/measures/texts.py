"""Arguments that measures share: one meaning and one text for each name."""

from __future__ import annotations

from ilk.documented import documented as documented_by

ARGUMENTS = {
    "X": ("array of shape (n_rows, n_columns)", "The table: numbers without missing values."),
    "labels": ("array of shape (n_rows,)", "Cluster of each row."),
    "labels/truth": (
        "array of shape (n_rows,), Contingency or table of counts",
        "Cluster of each row; or, without the other partition, what `contingency` returns, or counts of shape "
        "(n_clusters, n_classes). A label such as -1 is a cluster like any other.",
    ),
    "truth": (
        "None or array of shape (n_rows,)",
        "Known class of each row; rows without one are left out.",
    ),
    "weight": (
        "None or array of shape (n_rows,)",
        "Weight of each row; a weight of 2 is the row twice. None counts every row once.",
    ),
    "threads": ("int", "Number of threads; the result does not depend on it."),
    "loglik": ("float", "Log-likelihood."),
    "n_parameters": ("float", "Number of free parameters."),
    "n_rows": ("float", "Number of rows, or sum of their weights."),
    "n_columns": ("int", "Number of columns."),
    "within_ss": ("float", "Sum of squared distances of the rows to their centres."),
    "sizes": ("array of shape (n_clusters,)", "Rows, or sum of weights, of each cluster."),
}

documented = documented_by(ARGUMENTS)
