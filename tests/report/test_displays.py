"""The matplotlib displays draw what the summary says, on axes given or their own."""

from __future__ import annotations

import sys

import pytest

import ilk
from ilk.report import displays

matplotlib = pytest.importorskip("matplotlib", reason="the displays need matplotlib: pip install 'ilk[plot]'")
matplotlib.use("Agg")
ALL = [
    displays.SelectionDisplay,
    displays.SilhouetteDisplay,
    displays.ProfileDisplay,
    displays.UncertaintyDisplay,
]


@pytest.mark.parametrize("display", ALL)
@pytest.mark.parametrize("which", ["wine", "penguins"])
def test_every_display_draws_on_the_axes_it_is_given(display, which, request):
    import matplotlib.pyplot as plt

    result = request.getfixturevalue(which)
    figure, ax = plt.subplots()
    drawn = display.from_result(result, ax=ax)
    assert drawn.ax_ is ax
    assert drawn.figure_ is figure
    assert ax.has_data()
    figure.canvas.draw()
    assert display.from_result(result).ax_ is not ax
    plt.close("all")


def test_the_lines_are_the_candidates(wine):
    ax = displays.SelectionDisplay.from_result(wine).ax_
    known = {c.structure for c in wine.candidates if c.bic is not None}
    assert {text.get_text() for text in ax.get_legend().get_texts()} == known
    for line in ax.get_lines()[:-1]:
        cells = {c.k: c.bic for c in wine.candidates if c.structure == line.get_label() and c.bic is not None}
        assert dict(zip(line.get_xdata(), line.get_ydata(), strict=True)) == pytest.approx(cells)


def test_without_matplotlib_the_advice_is_how_to_get_it(wine, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ilk.errors.UsageError, match=r"ilk\[plot\]"):
        displays.SelectionDisplay.from_result(wine)


def test_one_group_has_no_silhouette(cloud):
    with pytest.raises(ilk.errors.UsageError, match="no silhouette"):
        displays.SilhouetteDisplay.from_result(cloud)
