"""Which peers are installed, in which version, and how they are kept to one thread."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from threadpoolctl import threadpool_limits

SKLEARNEX = "scikit-learn-intelex"
NOT_INSTALLED = "not installed"
PACKAGES = (
    "ilk",
    "numpy",
    "scipy",
    "scikit-learn",
    SKLEARNEX,
    "faiss-cpu",
    "kmodes",
    "stepmix",
    "threadpoolctl",
)
MODULES = {
    "scikit-learn": "sklearn",
    SKLEARNEX: "sklearnex",
    "faiss": "faiss",
    "KPrototypes": "kmodes",
    "StepMix": "stepmix",
}


@functools.cache
def installed(peer: str) -> bool:
    if peer == "R":
        return shutil.which("Rscript") is not None
    if peer == "mclust":
        return _ask_r("cat(requireNamespace('mclust', quietly = TRUE))") == "TRUE"
    return importlib.util.find_spec(MODULES[peer]) is not None


def _ask_r(expression: str) -> str | None:
    if not installed("R"):
        return None
    told = subprocess.run(
        ["Rscript", "--vanilla", "-e", expression], capture_output=True, text=True, check=False
    )
    return told.stdout.strip() or None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Every peer on one thread. ilk is told by its own argument; what it calls has one thread each."""
    for peer, module in MODULES.items():
        if installed(peer):
            importlib.import_module(module)  # a pool is limited only once its library is loaded
    if installed("faiss"):
        import faiss

        faiss.omp_set_num_threads(1)
    if installed(SKLEARNEX):
        import daal4py

        daal4py.daalinit(1)
    with threadpool_limits(limits=1):
        yield


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = NOT_INSTALLED
    if found["ilk"] == NOT_INSTALLED:  # run from the source folder
        import ilk

        found["ilk"] = ilk.__version__
    found["R"] = _ask_r("cat(as.character(getRversion()))") or NOT_INSTALLED
    found["mclust"] = NOT_INSTALLED
    if installed("mclust"):
        found["mclust"] = _ask_r("cat(as.character(packageVersion('mclust')))") or NOT_INSTALLED
    return found


def machine() -> dict[str, Any]:
    """What the figures were taken on; nothing that names the machine or its user."""
    from ilk import kernels

    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(pages / 2**30, 1),
        "ilk_instructions": kernels.INSTRUCTIONS,
    }


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
