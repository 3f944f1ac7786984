"""Peak resident memory of one fit beyond what was resident before it, in a process of its own.

`python -m benchmarks.memory BENCHMARK CASE CONTENDER SIZE` prints one line of JSON. The data are made and a
tiny fit is done first, so neither the data nor loaded code are counted; the result, such as labels, is.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.contest import Case, Size, timed, warm_up

ROOT = Path(__file__).parents[1]
SAMPLING_SECONDS = 0.002


def extra_bytes(benchmark: str, case: Case, contender: str, size: Size) -> int:
    """Peak memory of `contender` in a child process."""
    command = [sys.executable, "-m", "benchmarks.memory", benchmark, case.name, contender, size]
    child = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if child.returncode:
        last = (child.stderr.strip().splitlines() or [f"exit status {child.returncode}"])[-1]
        raise RuntimeError(last)
    return int(json.loads(child.stdout.splitlines()[-1])["extra_bytes"])


def measured(fit: Callable[[], Any]) -> int:
    """Bytes that `fit` needed at its peak above what was resident before."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # freed memory still resident would hide what the fit takes
    before = _resident("VmRSS")
    with _sampled_peak() as sampled:
        kernel_counts = _forget_peak()
        result = timed(fit)  # kept alive until the peak is read
    peak = max(sampled[0], _resident("VmHWM") if kernel_counts else 0)
    del result
    return max(0, peak - before)


def _resident(field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def _forget_peak() -> bool:
    """Ask Linux to count the peak anew; where that is not allowed the samples have to do."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _sampled_peak() -> Iterator[list[int]]:
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(SAMPLING_SECONDS):
            peak[0] = max(peak[0], _resident("VmRSS"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def main(benchmark: str, case_name: str, contender_name: str, size: Size) -> None:
    from benchmarks.catalogue import BENCHMARKS
    from benchmarks.peers import one_thread

    case = next(case for case in BENCHMARKS[benchmark].cases if case.name == case_name)
    with one_thread():
        warm_up(case)
        setting = case.build(size)
        contender = next(c for c in setting.contenders if c.name == contender_name)
        print(json.dumps({"extra_bytes": measured(contender.fit)}))


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
