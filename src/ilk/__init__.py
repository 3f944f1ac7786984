"""ilk clusters the rows of mixed-type tables and explains each group."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# What an editor and a type checker read; a test holds it against the table below.
if TYPE_CHECKING:
    from ilk import errors as errors
    from ilk import measures as measures
    from ilk.analysis.api import cluster as cluster
    from ilk.analysis.api import select as select
    from ilk.analysis.describe import describe as describe
    from ilk.analysis.regroup import regroup as regroup
    from ilk.analysis.result import Result as Result
    from ilk.analysis.runs import check as check
    from ilk.analysis.runs import columns as columns
    from ilk.analysis.runs import compare as compare
    from ilk.analysis.runs import load as load
    from ilk.assorted.describe import Trait as Trait
    from ilk.estimators.assorted import AssortedMixture as AssortedMixture
    from ilk.estimators.binary import BinaryDPMeans as BinaryDPMeans
    from ilk.estimators.bootstrap import LikelihoodRatioTest as LikelihoodRatioTest
    from ilk.estimators.bootstrap import likelihood_ratio_test as likelihood_ratio_test
    from ilk.estimators.bottleneck import InformationBottleneck as InformationBottleneck
    from ilk.estimators.craft import CRAFT as CRAFT
    from ilk.estimators.dirichlet import DirichletProcessGaussian as DirichletProcessGaussian
    from ilk.estimators.dirichlet import DirichletProcessMixture as DirichletProcessMixture
    from ilk.estimators.distances import AffinityPropagation as AffinityPropagation
    from ilk.estimators.distances import HierarchicalClustering as HierarchicalClustering
    from ilk.estimators.distances import SpectralClustering as SpectralClustering
    from ilk.estimators.distances import TypicalCuts as TypicalCuts
    from ilk.estimators.dp_means import DPMeans as DPMeans
    from ilk.estimators.dp_means import suggest_open_cost as suggest_open_cost
    from ilk.estimators.heavy import LaplaceMixture as LaplaceMixture
    from ilk.estimators.heavy import StudentMixture as StudentMixture
    from ilk.estimators.kmeans import KMeans as KMeans
    from ilk.estimators.kmeans import KMedians as KMedians
    from ilk.estimators.kmeans import TrimmedKMeans as TrimmedKMeans
    from ilk.estimators.mixed import MixedMixture as MixedMixture
    from ilk.estimators.mixture import GaussianMixture as GaussianMixture
    from ilk.estimators.modes import BlurringMeanShift as BlurringMeanShift
    from ilk.estimators.modes import MeanShift as MeanShift
    from ilk.estimators.uncertainty import StandardErrors as StandardErrors
    from ilk.estimators.uncertainty import standard_errors as standard_errors
    from ilk.families.prior import Prior as Prior
    from ilk.fitting.fit import Fit as Fit
    from ilk.fitting.loop import Event as Event
    from ilk.kernels.gpu.dlpack import as_tensor as as_tensor
    from ilk.measures.estimates import Estimate as Estimate
    from ilk.model.model import Model as Model
    from ilk.pipeline.clusterer import Clusterer as Clusterer
    from ilk.report.displays import GroupsDisplay as GroupsDisplay
    from ilk.report.displays import ImportanceDisplay as ImportanceDisplay
    from ilk.report.displays import MapDisplay as MapDisplay
    from ilk.report.displays import PairDisplay as PairDisplay
    from ilk.report.displays import ProfileDisplay as ProfileDisplay
    from ilk.report.displays import SelectionDisplay as SelectionDisplay
    from ilk.report.displays import SeparationDisplay as SeparationDisplay
    from ilk.report.displays import SilhouetteDisplay as SilhouetteDisplay
    from ilk.report.displays import StabilityDisplay as StabilityDisplay
    from ilk.report.displays import UncertaintyDisplay as UncertaintyDisplay
    from ilk.report.groups import Contrast as Contrast
    from ilk.report.groups import Fact as Fact
    from ilk.report.groups import Group as Group
    from ilk.report.groups import Pair as Pair
    from ilk.selection.candidates import Candidate as Candidate
    from ilk.selection.candidates import Search as Search
    from ilk.selection.progress import Progress as Progress
    from ilk.selection.verdict import Verdict as Verdict

__all__ = [
    "CRAFT",
    "AffinityPropagation",
    "AssortedMixture",
    "BinaryDPMeans",
    "BlurringMeanShift",
    "Candidate",
    "Clusterer",
    "Contrast",
    "DPMeans",
    "DirichletProcessGaussian",
    "DirichletProcessMixture",
    "Estimate",
    "Event",
    "Fact",
    "Fit",
    "GaussianMixture",
    "Group",
    "GroupsDisplay",
    "HierarchicalClustering",
    "ImportanceDisplay",
    "InformationBottleneck",
    "KMeans",
    "KMedians",
    "LaplaceMixture",
    "LikelihoodRatioTest",
    "MapDisplay",
    "MeanShift",
    "MixedMixture",
    "Model",
    "Pair",
    "PairDisplay",
    "Prior",
    "ProfileDisplay",
    "Progress",
    "Result",
    "Search",
    "SelectionDisplay",
    "SeparationDisplay",
    "SilhouetteDisplay",
    "SpectralClustering",
    "StabilityDisplay",
    "StandardErrors",
    "StudentMixture",
    "Trait",
    "TrimmedKMeans",
    "TypicalCuts",
    "UncertaintyDisplay",
    "Verdict",
    "__version__",
    "as_tensor",
    "check",
    "cluster",
    "columns",
    "compare",
    "describe",
    "errors",
    "likelihood_ratio_test",
    "load",
    "measures",
    "regroup",
    "select",
    "standard_errors",
    "suggest_open_cost",
]

# Where each name lives; loaded on first use so that `import ilk` costs little.
_HOME = {
    "AffinityPropagation": "ilk.estimators.distances",
    "AssortedMixture": "ilk.estimators.assorted",
    "BinaryDPMeans": "ilk.estimators.binary",
    "BlurringMeanShift": "ilk.estimators.modes",
    "CRAFT": "ilk.estimators.craft",
    "Candidate": "ilk.selection.candidates",
    "Clusterer": "ilk.pipeline.clusterer",
    "Contrast": "ilk.report.groups",
    "DPMeans": "ilk.estimators.dp_means",
    "DirichletProcessGaussian": "ilk.estimators.dirichlet",
    "DirichletProcessMixture": "ilk.estimators.dirichlet",
    "Estimate": "ilk.measures.estimates",
    "Event": "ilk.fitting.loop",
    "Fact": "ilk.report.groups",
    "Fit": "ilk.fitting.fit",
    "GaussianMixture": "ilk.estimators.mixture",
    "Group": "ilk.report.groups",
    "GroupsDisplay": "ilk.report.displays",
    "HierarchicalClustering": "ilk.estimators.distances",
    "ImportanceDisplay": "ilk.report.displays",
    "InformationBottleneck": "ilk.estimators.bottleneck",
    "KMeans": "ilk.estimators.kmeans",
    "KMedians": "ilk.estimators.kmeans",
    "LaplaceMixture": "ilk.estimators.heavy",
    "LikelihoodRatioTest": "ilk.estimators.bootstrap",
    "MapDisplay": "ilk.report.displays",
    "MeanShift": "ilk.estimators.modes",
    "MixedMixture": "ilk.estimators.mixed",
    "Model": "ilk.model.model",
    "Pair": "ilk.report.groups",
    "PairDisplay": "ilk.report.displays",
    "Prior": "ilk.families.prior",
    "ProfileDisplay": "ilk.report.displays",
    "Progress": "ilk.selection.progress",
    "Result": "ilk.analysis.result",
    "Search": "ilk.selection.candidates",
    "SelectionDisplay": "ilk.report.displays",
    "SeparationDisplay": "ilk.report.displays",
    "SilhouetteDisplay": "ilk.report.displays",
    "SpectralClustering": "ilk.estimators.distances",
    "StabilityDisplay": "ilk.report.displays",
    "StandardErrors": "ilk.estimators.uncertainty",
    "StudentMixture": "ilk.estimators.heavy",
    "Trait": "ilk.assorted.describe",
    "TrimmedKMeans": "ilk.estimators.kmeans",
    "TypicalCuts": "ilk.estimators.distances",
    "UncertaintyDisplay": "ilk.report.displays",
    "Verdict": "ilk.selection.verdict",
    "as_tensor": "ilk.kernels.gpu.dlpack",
    "check": "ilk.analysis.runs",
    "cluster": "ilk.analysis.api",
    "columns": "ilk.analysis.runs",
    "compare": "ilk.analysis.runs",
    "describe": "ilk.analysis.describe",
    "likelihood_ratio_test": "ilk.estimators.bootstrap",
    "load": "ilk.analysis.runs",
    "regroup": "ilk.analysis.regroup",
    "select": "ilk.analysis.api",
    "standard_errors": "ilk.estimators.uncertainty",
    "suggest_open_cost": "ilk.estimators.dp_means",
}
_MODULES = ("errors", "measures")


if not TYPE_CHECKING:  # a checker that saw this would take every misspelt name for known

    def __getattr__(name: str) -> object:
        if name in _HOME:
            return getattr(importlib.import_module(_HOME[name]), name)
        if name in _MODULES:
            return importlib.import_module(f"ilk.{name}")
        raise AttributeError(f"module 'ilk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
