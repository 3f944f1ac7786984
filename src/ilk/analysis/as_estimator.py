"""The mixture that a search chose, as a fitted estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ilk.engines.base import Rows
from ilk.families.gaussian import Gaussian
from ilk.fitting.mixture import MixturePlan, fit_mixture
from ilk.fitting.table_moments import table_moments
from ilk.selection.candidates import Search
from ilk.selection.finalists import FINAL_STOP


def estimator_of(found: Search, rows: Rows, options: dict[str, Any], names: Sequence[str] | None) -> Any:
    """A `GaussianMixture` with the parameters that the search ended at."""
    from ilk.estimators.mixture import GaussianMixture  # imports scikit-learn, which takes a second

    moments, k = table_moments(rows), len(found.fit.params.mean)
    family = replace(cast(Gaussian, found.recipe.family), column_variances=moments.variance)
    made = GaussianMixture(k, structure=family.structure.name, **options)
    plan = MixturePlan(stop=FINAL_STOP)
    fitted = fit_mixture(rows, family, k, options["random_state"], plan, init=[found.fit.params])
    made.n_features_in_ = rows.n_columns
    if names is not None:
        made.feature_names_in_ = np.asarray(names, dtype=object)
    made._finish(rows, family, moments, np.full(rows.n_columns, np.nan), fitted)
    return made
