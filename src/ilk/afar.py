"""The main job on a table that lies on a cluster: the model is chosen on a sample, its parameters come from all rows.

The groups are described by the rows of the sample, under the parameters that passes over all rows have ended in.
A table no larger than a sample is taken whole, and the answer is that of the table in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ilk.engines.base import Rows
from ilk.engines.condition import check_weights, is_complete
from ilk.engines.derived import derive
from ilk.engines.frames import Frame, frame_of
from ilk.errors import DataError
from ilk.families.base import Family
from ilk.fitting.fit import fit
from ilk.fitting.loop import INTERRUPTED, Stop, run_starts
from ilk.fitting.packer import ModelPacker
from ilk.fitting.weights import row_weights
from ilk.prepare import Prepared
from ilk.selection.search import Search
from ilk.table.ledger import Caution
from ilk.table.read import Table, from_arrow

SAMPLE_ROWS = 100_000


@dataclass(frozen=True)
class Afar:
    """A frame on a cluster, how many rows it has, and a sample of them as a table in memory."""

    frame: Frame
    n_rows: int
    table: Table

    @classmethod
    def of(cls, data: Any, seed: int) -> Afar | None:
        """None where the data do not lie on a cluster."""
        frame = frame_of(data)
        if frame is None:
            return None
        n_rows = frame.count()
        if not n_rows:
            raise DataError("no-rows", f"the {frame.source} has no rows", do="Give at least one row")
        arrow = frame.sample(min(1.0, SAMPLE_ROWS / n_rows), seed)
        return cls(frame, n_rows, from_arrow(arrow, frame.source))

    @property
    def is_whole(self) -> bool:
        return self.n_rows <= SAMPLE_ROWS

    def cautions(self, sampled: Search, found: Search) -> list[Caution]:
        """What to know of the search on the sample and of what all rows made of it."""
        if self.is_whole:
            return []
        origin = "the sample, too" if found.fit is sampled.fit else "all rows"
        text = (
            f"K was chosen, and the groups are described, on a sample of {self.table.n_rows:,} of {self.n_rows:,} "
            f"rows; the parameters come from {origin}. Labels and probabilities are those of the sample: "
            "result.assign(frame) labels every row"
        )
        return [("sampled-frame", text)]

    def polished(self, ready: Prepared, found: Search, seconds: float) -> Search:
        """The model found on the sample, run to its end on all rows: a fit with these parameters, and with the labels
        of the rows of the sample. As it was found where an interrupt comes before the first update."""
        if self.is_whole or found.interrupted:
            return found
        try:
            return self._on_all_rows(ready, found, seconds)
        except KeyboardInterrupt:
            return replace(found, interrupted=True)

    def _on_all_rows(self, ready: Prepared, found: Search, seconds: float) -> Search:
        rows = _all_rows(self.frame, ready)
        family, trim = _family_for(ready, found, rows), found.recipe.trim
        stop = replace(found.recipe.stop, seconds=seconds)
        run = run_starts(rows, [family], [found.fit.params], trim=trim, stop=stop)[0]
        stopped = run.reason == INTERRUPTED
        if not run.usable or (stopped and run.params is found.fit.params):
            return replace(found, interrupted=stopped)
        own: Family[Any] = found.recipe.family
        here = fit(ready.rows, own, [run.params], trim=trim, stop=Stop(max_passes=0))
        trace = tuple(run.trace)
        told = replace(here, reason=run.reason, trace=trace, n_passes=len(trace), starts=found.fit.starts)
        return replace(found, fit=told, interrupted=stopped)


def _all_rows(frame: Frame, ready: Prepared) -> Rows:
    """All rows as the model sees them: its columns, packed by its schema, treated as it treats them."""
    packer = ModelPacker(ready.used, ready.treat is not None)
    layout = packer.layout
    packed = frame.rows(packer.names, packer, layout, ready.rows.threads)
    check_weights(packed)
    rows: Rows = packed.encoded(ready.encoding, is_complete(packed))
    return rows if ready.treat is None else derive(rows, ready.treat)


def _family_for(ready: Prepared, found: Search, rows: Rows) -> Family[Any]:
    """The family found, weighing as many rows as there are."""
    if ready.treat is None:
        return found.recipe.family
    share = row_weights(rows).total / row_weights(ready.rows).total
    return replace(ready.treat, plan=ready.treat.plan.weighing(share)).family
