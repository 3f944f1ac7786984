"""The first parts of the summary: table, options, search, what was chosen; the groups are told by others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ilk
from ilk.analysis.prepare import Job, Prepared
from ilk.methods import parted
from ilk.model.model import Model
from ilk.model.no_prediction_rule import NO_PREDICTION_RULE
from ilk.report.provenance import provenance
from ilk.report.summary import NULL_MEANS, SCHEMA, VERSION, column_entries, missing_entry
from ilk.selection.candidates import Search
from ilk.selection.grouping import Grouping
from ilk.selection.sharpness import Sharpness
from ilk.table.fingerprint import fingerprint
from ilk.table.ledger import Caution
from ilk.table.out_of_core.table import PieceTable
from ilk.table.weights import in_unit


def summary_of(
    job: Job,
    ready: Prepared,
    found: Search,
    grouping: Grouping,
    sharp: Sharpness | None,
    notes: Sequence[Caution],
) -> dict[str, Any]:
    """What the job, the table, the search and the grouping add to the summary."""
    chosen, rival = found.chosen, found.runner_up
    options = {
        name: getattr(job, name)
        for name in (
            "method",
            "weight",
            "truth",
            "id",
            "scale",
            "merge",
            "min_size",
            "max_size",
            "seed",
            "budget",
        )
    }
    options["k"] = (
        job.k
        if isinstance(job.k, (str, int))
        else list(job.k)
        if isinstance(job.k, (range, list, tuple))
        else str(job.k)
    )
    options["match_to"] = _source_of(job.match_to)
    options["types"] = job.types if isinstance(job.types, (str, dict)) else None
    options["reading"] = dict(job.reading)
    options["ignore"] = [job.ignore] if isinstance(job.ignore, str) else list(job.ignore)
    ks = [c.k for c in found.candidates if c.status != "reference"]
    return {
        "schema": SCHEMA,
        "version": list(VERSION),
        "null": NULL_MEANS,
        "ilk": ilk.__version__,
        "source": ready.table.source,
        "table": {
            "rows": ready.table.n_rows,
            "rows_used": found.fit.n_rows,
            "weight": None
            if ready.schema.weight is None
            else in_unit(float(grouping.size.sum()), ready.weight_unit),
            "columns": column_entries(ready.schema, ready.used),
            "missing": missing_entry(ready.schema, ready.table.n_rows),
            "ledger": ready.ledger.to_dict(),
            "treatment": dict(ready.treatment),
            "compared": _compared(ready),
        },
        "options": options,
        "search": {
            "methods": list(dict.fromkeys(c.method for c in found.candidates)),
            "structures": len({c.structure for c in found.candidates if c.structure}),
            "k_least": min(ks),
            "k_most": max(ks),
            "starts": max(c.n_starts for c in found.candidates),
            "rows": found.n_rows_searched,
        },
        "candidates": [c.to_dict() for c in found.candidates],
        "chosen": {
            "method": chosen.method,
            "structure": chosen.structure,
            "k": grouping.n_groups,
            "components": grouping.pieces,
            "segments": grouping.pieces if grouping.segmented else 0,
            "as_asked": job.asked == grouping.n_groups,
            "bic": chosen.bic,
            "bic_all_rows": chosen.bic_all_rows,
            "cost": found.fit.cost,
            "reason": found.fit.reason,
            "status": chosen.status,
            "silhouette": None if sharp is None else sharp.mean,
            "silhouette_error": None if sharp is None else sharp.error,
            "silhouette_type": None if sharp is None else sharp.kind,
            "silhouette_rows": None if sharp is None else sharp.n_rows,
            "rule": found.recipe.family is not NO_PREDICTION_RULE,
            "signs": [list(sign) for sign in grouping.signs],
            "runner_up": None
            if rival is None
            else {
                "method": found.candidates[rival].method,
                "structure": found.candidates[rival].structure,
                "k": found.candidates[rival].k,
                "bic_difference": found.margin(rival),
            },
        },
        "warnings": [{"code": code, "text": text} for code, text in notes],
        "interrupted": grouping.interrupted,
        "files": [],
    }


def _compared(ready: Prepared) -> str | None:
    """What a paradigm beside the loop makes of categories and blanks, where there are some."""
    paradigm = parted(ready.method)
    mixed = bool(ready.used.coded) or not ready.rows.complete
    return paradigm.mixed if paradigm is not None and mixed else None


def _source_of(earlier: Any) -> str | None:
    """The name of the run that letters come from."""
    if isinstance(earlier, Model):
        return str(earlier.training.get("source", "a model"))
    return None if earlier is None else str(earlier)


def reproduction(ready: Prepared, found: Search, options: dict[str, Any]) -> dict[str, Any]:
    """How to get the same result again."""
    trace = [record.cost for record in found.fit.trace]
    starts = [start.cost for start in found.fit.starts]
    table = ready.table
    if isinstance(table, PieceTable):
        mark: str | None = table.fingerprint
    else:  # of a run that was stopped the rows are not all looked at again
        mark = fingerprint(table) if ready.looked is None else None
    return provenance(options, table.source, mark, trace, starts)
