"""How the documentation is built: `make docs`, into build/docs."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import ilk

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "ilk"
author = copyright = "The ilk developers"
version = release = ilk.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "codes",
    "commands",
    "pictures",
]
exclude_patterns = ["sg_execution_times.rst", "**/sg_execution_times.rst"]
default_role = "literal"
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 2

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()  # tests/house/test_docstrings.py checks them

html_theme = "pydata_sphinx_theme"
html_title = "ilk"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {page.stem: [] for page in HERE.glob("*.md") if page.stem != "api"}
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "header_links_before_dropdown": 6}


def _name_file(gallery: Any, name: str | None) -> None:
    """sphinx-gallery runs scripts without `__file__`, beside which the examples find their tables."""
    builtins.__file__ = str(HERE.parent / "examples" / (name or ""))  # type: ignore[attr-defined]


# Examples and lessons are run and drawn by the build, once; comparisons need data that do not come with ilk.
sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"[/\\]comparisons[/\\]",
    "abort_on_example_error": True,
    "reset_modules": (_name_file, "matplotlib"),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "copyfile_regex": "",
}
suppress_warnings = ["config.cache"]


def _skip(app: Any, what: str, name: str, found: Any, skip: bool, options: Any) -> bool | None:
    """What scikit-learn gives every estimator is documented there."""
    home = getattr(found, "__module__", "") or ""
    return True if name.startswith("set_") or home.startswith("sklearn") else None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", _skip)
