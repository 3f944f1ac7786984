"""Plain tables for the terminal and JSON lines for later."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.contest import Score, Setting
from benchmarks.requirement import Verdict

MIB = 2**20
HEADER = (
    *("", "ratio", "lowest", "of best", "by cpu", "rounds", "best s", "cpus"),
    *("objective", "vs ilk", "passes", "+MiB", "labels", "chosen"),
)
EXPLAINED = """\
ratio: time of the peer over time of ilk on one thread in the same round, median; lowest: over the rounds;
of best: ratio of the shortest times. For ilk on 2 threads: time of 1 thread over time of 2.
by cpu: ratio of processor times, median, always over ilk on one thread; the least disturbed by other work.
cpus: processor time over wall time; below 1 other work had the processor, above 1 several threads ran.
vs ilk: relative difference of the objective, above 0 where the peer's is larger; where there is a value per
row, the largest difference of any. +MiB: peak resident memory during the fit beyond that before it, in a
process of its own; the labels or values returned are part of it and shown apart.
Seconds are those of this machine at this hour: use the ratios."""


def case_table(setting: Setting, scores: Sequence[Score]) -> str:
    rows = [_cells(score, scores[0]) for score in scores]
    lines = [aligned([(setting.objective if name == "objective" else name for name in HEADER), *rows])]
    lines += [
        f"  {score.name}: plain hashing gained {statistics.median(score.ceilings):.2f} from its second thread"
        for score in scores
        if score.ceilings
    ]
    lines += [f"  {score.name}: FAILED: {score.failure}" for score in scores if score.failure]
    lines += [f"  {peer}: {why}" for peer, why in setting.absent.items()]
    return "\n".join(lines)


def _cells(score: Score, ours: Score) -> list[str]:
    if not score.seconds or score.answer is None:
        return [score.name, "failed"]
    cells = [score.name, "", "", "", ""]
    if score is not ours and ours.seconds:
        ratios = score.ratios(ours)
        numbers = (
            *(statistics.median(ratios), min(ratios)),
            *(score.best_ratio(ours), score.processor_ratio(ours)),
        )
        cells[1:] = [f"{number:.2f}" for number in numbers]
    answer = score.answer
    cells += [str(len(score.seconds)), f"{min(score.seconds):.3g}", f"{score.processors():.2f}"]
    cells += [f"{answer.objective:.10g}", _difference(score, ours)]
    cells += ["" if answer.passes is None else str(answer.passes)]
    cells += ["" if score.extra_bytes is None else f"{score.extra_bytes / MIB:.1f}"]
    cells += [f"{answer.result_bytes / MIB:.1f}" if answer.result_bytes else ""]
    return [*cells, answer.chosen]


def _difference(score: Score, ours: Score) -> str:
    if score is ours or score.answer is None or ours.answer is None:
        return ""
    if score.difference is not None:
        return f"{score.difference:.1e}"
    relative = (score.answer.objective - ours.answer.objective) / abs(ours.answer.objective)
    return f"{relative:+.1e}"


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    rows = [["required", "bound", "reached", "", ""]]
    for verdict in verdicts:
        reached = "" if verdict.value is None else f"{verdict.value:.3g}"
        promise = verdict.requirement
        rows.append([promise.text, promise.bound, reached, verdict.word, verdict.beside])
    return aligned(rows, left=(0, 1, 3, 4))


def aligned(rows: Sequence[Any], left: Sequence[int] = (0,)) -> str:
    table = [list(row) for row in rows]
    n_columns = max(map(len, table))
    table = [[*row, *[""] * (n_columns - len(row))] for row in table]
    width = [max(len(row[column]) for row in table) for column in range(n_columns)]
    lines = []
    for row in table:
        cells = [
            cell.ljust(width[column]) if column in left else cell.rjust(width[column])
            for column, cell in enumerate(row)
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines)


class Journal:
    """A file of JSON lines, written as the run goes, so that a run cut short keeps what it measured."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path

    def add(self, kind: str, **facts: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"kind": kind, **facts}) + "\n")

    def add_scores(self, benchmark: str, case: str, setting: Setting, scores: Sequence[Score]) -> None:
        for score in scores:
            answer = score.answer
            self.add(
                "score",
                benchmark=benchmark,
                case=case,
                contender=score.name,
                seconds=score.seconds,
                processor_seconds=score.processor_seconds,
                shorter_processor_seconds=score.shorter_processor_seconds,
                objective=None if answer is None else answer.objective,
                passes=None if answer is None else answer.passes,
                result_bytes=None if answer is None else answer.result_bytes,
                chosen=None if answer is None else answer.chosen,
                difference=score.difference,
                extra_bytes=score.extra_bytes,
                data_bytes=setting.data_bytes,
                failure=score.failure,
                ceilings=score.ceilings,
            )
        for peer, why in setting.absent.items():
            self.add("absent", benchmark=benchmark, case=case, contender=peer, why=why)

    def add_verdict(self, benchmark: str, verdict: Verdict) -> None:
        requirement = verdict.requirement
        self.add(
            "verdict",
            benchmark=benchmark,
            case=requirement.case,
            text=requirement.text,
            bound=requirement.bound,
            reached=verdict.value,
            word=verdict.word,
            beside=verdict.beside,
        )
