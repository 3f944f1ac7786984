"""The matplotlib displays draw what the summary says, on axes given or their own."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import ilk
from ilk.report import displays

matplotlib = pytest.importorskip("matplotlib", reason="the displays need matplotlib: pip install 'ilk[plot]'")
matplotlib.use("Agg")
EVERYWHERE = [display for kind, display in displays.KINDS.items() if kind != "pair"]


@pytest.mark.parametrize("display", EVERYWHERE)
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


@pytest.fixture(scope="module")
def many():
    """25 groups, whose names are long and hold what matplotlib takes for mathematics."""
    draws = np.random.default_rng(0)
    label = np.repeat(np.arange(25), 20)
    centre = draws.permutation(100)[:25] * 10.0
    table = {
        "a long name of a column in $ per square metre and in $": centre[label] + draws.normal(size=500),
        "_hidden": draws.permutation(25)[label] * 9.0 + draws.normal(size=500),
    }
    return ilk.cluster(table, k=25, method="k-means")


@pytest.fixture
def closed():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.mark.parametrize("kind", [kind for kind in displays.KINDS if kind != "pair"])
def test_twenty_five_groups_leave_no_frame(many, kind, closed):
    """Nothing that is drawn reaches over the border of the figure: no label cut, no legend outside."""
    figure = many.plot(kind).figure_
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    inked = figure.get_tightbbox(renderer)
    wide, tall = figure.get_size_inches()
    assert inked.x0 >= -0.01
    assert inked.y0 >= -0.01
    assert inked.x1 <= wide + 0.01
    assert inked.y1 <= tall + 0.01


def test_each_of_twenty_five_groups_has_a_colour_and_a_mark_of_its_own(many, closed):
    ax = many.plot().ax_
    looks = {
        (tuple(dots.get_facecolor()[0][:3]), dots.get_paths()[0].vertices.tobytes())
        for dots in ax.collections
    }
    assert len(looks) == 25
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [name.split()[0] for name in names] == [group.letter for group in many.groups]


def test_a_display_prints_short(many, closed):
    for kind in displays.KINDS:
        if kind != "pair":
            assert len(repr(many.plot(kind))) < 80


def test_plot_reaches_every_block_and_a_wrong_kind_is_refused(wine, closed):
    assert isinstance(wine.plot(), displays.MapDisplay)
    for block, kind in displays.BLOCKS.items():
        assert type(wine.plot(block)) is displays.KINDS[kind]
    with pytest.raises(ilk.errors.UsageError, match="Did you mean silhouettes"):
        wine.plot("silhouete")
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    assert wine.plot("profile", ax=ax).ax_ is ax


def test_what_is_drawn_first_where_there_is_no_map(closed):
    one = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    assert isinstance(one.plot(), displays.GroupsDisplay)
    with pytest.raises(ilk.errors.UsageError, match="no map"):
        one.plot("map")
    with pytest.raises(ilk.errors.UsageError, match="needs a pair of columns"):
        one.plot("pair")


def test_one_group_is_drawn_in_grey(cloud, closed):
    assert cloud.plot("map").ax_.get_legend() is None or cloud.k < len(cloud.groups)
    with pytest.raises(ilk.errors.UsageError, match="like the whole table"):
        displays.GroupsDisplay({**cloud.summary(), "groups": cloud.summary()["groups"][:1]}).plot()


def test_a_pair_of_numbers_is_drawn_in_their_units(striped, closed):
    ax = striped.plot("pair").ax_
    table = {name: striped.table.column(name).to_numpy() for name in ("width", "height")}
    names = ax.get_xlabel(), ax.get_ylabel()
    assert set(names) == set(table)
    drawn = np.concatenate([np.ma.getdata(dots.get_offsets()) for dots in ax.collections])
    assert len(drawn) == len(striped.labels)
    for axis, name in enumerate(names):
        step = np.ptp(table[name]) / 500
        assert np.sort(drawn[:, axis]) == pytest.approx(np.sort(table[name]), abs=step)


def test_a_pair_of_categories_has_its_levels_at_the_axes(levels_together, closed):
    ax = levels_together.plot("pair").ax_
    ticks = {
        tuple(sorted(text.get_text()[:4] for text in labels))
        for labels in (ax.get_xticklabels(), ax.get_yticklabels())
    }
    assert ticks == {("a ve", "east"), ("no", "yes")}
    assert {tuple(np.unique(dots.get_offsets() // 1)) for dots in ax.collections} == {(0.0, 1.0)}


def test_groups_that_no_column_shows_say_so(levels_together, closed):
    words = [text.get_text() for text in levels_together.plot("groups").ax_.texts]
    assert any("with" in text for text in words), "the pair of columns that does"
    summary = levels_together.summary()
    for group in summary["groups"]:
        group["pair"] = None
    words = [text.get_text() for text in displays.GroupsDisplay(summary).plot().ax_.texts]
    assert words.count("no clear difference from the whole table") == 2


def test_what_a_result_lacks_is_said_and_not_drawn(wine, levels_together, closed):
    given = levels_together.summary()  # labels that were given: nothing was searched, nothing resampled
    one = {**wine.summary(), "groups": wine.summary()["groups"][:1]}
    for display, summary, code in (
        (displays.SelectionDisplay, given, "no-bic"),
        (displays.StabilityDisplay, given, "no-stability"),
        (displays.SeparationDisplay, one, "no-separation"),
    ):
        with pytest.raises(ilk.errors.UsageError) as caught:
            display(summary).plot()
        assert caught.value.code == code


def test_a_group_whose_stability_is_not_known_has_no_bar(wine, closed):
    summary = wine.summary()
    for number, group in enumerate(summary["groups"]):
        group["stability"] = None if number == 0 else 0.9
    ax = displays.StabilityDisplay(summary).plot().ax_
    assert len(ax.patches) == len(summary["groups"]) - 1
    assert [text.get_text() for text in ax.texts].count("not measured") == 1


def test_a_choice_without_a_bic_has_lines_and_no_ring(wine, closed):
    summary = wine.summary()
    rings = len(displays.SelectionDisplay(summary).plot().ax_.get_lines())
    summary["chosen"]["bic"] = None
    assert len(displays.SelectionDisplay(summary).plot().ax_.get_lines()) == rings - 1


def test_groups_of_few_rows_have_a_letter_on_the_map_and_no_ellipse(wine, closed):
    summary = wine.summary()
    k = len(summary["groups"])
    assert len(displays.MapDisplay(summary).plot().ax_.patches) == k
    summary["map"]["ellipses"][0].update(long=0.0, short=0.0)
    summary["map"]["ellipses"][1] = None
    ax = displays.MapDisplay(summary).plot().ax_
    assert len(ax.patches) == k - 2
    letters = [text.get_text() for text in ax.texts if text.get_text() in "ABCDEF"]
    assert letters == [group["letter"] for i, group in enumerate(summary["groups"]) if i != 1]


def test_the_uncertainty_of_one_group_is_grey_and_has_no_legend(wine, closed):
    summary = wine.summary()
    summary["groups"] = summary["groups"][:1]
    ax = displays.UncertaintyDisplay(summary).plot().ax_
    assert ax.get_legend() is None
    assert {tuple(dots.get_facecolor()[0][:3]) for dots in ax.collections if len(dots.get_offsets())} == {
        matplotlib.colors.to_rgb(displays.base.GREY)
    }


def test_the_colours_are_those_of_the_page():
    from importlib.resources import files

    from ilk.report.html import COLOURS

    style = (files("ilk.report") / "style.css").read_text()
    assert len(displays.COLOURS) == COLOURS
    for i, hue in enumerate(displays.COLOURS):
        assert f"--g{i}:{hue}" in style
        assert f".g{i}{{--c:var(--g{i})" in style
