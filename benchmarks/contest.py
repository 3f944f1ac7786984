"""Contenders, and rounds in which they take turns.

Times taken on a shared machine mean nothing by themselves. So every round runs every contender once, one
after the other, and what counts is the ratio of two times of the same round.
"""

from __future__ import annotations

import gc
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.gauge import second_thread
from benchmarks.requirement import Requirement

Array = NDArray[Any]
Size = Literal["full", "quick", "tiny"]
OURS = "ilk"
CLOCK_TICK = 1e-6


@dataclass(frozen=True)
class Answer:
    """What a fit arrived at. The objective is a cost: smaller is better."""

    objective: float
    passes: int | None = None
    values: Array | None = None  # row-wise results to compare with ours
    result_bytes: int = 0  # memory of what the caller asked for, such as labels
    chosen: str = ""  # by a search


@dataclass(frozen=True)
class Clocked:
    """What a contender that runs elsewhere reports of itself."""

    answer: Answer
    seconds: float
    processor_seconds: float
    extra_bytes: int | None


@dataclass(frozen=True)
class Contender:
    """One program at one task: `fit` is timed, `answer` reads the result afterwards.

    `most_rounds` spares slow contenders the later rounds. `elsewhere`: `fit` returns a `Clocked`, timed by
    the other program around its own call. `shorter` is the same fit with `Setting.fewer_passes`: from both
    follows what a pass costs, without reading, starting and labelling.
    """

    name: str
    fit: Callable[[], Any]
    answer: Callable[[Any], Answer]
    most_rounds: int | None = None
    elsewhere: bool = False
    shorter: Callable[[], Any] | None = None

    @property
    def is_ours(self) -> bool:
        return self.name.startswith(OURS)


@dataclass(frozen=True)
class Setting:
    """Contenders around one table. The first is ilk on one thread, to which all are compared."""

    contenders: Sequence[Contender]
    data_bytes: int
    absent: dict[str, str] = field(default_factory=dict)  # peer -> why it is not here
    passes: int | None = None  # what every contender must have done
    fewer_passes: int | None = None  # and in its shorter fit
    objective: str = "objective"


@dataclass(frozen=True)
class Case:
    name: str
    build: Callable[[Size], Setting]
    rounds: int = 5
    memory: bool = True  # whether to fit once more in a child process for its peak memory


@dataclass(frozen=True)
class Benchmark:
    name: str
    title: str
    cases: Sequence[Case]
    requirements: Sequence[Requirement]
    absence: Callable[[], str | None] = lambda: None  # why ilk itself cannot take part yet
    notes: str = ""


@dataclass
class Score:
    """Everything measured of one contender in one case."""

    name: str
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    answer: Answer | None = None
    difference: float | None = None  # largest difference of `values` to ours
    extra_bytes: int | None = None
    failure: str | None = None
    ceilings: list[float] = field(default_factory=list)  # what a second thread was worth at that moment
    shorter_processor_seconds: list[float] = field(default_factory=list)

    def ratios(self, ours: Score) -> list[float]:
        """Time of this contender over ours, round by round; for ilk on more threads how much it gains."""
        pairs = list(zip(self.seconds, ours.seconds, strict=False))
        if self.name.startswith(OURS):
            return [base / own for own, base in pairs]
        return [own / base for own, base in pairs]

    def best_ratio(self, ours: Score) -> float:
        """The ratio of the shortest times."""
        ratio = min(self.seconds) / min(ours.seconds)
        return 1.0 / ratio if self.name.startswith(OURS) else ratio

    def processor_ratio(self, ours: Score) -> float:
        """The ratio of processor times, median over rounds: what other work on the machine disturbs least."""
        pairs = zip(self.processor_seconds, ours.processor_seconds, strict=False)
        return statistics.median(own / max(base, CLOCK_TICK) for own, base in pairs)

    def passes_ratio(self, ours: Score) -> float:
        """The ratio of the processor times of one pass."""
        return self.passes_seconds() / ours.passes_seconds()

    def passes_seconds(self) -> float:
        """Processor time of the passes that the fit has more than the shorter one, by medians over rounds."""
        more = statistics.median(self.processor_seconds) - statistics.median(self.shorter_processor_seconds)
        if more <= 0:
            raise ValueError("the shorter fit took no less time: the table is too small to time a pass")
        return more

    def processors(self) -> float:
        """Processors kept busy: 1.0 for an undisturbed single thread."""
        return statistics.median(p / s for p, s in zip(self.processor_seconds, self.seconds, strict=True))


def compete(case: Case, size: Size, rounds: int | None = None) -> tuple[Setting, list[Score]]:
    """All rounds of a case. A contender that fails leaves the contest; its score says why."""
    setting = case.build(size)
    warm_up(case)
    scores = [Score(contender.name) for contender in setting.contenders]
    for number in range(rounds or case.rounds):
        for contender, score in zip(setting.contenders, scores, strict=True):
            spared = contender.most_rounds is not None and number >= contender.most_rounds
            if score.failure is None and not spared:
                try:
                    _play(contender, score, setting, scores[0].answer)
                except Exception as error:
                    score.failure = f"{type(error).__name__}: {error}"
    return setting, scores


def warm_up(case: Case) -> None:
    """A tiny fit by everyone in this process, so that loading code is not timed or counted as memory."""
    for contender in case.build("tiny").contenders:
        if not contender.elsewhere:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                contender.fit()


def _play(contender: Contender, score: Score, setting: Setting, ours: Answer | None) -> None:
    fitted, seconds, processor_seconds = timed(contender.fit)
    if contender.elsewhere:
        seconds, processor_seconds = fitted.seconds, fitted.processor_seconds
        score.extra_bytes = fitted.extra_bytes
    if score.answer is None or contender.shorter is not None:
        answer = contender.answer(fitted)
        _check_passes(answer, setting.passes)
        if answer.values is not None and ours is not None and ours.values is not None:
            score.difference = float(np.abs(answer.values - ours.values).max())
        score.answer = answer
    if contender.shorter is not None:
        fitted, _, less = timed(contender.shorter)
        _check_passes(contender.answer(fitted), setting.fewer_passes)
        score.shorter_processor_seconds.append(less)
    if contender.is_ours and contender.name != OURS:
        score.ceilings.append(second_thread())
    score.seconds.append(seconds)
    score.processor_seconds.append(processor_seconds)


def _check_passes(answer: Answer, passes: int | None) -> None:
    if passes is not None and answer.passes != passes:
        raise AssertionError(f"{answer.passes} passes instead of {passes}")


def timed(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that 20 passes are not convergence is no news here
        processor, began = time.process_time(), time.perf_counter()
        fitted = fit()
        seconds = time.perf_counter() - began
    return fitted, seconds, time.process_time() - processor
