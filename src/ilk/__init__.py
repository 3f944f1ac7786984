"""ilk clusters the rows of mixed-type tables and explains each group."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public names and where they live; loaded on first use so that `import ilk` costs little.
_HOME = {
    "cluster": "ilk.job",
    "select": "ilk.job",
    "Result": "ilk.result",
    "ProfileDisplay": "ilk.report.displays",
    "SelectionDisplay": "ilk.report.displays",
    "SilhouetteDisplay": "ilk.report.displays",
    "UncertaintyDisplay": "ilk.report.displays",
    "likelihood_ratio_test": "ilk.estimators.bootstrap",
    "load": "ilk.fitting.model_file",
    "Model": "ilk.fitting.model",
    "AffinityPropagation": "ilk.estimators.distances",
    "AssortedMixture": "ilk.estimators.assorted",
    "BinaryDPMeans": "ilk.estimators.binary",
    "BlurringMeanShift": "ilk.estimators.modes",
    "CRAFT": "ilk.estimators.craft",
    "DirichletProcessGaussian": "ilk.estimators.dirichlet",
    "DirichletProcessMixture": "ilk.estimators.dirichlet",
    "DPMeans": "ilk.estimators.dp_means",
    "GaussianMixture": "ilk.estimators.mixture",
    "HierarchicalClustering": "ilk.estimators.distances",
    "InformationBottleneck": "ilk.estimators.bottleneck",
    "KMeans": "ilk.estimators.kmeans",
    "KMedians": "ilk.estimators.kmeans",
    "LaplaceMixture": "ilk.estimators.heavy",
    "LikelihoodRatioTest": "ilk.estimators.bootstrap",
    "MeanShift": "ilk.estimators.modes",
    "MixedMixture": "ilk.estimators.mixed",
    "SpectralClustering": "ilk.estimators.distances",
    "StudentMixture": "ilk.estimators.heavy",
    "suggest_open_cost": "ilk.estimators.dp_means",
    "TrimmedKMeans": "ilk.estimators.kmeans",
    "TypicalCuts": "ilk.estimators.distances",
}
_MODULES = ("measures", "errors")

__all__ = ["__version__", *_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"ilk.{name}")
    raise AttributeError(f"module 'ilk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
