"""Charts of the choice and of how good the groups are: BIC by K, silhouettes, separation, stability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ilk.errors import UsageError
from ilk.report.blocks.choice import lines_of
from ilk.report.displays.base import GREY, Display, colour

N_COLOURS = 10  # of lines that matplotlib tells apart
WRITTEN = 14  # groups up to which a matrix has room for its numbers


@dataclass(repr=False)
class SelectionDisplay(Display):
    """BIC by number of components, one line for each structure; the chosen one is ringed. Lower is better.

    Parameters
    ----------
    summary : mapping
        What `Result.summary` returns.

    Attributes
    ----------
    ax_ : Axes
        The axes that were drawn on.
    figure_ : Figure
        Their figure.

    See Also
    --------
    select : The same as a table.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> ilk.SelectionDisplay.from_result(result).ax_.get_ylabel()
    'BIC (lower is better)'
    """

    def _lacking(self) -> UsageError | None:
        if not lines_of(self.summary["candidates"]):
            return UsageError(
                "no-bic", "no candidate has a BIC", do="Draw a result of a mixture or of K-means"
            )
        return None

    def _draw(self, ax: Any, own: bool) -> None:
        chosen = self.summary["chosen"]
        own_line = chosen.get("structure") or chosen["method"]
        lines = lines_of(self.summary["candidates"])
        for number, (key, points) in enumerate(lines):
            dash = "-" if number < N_COLOURS else "--"
            style: dict[str, Any] = (
                {"color": "black", "linewidth": 2.2, "zorder": 3}
                if key == own_line
                else {"linewidth": 0.9, "linestyle": dash}
            )
            ax.plot(*zip(*points, strict=True), marker=".", label=key, **style)
        components = chosen.get("components") or chosen["k"]
        if chosen.get("bic") is not None:
            ax.plot(components, chosen["bic"], "o", mfc="none", mec="black", ms=13)
        counted = "groups" if components == chosen["k"] else "components"
        ax.set(xlabel=f"number of {counted}", ylabel="BIC (lower is better)")
        ax.xaxis.get_major_locator().set_params(integer=True)
        beside = (
            {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False} if own else {"ncols": 2}
        )
        ax.legend(fontsize="small", **beside)


@dataclass(repr=False)
class SilhouetteDisplay(Display):
    """A bar for each row looked at, by group, from long to short.

    Parameters
    ----------
    summary : mapping
        What `Result.summary` returns.

    Attributes
    ----------
    ax_ : Axes
        The axes that were drawn on.
    figure_ : Figure
        Their figure.

    See Also
    --------
    measures.silhouette : The values.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> ilk.SilhouetteDisplay.from_result(result).ax_.get_xlabel()
    'silhouette'
    """

    def _lacking(self) -> UsageError | None:
        if not self.summary["silhouettes"]:
            return UsageError(
                "one-group", "a single group has no silhouette", do="Draw a result of two or more groups"
            )
        return None

    def _size(self) -> tuple[float, float]:
        return 6.4, max(4.8, 0.8 + 0.26 * len(self.groups))

    def _draw(self, ax: Any, own: bool) -> None:
        found = self.summary["silhouettes"]
        gap = max(2.0, 0.012 * sum(len(entry["values"]) for entry in found))
        start, middles = 0.0, []
        for number, entry in enumerate(found):
            at = start + np.arange(len(entry["values"]))
            ax.barh(at, entry["values"], height=1.0, color=colour(number))
            middles.append(start + len(at) / 2)
            start += len(at) + gap
        ax.set_yticks(middles, [entry["group"] for entry in found])
        ax.set_ylim(start, -gap)
        ax.axvline(0.0, color=GREY, linewidth=0.8)
        ax.set(xlabel="silhouette", ylabel="group")


@dataclass(repr=False)
class SeparationDisplay(Display):
    """The dip in density between every two groups; pairs below the threshold are framed.

    Parameters
    ----------
    summary : mapping
        What `Result.summary` returns.

    Attributes
    ----------
    ax_ : Axes
        The axes that were drawn on.
    figure_ : Figure
        Their figure.

    See Also
    --------
    Verdict : What the separation decides.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> ilk.SeparationDisplay.from_result(result).ax_.get_xlabel()
    'group'
    """

    def _lacking(self) -> UsageError | None:
        found = (self.summary.get("merge") or {}).get("separations")
        if len(self.groups) < 2 or not found or len(found) != len(self.groups):
            return UsageError(
                "no-separation", "this result has no separations", do="Draw a result of two or more groups"
            )
        return None

    def _size(self) -> tuple[float, float]:
        side = max(3.6, 1.2 + 0.4 * len(self.groups))
        return side + 1.2, side

    def _draw(self, ax: Any, own: bool) -> None:
        values = np.array(self.summary["merge"]["separations"], dtype=np.float64)  # None becomes NaN
        need = self.summary["verdict"]["thresholds"]["separation"]
        image = ax.imshow(
            values, cmap="Greys", vmin=0.0, vmax=max(float(np.nanmax(values, initial=0.0)), 2 * need)
        )
        letters = [group["letter"] for group in self.groups]
        for i, j in zip(*np.nonzero(~np.isnan(values)), strict=True):
            if values[i, j] < need:
                ax.add_patch(_square(i, j))
            if len(letters) <= WRITTEN:
                dark = values[i, j] > 0.6 * image.get_clim()[1]
                ax.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", fontsize="x-small",
                        color="white" if dark else "black")  # fmt: skip
        ax.set_xticks(range(len(letters)), letters)
        ax.set_yticks(range(len(letters)), letters)
        ax.set(xlabel="group", ylabel="group", title=f"Separation (clear from {need:.2f})")
        ax.figure.colorbar(image, ax=ax, label="separation")


def _square(i: int, j: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((j - 0.47, i - 0.47), 0.94, 0.94, fill=False, edgecolor=colour(1), linewidth=1.6)


@dataclass(repr=False)
class StabilityDisplay(Display):
    """The stability of each group: mean Jaccard index in bootstrap resamples, with the two thresholds.

    Parameters
    ----------
    summary : mapping
        What `Result.summary` returns.

    Attributes
    ----------
    ax_ : Axes
        The axes that were drawn on.
    figure_ : Figure
        Their figure.

    See Also
    --------
    Verdict : What the stability decides.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> ilk.StabilityDisplay.from_result(result).ax_.get_xlabel()
    'stability (mean Jaccard)'
    """

    def _lacking(self) -> UsageError | None:
        if all(group.get("stability") is None for group in self.groups):
            return UsageError(
                "no-stability", "stability was not measured", do="Give the run more time, or two groups"
            )
        return None

    def _size(self) -> tuple[float, float]:
        return 6.4, max(2.4, 1.0 + 0.26 * len(self.groups))

    def _draw(self, ax: Any, own: bool) -> None:
        for number, group in enumerate(self.groups):
            value = group.get("stability")
            if value is not None:
                ax.barh(number, value, height=0.7, color=colour(number))
            ax.text(
                1.01,
                number,
                "not measured" if value is None else f"{value:.2f}",
                va="center",
                fontsize="small",
            )
        limits = self.summary["verdict"]["thresholds"]
        for limit in (limits["stability_low"], limits["stability_min"]):
            ax.axvline(limit, color="black", linewidth=0.9, linestyle=":")
        ax.set_yticks(range(len(self.groups)), [group["letter"] for group in self.groups])
        ax.set(xlim=(0.0, 1.12), xticks=[0, limits["stability_low"], limits["stability_min"], 1],
               xlabel="stability (mean Jaccard)", ylabel="group")  # fmt: skip
        ax.invert_yaxis()
        ax.spines[["top", "right"]].set_visible(False)
