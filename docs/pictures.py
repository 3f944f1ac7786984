"""The pictures of the pages, drawn anew at every build: nothing on them is older than the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import ilk
from ilk.report.displays import COLOURS
from ilk.selection.valley import NUMBERS, NumberGround
from ilk.table.block import Block, Encoding

PENGUINS = Path(ilk.__file__).parent / "data" / "penguins.csv"


def draw(folder: Path) -> None:
    """Write every picture into `folder`."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    with plt.rc_context({"figure.constrained_layout.use": True, "savefig.dpi": 110}):
        penguins = ilk.cluster(PENGUINS, truth="species", types={"year": "ignore"})
        pictures = {
            "map": ilk.UncertaintyDisplay.from_result(penguins).figure_,
            "profile": ilk.ProfileDisplay.from_result(penguins).figure_,
            "selection": _selection(),
            "valley": _valley(),
        }
        for name, figure in pictures.items():
            figure.savefig(folder / f"{name}.png")
        plt.close("all")


def _selection() -> Any:
    """BIC curves of three stretched groups in a table of numbers."""
    draws = np.random.default_rng(0)
    stretch = np.array([[2.0, 1.2], [0.0, 0.4]])
    rows = [draws.normal(size=(80, 2)) @ stretch + centre for centre in ([0, 0], [0, 4], [7, 2])]
    return ilk.SelectionDisplay.from_result(ilk.cluster(np.vstack(rows))).figure_


def _valley() -> Any:
    """Halves of one uniform cloud, and two groups: the rows on the line between them, and the figure of each."""
    import matplotlib.pyplot as plt

    draws = np.random.default_rng(0)
    cloud = draws.uniform(-2, 2, (400, 2))
    apart = np.vstack([draws.normal(0, 1, (200, 2)), draws.normal([4.2, 0], 1, (200, 2))])
    cases = [("one cloud cut in two", cloud, cloud[:, 0] > 0), ("two groups", apart, np.arange(400) >= 200)]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
    for ax, (title, rows, second) in zip(axes, cases, strict=True):
        block = Block(rows, Encoding(1.0, np.zeros(2)))
        line = NumberGround.of(block, second.astype(np.int32), seed=0).project([0], [1])
        bins = np.histogram_bin_edges(line.position, 30)
        parts = [line.position[~line.of_second], line.position[line.of_second]]
        ax.hist(parts, bins=bins, stacked=True, color=COLOURS[:2])
        verdict = "parted" if line.valley >= NUMBERS.merge else "one group"
        ax.set(
            title=f"{title}: valley {line.valley:.2f}, {verdict}", xticks=[], xlabel="the line between them"
        )
    axes[0].set_ylabel("rows")
    return figure


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", lambda app: draw(Path(app.srcdir) / "_static" / "drawn"))
    return {"parallel_read_safe": True}
