"""Parameters, attributes and arguments that estimators share: one meaning and one text for each name."""

from __future__ import annotations

from ilk.documented import documented as documented_by

ROWS = "array of shape (n_rows,)"
STRUCTURES = "EII VII EEI VEI EVI VVI EEE VEE EVE VVE EEV VEV EVV VVV"

PARAMETERS = {
    "n_clusters": ("int", "Number of groups."),
    "n_components": ("int", "Number of components."),
    "max_components": ("int", "Largest number of components; fewer may be found."),
    "init/centres": (
        "str, callable or array",
        'How centres are first placed: "k-means++", "k-log-k", "farthest-first", "random", "random-hull", "ward" or '
        '"k-means||", which draws from all rows where the others draw from a sample of a large table. A callable is '
        "called once for each start as `init(X, n_clusters, random_state)`, with the rows in the units given, and "
        "returns centres of shape (n_clusters, n_features). An array holds such centres, or one label for each row.",
    ),
    "init/partitions": (
        "str or array",
        'How rows are first grouped: "auto" (a mix of starts), "tree", "k-means", "k-log-k", "two-step", "principal", '
        '"projection", "quantile" or any named start of `KMeans`. An array holds means of shape (n_components, '
        "n_features), or one label for each row.",
    ),
    "init/mixed": (
        "str or array",
        'How rows are first grouped: "auto" (a mix of starts), "k-means", "k-log-k", "principal", "ward" or any named '
        "start of `KMeans`. An array holds one label for each row, or memberships of shape (n_rows, n_components).",
    ),
    "n_init/centres": (
        'int or "auto"',
        'Number of starts, of which the best is kept. "auto" is 10 for a named start and for a callable. An array as '
        "`init` is one start.",
    ),
    "n_init/partitions": (
        'int, "auto" or None',
        'Number of starts, of which the best is kept. None and "auto" take as many as suit `init`: each of the mix '
        'once for "auto", 1 for "tree", "ward" and "quantile", 3 for other named starts.',
    ),
    "max_iter": ("int", "Largest number of passes over the rows."),
    "tol/cost": (
        "float",
        "A run ends when a pass lowers the cost by less than this share of it. With 0 it ends when nothing changes.",
    ),
    "tol/likelihood": (
        "float",
        "A run ends when a pass raises the log-likelihood by less than this share of it.",
    ),
    "scale": (
        'None or "standard"',
        '"standard" divides each column by its standard deviation first; None keeps the units given.',
    ),
    "structure": (
        "str",
        f"Covariance structure: one of {STRUCTURES}, or full, tied, diag, spherical. The letters are volume, shape "
        "and orientation, each E (equal for all components), V (free) or I (round, or along the columns).",
    ),
    "membership": (
        '"soft" or "hard"',
        '"hard" is classification EM: each row belongs to its likeliest component. A component left with too few rows '
        "begins again at the rows that fit worst; where that does not help it is dropped, with a warning.",
    ),
    "prior": (
        'None, "default" or Prior',
        'Conjugate prior on means and covariances; "default" has the settings of mclust.',
    ),
    "noise": (
        'bool, "uniform" or "gaussian"',
        "One more component for rows that belong to none, which get the label -1: uniform over the box of the table "
        "(True), or a broad Gaussian.",
    ),
    "trim": (
        "float",
        "Share of the rows, those that fit worst, left out of every step; `outliers_` marks them.",
    ),
    "min_weight": (
        "float",
        "Smallest sum of weights of the rows of a component. The smallest component below it is taken away and the "
        "others are fitted again without it, until none is.",
    ),
    "types": (
        "None, mapping or path",
        'Types of columns by name, where the automatic choice is wrong: "numeric", "count", "categorical", "binary", '
        '"ordinal" or "ignore". The columns of an array are called x0, x1, ... and are numeric unless named here.',
    ),
    "metric": (
        '"auto", "euclidean", "gower" or "precomputed"',
        'Distance of two rows. "auto" is Euclidean for numbers without missing values and Gower\'s dissimilarity '
        'otherwise; with "precomputed" X holds distances.',
    ),
    "n_neighbors": ("int", "Neighbours of a row in the graph, itself included."),
    "random_state": (
        "None, int, Generator, RandomState or SeedSequence",
        "Seed of the random draws: the same number gives the same result. None draws a new seed for each fit.",
    ),
    "device": (
        '"auto", "cpu" or "cuda"',
        'Where passes over the rows run. "cuda" is an NVIDIA GPU (`pip install "ilk[gpu]"`); where there is none, the '
        'CPU does it, with a warning. "auto" goes there with cells that lie there already, and with tables that are '
        "large enough for the way to pay.",
    ),
    "threads": (
        "None or int",
        "Number of threads; None and -1 use all cores. The result does not depend on it.",
    ),
    "n_jobs": ("None or int", "Another spelling of `threads`; give one of them."),
    "callback": ("None or callable", "Called with an `ilk.Event` after each pass."),
    "verbose": ("int", "1 prints a line for each pass to stderr."),
}
ATTRIBUTES = {
    "labels_": (f"int {ROWS}", "Group of each row; groups are numbered by size, the largest first."),
    "labels_/noise": (
        f"int {ROWS}",
        "Likeliest component of each row, -1 for noise; components are numbered by size, the largest first.",
    ),
    "n_clusters_": ("int", "Number of groups found."),
    "n_components_": ("int", "Number of components found."),
    "cluster_centers_": (
        "array of shape (n_clusters, n_features)",
        "Centre of each group, in the units given.",
    ),
    "inertia_": ("float", "Cost of the rows in the units given: the sum that is minimised."),
    "n_iter_": ("int", "Passes over the rows of the start that won."),
    "converged_": ("bool", "Whether it ended by itself, and not at a limit."),
    "status_": (
        "str",
        '"ok", or what happened: "component_vanished", "fewer_distinct_rows" or why a component has no spread.',
    ),
    "fit_": ("Fit", "A record of the fit: the trace of each pass, every start, why it ended."),
    "outliers_": (f"bool {ROWS}", "Rows left out by `trim`; their cost does not count."),
    "known_labels_": (
        "tuple",
        "The label that was known of rows of each group, None for a group without.",
    ),
    "weights_": ("array of shape (n_components,)", "Share of each component."),
    "means_": ("array of shape (n_components, n_features)", "Mean of each component, in the units given."),
    "covariances_": (
        "array of shape (n_components, n_features, n_features)",
        "Covariance matrix of each component, in the units given.",
    ),
    "loglik_": ("float", "Log-likelihood in the units given, of the rows that are not trimmed."),
    "n_parameters_": ("int", "Number of free parameters, as the criteria count them."),
    "open_cost_": ("float", "The cost of a group that was used."),
    "cost_": ("float", "All that is minimised: `inertia_` and what the groups cost."),
    "schema_": ("Schema", "Type of each column, and why."),
    "metric_": ("str", 'The metric that was used: "euclidean", "gower" or "precomputed".'),
    "bandwidth_": ("float", "The bandwidth that was used."),
    "n_features_in_": ("int", "Number of columns seen in `fit`."),
    "feature_names_in_": (
        "array of shape (n_features,)",
        "Names of the columns seen in `fit`; only where the table has names.",
    ),
}
ARGUMENTS = {
    "X/numbers": (
        "array, frame or path of shape (n_rows, n_features)",
        "Numbers, NaN where a value is missing: an array, a frame of pandas, Polars, Arrow, DuckDB, Spark or Dask, or "
        "the path of a file.",
    ),
    "X/complete": ("array or frame of shape (n_rows, n_features)", "Numbers without missing values."),
    "X/table": (
        "array, frame, mapping or path of shape (n_rows, n_features)",
        "A table with columns of any type, with or without missing values: an array of numbers, a frame of pandas, "
        "Polars, Arrow, DuckDB, Spark or Dask, a mapping of columns, or the path of a file.",
    ),
    "X/distances": (
        "array, frame, mapping or path",
        'A table with columns of any type; with metric="precomputed" distances of shape (n_rows, n_rows).',
    ),
    "X/criterion": ("None or table", "Rows to judge the model by; None takes the rows of `fit`."),
    "y": ("None", "Not used; scikit-learn passes it."),
    "sample_weight": (
        "None, array of shape (n_rows,) or str",
        "Weight of each row, or the name of the column of X that holds it. A weight of 2 is the row twice.",
    ),
}

ARGUMENTS |= {
    "known": (
        "None or array of shape (n_rows,)",
        "Labels of the rows whose group is known, -1 or missing for the others. Rows of a label stay together, apart "
        "from those of other labels, and groups begin at them.",
    ),
    "must_link": (
        "None or pairs of row numbers",
        "Rows that belong to the same group, such as [(0, 5), (5, 9)].",
    ),
    "cannot_link": ("None or pairs of row numbers", "Rows that belong to different groups."),
}

documented = documented_by(PARAMETERS | ATTRIBUTES | ARGUMENTS)
