"""The command: which benchmarks, at which size, into which file."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import memory, report
from benchmarks.catalogue import BENCHMARKS
from benchmarks.contest import Benchmark, Case, Score, Setting, Size, compete
from benchmarks.peers import machine, one_thread, versions
from benchmarks.requirement import Verdict, judge

RESULTS = Path(__file__).parent / "results"


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which to run: {', '.join(BENCHMARKS)}; all if not given")
    parser.add_argument("--quick", action="store_const", const="quick", dest="size", help="smaller tables")
    parser.add_argument("--size", choices=("full", "quick", "tiny"))
    parser.add_argument("--case", action="append", help="only cases whose name begins so; may be repeated")
    parser.add_argument("--rounds", type=int, help="rounds of every case instead of its own number")
    parser.add_argument("--no-memory", action="store_true", help="leave out the fits that measure memory")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the JSON lines")
    parser.set_defaults(size="full")
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.names if name not in BENCHMARKS]:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if everything ran, whatever it showed; 1 if a contender failed."""
    chosen = parsed(arguments)
    began = time.monotonic()
    journal = report.Journal(chosen.results / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl")
    facts = {"size": chosen.size, "machine": machine(), "versions": versions()}
    journal.add("run", **facts)
    for name, entry in facts.items():
        listed = entry.items() if isinstance(entry, dict) else [(name, entry)]
        print(", ".join(f"{key} {value}" for key, value in listed))
    print(f"\n{report.EXPLAINED}")
    verdicts: list[Verdict] = []
    failed = False
    with one_thread():
        for name in chosen.names or BENCHMARKS:
            found, broken = run(BENCHMARKS[name], chosen, journal)
            verdicts, failed = verdicts + found, failed or broken
    if verdicts:
        print(f"\nRequirements\n{report.verdict_table(verdicts)}")
    print(f"\n{time.monotonic() - began:.0f} s in all; every figure in {journal.path.name}")
    return int(failed)


def run(
    benchmark: Benchmark, chosen: argparse.Namespace, journal: report.Journal
) -> tuple[list[Verdict], bool]:
    """One benchmark, printed as it goes: its verdicts, and whether any contender failed."""
    print(f"\n{benchmark.title} [{benchmark.name}]", flush=True)
    if why := benchmark.absence():
        print(f"  skipped: {why}")
        journal.add("skipped", benchmark=benchmark.name, why=why)
        return [], False
    if benchmark.notes:
        print(f"  {benchmark.notes}")
    played: dict[str, tuple[Setting, list[Score]]] = {}
    for case in benchmark.cases:
        if chosen.case and not any(case.name.startswith(begin) for begin in chosen.case):
            continue
        setting, scores = compete(case, chosen.size, chosen.rounds)
        if case.memory and not chosen.no_memory:
            add_memory(benchmark.name, case, chosen.size, scores)
        played[case.name] = setting, scores
        journal.add_scores(benchmark.name, case.name, setting, scores)
        print(f"\n  {case.name}\n{report.case_table(setting, scores)}", flush=True)
    verdicts = judge(benchmark.requirements, played, chosen.size == "full")
    for verdict in verdicts:
        journal.add_verdict(benchmark.name, verdict)
    return verdicts, any(score.failure for _, scores in played.values() for score in scores)


def add_memory(benchmark: str, case: Case, size: Size, scores: Sequence[Score]) -> None:
    for score in scores:
        if score.failure is None and score.extra_bytes is None:
            try:
                score.extra_bytes = memory.extra_bytes(benchmark, case, score.name, size)
            except RuntimeError as error:
                score.failure = f"memory not measured: {error}"


if __name__ == "__main__":
    sys.exit(main())
