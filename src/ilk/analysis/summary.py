"""The first parts of the summary: table, options, search, what was chosen; the groups are told by others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ilk
from ilk.analysis.findings import Findings
from ilk.analysis.job import Job
from ilk.analysis.prepare import Input
from ilk.analysis.shown import Shown
from ilk.engines.devices import device_of
from ilk.errors import Caution
from ilk.methods import parted
from ilk.model.model import Model
from ilk.model.no_prediction_rule import NO_PREDICTION_RULE
from ilk.report.provenance import provenance
from ilk.report.summary import NULL_MEANS, SCHEMA, VERSION, column_entries, missing_entry
from ilk.selection.candidates import Search
from ilk.selection.sharpness import Sharpness
from ilk.table.fingerprint import fingerprint
from ilk.table.out_of_core.table import PieceTable
from ilk.table.weights import in_unit

OPTIONS = (
    "method",
    "weight",
    "weights_are",
    "truth",
    "id",
    "scale",
    "merge",
    "min_size",
    "max_size",
    "seed",
    "budget",
    "device",
)


def summary_of(findings: Findings, sharp: Sharpness | None, notes: Sequence[Caution]) -> dict[str, Any]:
    """What the job, the table, the search and the grouping add to the summary."""
    return {
        "schema": SCHEMA,
        "version": list(VERSION),
        "null": NULL_MEANS,
        "ilk": ilk.__version__,
        "source": findings.given.table.source,
        "table": _table(findings),
        "options": _options(findings.job),
        "search": _search(findings),
        "candidates": [c.to_dict() for c in findings.search.candidates],
        "chosen": _chosen(findings, sharp),
        "warnings": [caution.to_dict() for caution in notes],
        "interrupted": findings.grouping.interrupted,
        "files": [],
    }


def _options(job: Job) -> dict[str, Any]:
    k = list(job.k) if isinstance(job.k, (range, list, tuple)) else job.k
    return {
        **{name: getattr(job, name) for name in OPTIONS},
        "k": k if isinstance(k, (str, int, list)) else str(k),
        **{name: value if isinstance(value, str) else None for name, value in _labels_of(job).items()},
        **{name: [[int(row) for row in pair] for pair in value] for name, value in _pairs_of(job).items()},
        **({"column_weights": dict(job.column_weights)} if job.column_weights else {}),
        **({"transforms": dict(job.transforms)} if job.transforms else {}),
        "match_to": _source_of(job.match_to),
        "types": job.types if isinstance(job.types, (str, dict)) else None,
        "reading": dict(job.reading),
        "ignore": [job.ignore] if isinstance(job.ignore, str) else list(job.ignore),
        "columns": [job.columns] if isinstance(job.columns, str) else job.columns and list(job.columns),
    }


def _labels_of(job: Job) -> dict[str, Any]:
    return {name: value for name in ("labels", "known") if (value := getattr(job, name)) is not None}


def _pairs_of(job: Job) -> dict[str, Any]:
    return {name: value for name in ("must_link", "cannot_link") if (value := getattr(job, name)) is not None}


def _table(findings: Findings) -> dict[str, Any]:
    given, total = findings.given, float(findings.grouping.size.sum())
    return {
        "rows": given.table.n_rows,
        "rows_used": findings.search.fit.n_rows,
        "weight": None if given.schema.weight is None else in_unit(total, given.weight_unit),
        "columns": column_entries(given.schema, given.used),
        "missing": missing_entry(given.schema, given.table.n_rows),
        "ledger": given.ledger.to_dict(),
        "treatment": dict(findings.seen.words),
        "compared": _compared(given),
    }


def _search(findings: Findings) -> dict[str, Any]:
    candidates = findings.search.candidates
    ks = [c.k for c in candidates if c.status != "reference"]
    return {
        "methods": list(dict.fromkeys(c.method for c in candidates)),
        "structures": len({c.structure for c in candidates if c.structure}),
        "k_least": min(ks),
        "k_most": max(ks),
        "ended_by": findings.search.ended_by,
        "starts": max(c.n_starts for c in candidates),
        "rows": findings.search.n_rows_searched,
        "seconds": findings.search_seconds,
    }


def _chosen(findings: Findings, sharp: Sharpness | None) -> dict[str, Any]:
    search, grouping = findings.search, findings.grouping
    chosen = search.chosen
    return {
        "method": chosen.method,
        "structure": chosen.structure,
        "k": grouping.n_groups,
        "components": grouping.pieces,
        "segments": grouping.pieces if grouping.segmented else 0,
        "as_asked": findings.job.asked == grouping.n_groups,
        "bic": chosen.bic,
        "bic_all_rows": chosen.bic_all_rows,
        "cost": search.fit.cost,
        "reason": search.fit.reason,
        "status": chosen.status,
        "silhouette": None if sharp is None else sharp.mean,
        "silhouette_error": None if sharp is None else sharp.error,
        "silhouette_type": None if sharp is None else sharp.kind,
        "silhouette_rows": None if sharp is None else sharp.n_rows,
        "rule": search.recipe.family is not NO_PREDICTION_RULE,
        "signs": [list(sign) for sign in grouping.signs],
        "runner_up": _runner_up(search),
    }


def _runner_up(search: Search) -> dict[str, Any] | None:
    if search.runner_up is None:
        return None
    rival = search.candidates[search.runner_up]
    return {
        "method": rival.method,
        "structure": rival.structure,
        "k": rival.k,
        "bic_difference": search.margin(search.runner_up),
    }


def _compared(given: Input) -> str | None:
    """What a paradigm beside the loop makes of categories and blanks, where there are some."""
    paradigm = parted(given.method)
    mixed = bool(given.used.coded) or not given.rows.complete
    return paradigm.mixed if paradigm is not None and mixed else None


def _source_of(earlier: Any) -> str | None:
    """The name of the run that letters come from."""
    if isinstance(earlier, Model):
        return str(earlier.training.get("source", "a model"))
    return None if earlier is None else str(earlier)


def reproduction(findings: Findings, shown: Shown) -> dict[str, Any]:
    """How to get the same result again."""
    fit, table = findings.search.fit, findings.given.table
    if isinstance(table, PieceTable):
        mark: str | None = table.fingerprint
    else:  # of a run that was stopped the rows are not all looked at again
        mark = None if shown.sample else fingerprint(table)
    trace, starts = [record.cost for record in fit.trace], [start.cost for start in fit.starts]
    device = device_of(findings.given.rows)
    return provenance(_options(findings.job), table.source, mark, trace, starts, device=device)
