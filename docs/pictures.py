"""The pictures of the pages, drawn anew at every build: nothing on them is older than the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from PIL import Image

import ilk
from ilk.report.displays import COLOURS
from ilk.selection.valley import NUMBERS, NumberGround
from ilk.table.block import Block, Encoding

TONES = 64  # of a picture: keeps the files small
PENGUINS = Path(ilk.__file__).parent / "data" / "penguins.csv"


def draw(folder: Path) -> None:
    """Write every picture into `folder`."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    with plt.rc_context({"figure.constrained_layout.use": True, "savefig.dpi": 110}):
        penguins = ilk.cluster(PENGUINS, truth="species", types={"year": "ignore"})
        pictures = {
            "map": penguins.plot().figure_,
            "profile": ilk.ProfileDisplay.from_result(penguins).figure_,
            "selection": _selection(),
            "shapes": _shapes(),
            "separation": _separation(),
            "assorted": _assorted(),
        }
        for name, figure in pictures.items():
            figure.savefig(folder / f"{name}.png")
            image = Image.open(folder / f"{name}.png").convert("RGB")
            image.quantize(TONES, dither=Image.Dither.NONE).save(folder / f"{name}.png", optimize=True)
        plt.close("all")


def _selection() -> Any:
    """BIC curves of three elongated groups in a table of numbers."""
    draws = np.random.default_rng(0)
    stretch = np.array([[2.0, 1.2], [0.0, 0.4]])
    rows = [draws.normal(size=(80, 2)) @ stretch + centre for centre in ([0, 0], [0, 4], [7, 2])]
    return ilk.SelectionDisplay.from_result(ilk.cluster(np.vstack(rows))).figure_


def _shapes() -> Any:
    """Four shapes of groups, and what six methods with the true K make of them."""
    import matplotlib.pyplot as plt

    draws = np.random.default_rng(3)
    angle = draws.uniform(0, 2 * np.pi, 240)
    radius = np.repeat([1.0, 2.6], 120) + draws.normal(0, 0.12, 240)
    bow = np.linspace(0, np.pi, 120)
    moons = [
        np.column_stack([np.cos(bow), np.sin(bow)]),
        np.column_stack([1 - np.cos(bow), 0.4 - np.sin(bow)]),
    ]
    long = np.column_stack([draws.uniform(-4, 4, 240), np.repeat([0, 1.6], 120) + draws.normal(0, 0.2, 240)])
    unlike = [draws.normal(0, 0.25, (150, 2)), draws.normal([2.6, 0], 1.0, (90, 2))]
    sets = {
        "rings": np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]),
        "moons": np.vstack(moons) + draws.normal(0, 0.06, (240, 2)),
        "elongated": long @ [[0.8, 0.6], [-0.6, 0.8]],
        "different sizes": np.vstack(unlike),
    }
    methods = {
        "K-means": ilk.KMeans(2, random_state=0),
        "Gaussian mixture": ilk.GaussianMixture(2, random_state=0),
        "average linkage": ilk.HierarchicalClustering(2, linkage="average"),
        "single linkage": ilk.HierarchicalClustering(2, linkage="single", min_size=5),
        "spectral": ilk.SpectralClustering(2, random_state=0),
        "typical cuts": ilk.TypicalCuts(2, random_state=0),
    }
    figure, axes = plt.subplots(len(sets), len(methods), figsize=(11, 7))
    for ax, method in zip(axes[0], methods, strict=True):
        ax.set_title(method, fontsize=10)
    for across, (name, rows) in zip(axes, sets.items(), strict=True):
        for ax, model in zip(across, methods.values(), strict=True):
            label = model.fit(rows).labels_
            colour = np.array([*COLOURS[:2], "#bbbbbb"])[label]  # -1, rows of clusters that do not count
            ax.scatter(*rows.T, c=colour, s=4)
            ax.set(xticks=[], yticks=[])
        across[0].set_ylabel(name)
    return figure


def _separation() -> Any:
    """Halves of one uniform group, and two groups: the rows on the line between them, and their separation."""
    import matplotlib.pyplot as plt

    draws = np.random.default_rng(0)
    cloud = draws.uniform(-2, 2, (400, 2))
    apart = np.vstack([draws.normal(0, 1, (200, 2)), draws.normal([4.2, 0], 1, (200, 2))])
    cases = [("one group cut in two", cloud, cloud[:, 0] > 0), ("two groups", apart, np.arange(400) >= 200)]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
    for ax, (title, rows, second) in zip(axes, cases, strict=True):
        block = Block(rows, Encoding(1.0, np.zeros(2)))
        line = NumberGround.of(block, second.astype(np.int32), seed=0).project([0], [1])
        bins = np.histogram_bin_edges(line.position, 30)
        parts = [line.position[~line.of_second], line.position[line.of_second]]
        ax.hist(parts, bins=bins, stacked=True, color=COLOURS[:2])
        verdict = "two groups" if line.valley >= NUMBERS.merge else "one group"
        ax.set(
            title=f"{title}: separation {line.valley:.2f}, {verdict}",
            xticks=[],
            xlabel="the line between them",
        )
    axes[0].set_ylabel("rows")
    return figure


def _assorted() -> Any:
    """A column in which two groups have distributions of their own, and one that they share."""
    import matplotlib.pyplot as plt

    grid = np.linspace(0, 6, 300)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8))
    for centre, spread, colour, name in ((1, 0.25, COLOURS[0], "light"), (4, 0.45, COLOURS[1], "heavy")):
        left.fill_between(
            grid, np.exp(-(((grid - centre) / spread) ** 2) / 2) / spread, color=colour, alpha=0.8, label=name
        )
    left.set(title="weight: a distribution for each group", xlabel="kg", yticks=[])
    left.legend(frameon=False)
    right.bar(["a", "b"], [0.5, 0.5], width=0.5, color="#999999")
    right.set(title="plan: one that both share", ylim=(0, 1), yticks=[0, 0.5, 1], ylabel="share")
    return figure


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", lambda app: draw(Path(app.srcdir) / "_static" / "drawn"))
    return {"parallel_read_safe": True}
