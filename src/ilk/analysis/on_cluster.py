"""The main job on a table that lies on a cluster: models are searched on a sample, and the best of them decide on all
rows, which also give the parameters.

The groups are described by the rows of the sample, under the parameters that passes over all rows have ended in.
A table no larger than a sample is taken whole, and the answer is that of the table in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ilk.analysis.prepare import Input, Seen
from ilk.engines.base import Rows
from ilk.engines.condition import is_complete, weight_facts
from ilk.engines.derived import derive
from ilk.engines.frame_sample import sampled
from ilk.engines.frames import Frame, frame_of
from ilk.errors import Caution, DataError
from ilk.families.base import Family
from ilk.families.gaussian import Gaussian
from ilk.fitting.deadline import Deadline
from ilk.fitting.fit import fit
from ilk.fitting.interrupt import exposed
from ilk.fitting.loop import INTERRUPTED, Run, Stop, run_starts
from ilk.fitting.table_moments import table_moments
from ilk.fitting.weights import row_weights
from ilk.model.packer import ModelPacker
from ilk.selection.candidates import Search
from ilk.selection.finalists import full_bic
from ilk.selection.search import runner_up
from ilk.table.read import Table, from_arrow

SAMPLE_ROWS = 100_000


@dataclass(frozen=True)
class ClusterFrame:
    """A frame on a cluster, how many rows it has, and a sample of them as a table in memory."""

    frame: Frame
    n_rows: int
    table: Table

    @classmethod
    def of(cls, data: Any, seed: int) -> ClusterFrame | None:
        """None where the data do not lie on a cluster."""
        frame = frame_of(data)
        if frame is None:
            return None
        n_rows = frame.count()
        if not n_rows:
            raise DataError("no-rows", f"the {frame.source} has no rows", do="Give at least one row")
        arrow = sampled(frame, n_rows, SAMPLE_ROWS, seed)
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
        return [Caution("sampled-frame", text)]

    def polished(self, given: Input, seen: Seen, found: Search, deadline: Deadline) -> Search:
        """The models found on the sample, run to their end on all rows in shared passes: the best of them, as a fit
        with its parameters and the labels of the rows of the sample. As it was found where an interrupt comes before
        the first update."""
        if self.is_whole or found.interrupted:
            return found
        try:
            with exposed():
                return self._on_all_rows(given, seen, found, deadline)
        except KeyboardInterrupt:
            return replace(found, interrupted=True)

    def _on_all_rows(self, given: Input, seen: Seen, found: Search, deadline: Deadline) -> Search:
        rows = _all_rows(self.frame, given, seen)
        trim, stop = found.recipe.trim, replace(found.recipe.stop, deadline=deadline)
        models = [(_family_for(seen, found, rows), found.fit.params), *found.rivals]
        families, starts = zip(*models, strict=True)
        runs = run_starts(rows, families, starts, trim=trim, stop=stop)
        stopped = runs[0].reason == INTERRUPTED
        if not runs[0].usable or (stopped and runs[0].params is starts[0]):
            return replace(found, interrupted=stopped)
        bics = [] if stopped or not found.rivals else _bics(rows, runs)
        place = bics.index(min(bics)) if bics else 0
        run = runs[place]
        own: Family[Any] = run.family if place else found.recipe.family
        here = fit(seen.rows, own, [run.params], trim=trim, stop=Stop(max_passes=0))
        trace = tuple(run.trace)
        told = replace(here, reason=run.reason, trace=trace, n_passes=len(trace), starts=found.fit.starts)
        won = _decided(found, runs, bics, place) if bics else found
        return replace(won, fit=told, recipe=replace(won.recipe, family=own), interrupted=stopped)


def _bics(rows: Rows, runs: Sequence[Run]) -> list[float]:
    """Of mixtures, on all rows."""
    moments = table_moments(rows)
    return [full_bic(moments, rows, run) for run in runs]


def _decided(found: Search, runs: Sequence[Run], bics: Sequence[float], place: int) -> Search:
    """The search with the winner of all rows, and what was measured there."""
    cells = [replace(c, bic_all_rows=None) for c in found.candidates]
    numbers = [_number_of(found, run) for run in runs]
    for number, value in zip(numbers, bics, strict=True):
        cells[number] = replace(cells[number], bic_all_rows=value if math.isfinite(value) else None)
    winner = numbers[place]
    return replace(found, candidates=tuple(cells), winner=winner, runner_up=runner_up(cells, winner))


def _number_of(found: Search, run: Run) -> int:
    """The candidate that a run came from."""
    family = cast(Gaussian, run.family)
    key = family.structure.name, len(family.centres(run.params))
    return next(i for i, c in enumerate(found.candidates) if (c.structure, c.k) == key)


def _all_rows(frame: Frame, given: Input, seen: Seen) -> Rows:
    """All rows as the model sees them: its columns, packed by its schema, treated as it treats them."""
    packer = ModelPacker(given.used, seen.treat is not None)
    layout = packer.layout
    packed = frame.rows(packer.names, packer, layout, seen.rows.threads)
    if packed.weighted:
        weight_facts(packed)
    # Weights in the unit of those of the sample, whose sums are compared with these.
    encoding = replace(seen.encoding, weight_unit=given.weight_unit)
    rows: Rows = packed.encoded(encoding, is_complete(packed))
    return rows if seen.treat is None else derive(rows, seen.treat)


def _family_for(seen: Seen, found: Search, rows: Rows) -> Family[Any]:
    """The family found, weighing as many rows as there are."""
    if seen.treat is None:
        return found.recipe.family
    share = row_weights(rows).total / row_weights(seen.rows).total
    return replace(seen.treat, plan=seen.treat.plan.weighing(share)).family
